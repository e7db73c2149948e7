//! Verifies complete files: every checksum, every offset, and the consistency of all parts.
//!
//! Responsible for the checks that opening a file skips. Checking ids requires a tokenizer and is
//! left to other crates.

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fault::{Checked, TrailerFault};
use crate::header::HEADER_BYTES;
use crate::index::{check_span, pickle_error};
use crate::loss_mask::LossMask;
use crate::metadata::Metadata;
use crate::pickle_parse::parse_pairs;
use crate::pickle_write::write_pairs;
use crate::reader::Reader;
use crate::trailer::{ALIGNMENT, CHECKED_DATA_BYTES, DATA_CHECKSUMS, LOSS_MASK, Trailer, u32_at};

/// Number of documents between two calls of the progress function.
const DOCUMENTS_PER_CALL: u64 = 1 << 16;

/// Receives the bytes done so far and returns whether to continue.
pub(crate) type ProgressFn<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

impl Reader {
    /// Verifies every checksum and offset, the agreement of index and trailer, and the metadata's
    /// counts.
    ///
    /// `progress` receives the bytes checked so far, out of [`Reader::file_bytes`]. A file without
    /// a trailer was already checked when it was opened, as far as possible.
    ///
    /// # Errors
    /// The first fault found; [`Error::Cancelled`] if `progress` breaks.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        self.for_each_data_piece(&mut |_| Ok(()), progress)?;
        self.verify_rest(progress)
    }

    /// Calls `each` with every piece of the data in order. Verifies the checksum of a piece first,
    /// if the file has checksums. `progress` receives the position in the file.
    ///
    /// # Errors
    /// [`Error::Checksum`], the errors of `each`; [`Error::Cancelled`] if `progress` breaks.
    pub fn for_each_data_piece(
        &self,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let expected = self
            .section(DATA_CHECKSUMS)
            .map(|section| self.section_bytes(section));
        let mut start = HEADER_BYTES;
        for (i, piece) in self.data().chunks(CHECKED_DATA_BYTES as usize).enumerate() {
            let stop = start + piece.len() as u64;
            if let Some(expected) = expected.map(|all| u32_at(all, i * 4)) {
                self.check(Checked::Data, start, stop, crc32c::crc32c(piece), expected)?;
            }
            each(piece)?;
            report_progress(progress, stop)?;
            start = stop;
        }
        Ok(())
    }

    /// Verifies everything except the data.
    ///
    /// # Errors
    /// The first fault found; [`Error::Cancelled`] if `progress` breaks.
    pub fn verify_rest(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        self.verify_trailer(progress)?;
        if let Some(trailer) = self.trailer() {
            self.verify_index(trailer, progress)?;
        }
        report_progress(progress, self.file_bytes())
    }

    /// Verifies everything that reading documents with their origins uses: the checksums of the
    /// trailer, the metadata's counts and the origins. Skips the data, and the order of the
    /// offsets, which each access checks. Does nothing without a trailer.
    ///
    /// # Errors
    /// The first fault found; [`Error::Cancelled`] if `progress` breaks.
    pub fn verify_trailer(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let Some(trailer) = self.trailer() else {
            return Ok(());
        };
        self.verify_sections(trailer, progress)?;
        if let Some(metadata) = self.metadata()? {
            check_counts(metadata, self.len(), self.num_tokens(), self.path())?;
        }
        self.verify_loss_mask()?;
        self.verify_origins(self.sources()?.len() as u64)
    }

    /// Verifies the checksum of the loss mask, and that it has no bit that belongs to no token. Does nothing
    /// if the file has none.
    ///
    /// # Errors
    /// [`Error::Checksum`], [`Error::Trailer`].
    pub fn verify_loss_mask(&self) -> Result<()> {
        if let Some(section) = self.section(LOSS_MASK) {
            self.checked_section(section)?;
        }
        let excess = self.loss_mask().and_then(LossMask::excess_byte);
        match (self.section(LOSS_MASK), excess) {
            (Some(section), Some(byte)) => Err(Error::Trailer {
                path: self.path().into(),
                offset: section.offset + byte,
                fault: TrailerFault::Padding,
            }),
            _ => Ok(()),
        }
    }

    fn verify_sections(&self, trailer: &Trailer, progress: ProgressFn<'_>) -> Result<()> {
        for section in &trailer.sections {
            let mut crc32c = 0;
            let mut done = section.offset;
            for piece in self
                .section_bytes(section)
                .chunks(CHECKED_DATA_BYTES as usize)
            {
                crc32c = crc32c::crc32c_append(crc32c, piece);
                done += piece.len() as u64;
                report_progress(progress, done)?;
            }
            let span = section.span();
            self.check(
                Checked::Section(section.kind),
                span.start,
                span.end,
                crc32c,
                section.crc32c,
            )?;
        }
        Ok(())
    }

    /// Checks all offsets, compares them with the pickle, and checks that no bytes are between
    /// pickle and trailer.
    fn verify_index(&self, trailer: &Trailer, progress: ProgressFn<'_>) -> Result<()> {
        let index_start = HEADER_BYTES + self.data_bytes();
        let index = &self.file()[index_start as usize..trailer.start as usize];
        let documents = self.len();
        let mut document = 0;
        let index_bytes = parse_pairs(
            index,
            pickle_error(self.path(), index_start),
            |start, len| {
                self.compare_document(document, start, start.saturating_add(len))?;
                document += 1;
                if document % DOCUMENTS_PER_CALL == 0 {
                    report_progress(progress, self.file_bytes())
                } else {
                    Ok(())
                }
            },
        )?;
        check_count(
            "number of documents in the index",
            document,
            documents,
            self.path(),
        )?;
        let index_end = index_start + index_bytes;
        if index_end.next_multiple_of(ALIGNMENT) != trailer.start {
            let bytes = trailer.start - index_end;
            return Err(Error::BytesAfterIndex {
                path: self.path().into(),
                offset: index_end,
                bytes,
            });
        }
        self.verify_index_bytes(&index[..index_bytes as usize], index_start)
    }

    /// Checks that the pickle is byte for byte the output of a writer, because the pickle has no
    /// checksum.
    fn verify_index_bytes(&self, index: &[u8], index_start: u64) -> Result<()> {
        let matched = Cell::new(0);
        let expected = Expected {
            bytes: index,
            matched: &matched,
        };
        let pairs = (0..self.len()).map(|document| {
            let start = self.offset(document);
            (start, self.offset(document + 1) - start)
        });
        // The pairs were compared before, so only their encoding can differ.
        write_pairs(expected, pairs)
            .map(drop)
            .map_err(|_| Error::IndexBytes {
                path: self.path().into(),
                offset: index_start + matched.get() as u64,
            })
    }

    fn compare_document(&self, document: u64, pickled_start: u64, pickled_stop: u64) -> Result<()> {
        let path = self.path();
        if document >= self.len() {
            return check_count(
                "number of documents in the index",
                document + 1,
                self.len(),
                path,
            );
        }
        let (start, stop) = (self.offset(document), self.offset(document + 1));
        check_span(self.header(), path, document, start, stop)?;
        if (pickled_start, pickled_stop) == (start, stop) {
            return Ok(());
        }
        Err(Error::IndexDisagrees {
            path: path.into(),
            document,
            pickled_start,
            pickled_stop,
            start,
            stop,
        })
    }

    /// Checks that every origin is encoded as a writer does, and names a source.
    fn verify_origins(&self, num_sources: u64) -> Result<()> {
        self.for_each_origin(|document, origin| {
            if origin.source < num_sources {
                Ok(())
            } else {
                Err(self.damaged_origin(document))
            }
        })
    }

    pub(crate) fn check(
        &self,
        what: Checked,
        start: u64,
        stop: u64,
        found: u32,
        expected: u32,
    ) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::Checksum {
            path: self.path().into(),
            what,
            start,
            stop,
            found,
            expected,
        })
    }
}

/// Reports progress and maps a break to [`Error::Cancelled`].
pub(crate) fn report_progress(progress: ProgressFn<'_>, done_bytes: u64) -> Result<()> {
    if progress(done_bytes).is_break() {
        Err(Error::Cancelled)
    } else {
        Ok(())
    }
}

/// Checks that the metadata's counts match the given number of documents and tokens.
pub(crate) fn check_counts(
    metadata: &Metadata,
    documents: u64,
    tokens: u64,
    path: &Path,
) -> Result<()> {
    let counts = &metadata.counts;
    let outcomes = [counts.packed, counts.empty, counts.blank, counts.rejected];
    let accounted = outcomes
        .iter()
        .fold(0, |sum: u64, &lines| sum.saturating_add(lines));
    check_count(
        "number of documents in the metadata",
        counts.documents,
        documents,
        path,
    )?;
    check_count(
        "number of tokens in the metadata",
        counts.tokens,
        tokens,
        path,
    )?;
    check_count(
        "sum of packed, empty, blank and rejected lines in the metadata",
        accounted,
        counts.lines,
        path,
    )?;
    if let Some(text) = &counts.text
        && text.tokens > tokens
    {
        check_count(
            "number of tokens of texts in the metadata",
            text.tokens,
            tokens,
            path,
        )?;
    }
    if metadata.parts.is_empty() {
        return Ok(());
    }
    let sum = |count: fn(&crate::metadata::PartInfo) -> u64| {
        metadata
            .parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(count(part)))
    };
    check_count(
        "sum of the parts' documents in the metadata",
        sum(|part| part.documents),
        documents,
        path,
    )?;
    check_count(
        "sum of the parts' tokens in the metadata",
        sum(|part| part.tokens),
        tokens,
        path,
    )
}

pub(crate) fn check_count(
    what: &'static str,
    found: u64,
    expected: u64,
    path: &Path,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Count {
        path: path.into(),
        what,
        found,
        expected,
    })
}

/// A writer that accepts bytes as long as they equal the expected bytes.
struct Expected<'a> {
    bytes: &'a [u8],
    matched: &'a Cell<usize>,
}

impl Write for Expected<'_> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.matched.get()..];
        let num_equal = rest.iter().zip(written).take_while(|(a, b)| a == b).count();
        self.matched.set(self.matched.get() + num_equal);
        if num_equal == written.len() {
            Ok(num_equal)
        } else {
            Err(io::Error::other("differs"))
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
