//! Copies selected documents of a pbin into another pbin. The caller decides for each document.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use packtok_pack::merge::copy_tokenizer;
use packtok_pack::pack::Existing;
use packtok_pbin::{
    CHECKED_DATA_BYTES, Counts, Dialect, Joined, Reader, TempFile, Writer, write_pairs,
};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::existing::{compare, prepare};

/// Bytes that are read before mapped pages are released.
const MAPPED_BYTES: u64 = 64 << 20;

/// The result of a filter.
#[derive(Debug, Serialize)]
pub struct FilterReport {
    /// The written file.
    pub output: PathBuf,
    /// Documents of the output.
    pub documents: u64,
    /// Tokens of the output.
    pub tokens: u64,
    /// Length of the output in bytes.
    pub file_bytes: u64,
    /// Documents that were left out.
    pub left_out: u64,
    /// The copy of the tokenizer next to the output, if the input has a tokenizer next to it.
    pub tokenizer_path: Option<PathBuf>,
    /// Whether the output already existed and equals the result.
    pub skipped_existing: bool,
}

/// A pbin that is being filtered: documents are taken or left out in order.
#[derive(Debug)]
pub struct Filter {
    reader: Reader,
    /// The open input, for the copy if all documents are selected.
    input: File,
    output: PathBuf,
    existing: Existing,
    keeps_existing: bool,
    writer: Writer,
    next: u64,
    next_piece: u64,
    released_bytes: u64,
}

impl Filter {
    /// Opens the pbin and starts the output. The index of the input is verified.
    ///
    /// # Errors
    /// The input is damaged or is the output; the output exists and is neither kept nor replaced.
    pub fn start(input: &Path, output: &Path, existing: Existing) -> Result<Self> {
        let keeps_existing = prepare(&[input.to_owned()], output, existing)?;
        let file = File::open(input).map_err(Error::io(input))?;
        let reader = Reader::open(input)?;
        reader.verify_rest(&mut |_| std::ops::ControlFlow::Continue(()))?;
        let mut writer = Writer::create(output, reader.width(), reader.has_origins())?;
        if reader.has_loss_mask() {
            writer = writer.with_loss_mask()?;
        }
        Ok(Self {
            reader,
            input: file,
            output: output.to_owned(),
            existing,
            keeps_existing,
            writer,
            next: 0,
            next_piece: 0,
            released_bytes: 0,
        })
    }

    /// Decides on the next documents. Documents whose flag is set are selected. Their data is
    /// verified.
    ///
    /// # Errors
    /// There are more flags than documents; the data is damaged; writing fails.
    pub fn decide(&mut self, flags: &[bool]) -> Result<()> {
        for &is_taken in flags {
            let i = self.next;
            let span = self.reader.document_span(i)?;
            while self.next_piece * CHECKED_DATA_BYTES < span.end {
                self.reader.verify_data_piece(self.next_piece)?;
                self.next_piece += 1;
            }
            if is_taken {
                self.writer.write_data(self.reader.document(i)?)?;
                self.writer.push_document(span.end - span.start)?;
                self.writer.push_origins(self.reader.origin(i)?)?;
                if let Some(mask) = self.reader.loss_mask() {
                    let tokens = self.reader.document_tokens(i)?;
                    self.writer.push_loss_mask(mask.tokens(tokens))?;
                }
            }
            self.next += 1;
            if span.end - self.released_bytes >= MAPPED_BYTES {
                self.reader.release_pages();
                self.released_bytes = span.end;
            }
        }
        Ok(())
    }

    /// Number of documents taken so far.
    pub fn num_taken(&self) -> u64 {
        self.writer.num_documents()
    }

    /// Publishes the output. Must be called after all documents were decided on.
    ///
    /// If all documents were selected, the output is a copy of the input.
    ///
    /// # Errors
    /// [`Error::ExistingBytesDiffer`] if the output is to be kept but differs from the result; writing
    /// fails.
    pub fn finish(self) -> Result<FilterReport> {
        let num_taken = self.num_taken();
        let left_out = self.reader.len() - num_taken;
        let report = |documents, tokens, file_bytes| FilterReport {
            output: self.output.clone(),
            documents,
            tokens,
            file_bytes,
            left_out,
            tokenizer_path: None,
            skipped_existing: self.keeps_existing,
        };
        let mut report = if left_out == 0 && is_as_written(&self.reader)? {
            let file = copied(self.input, &self.output)?;
            if self.keeps_existing {
                compare(file.path(), &self.output)?;
            } else {
                file.publish(self.existing.replace())?;
            }
            let reader = &self.reader;
            report(reader.len(), reader.num_tokens(), reader.file_bytes())
        } else {
            let mut joined = Joined::new(None);
            joined.add(&self.reader)?;
            let (mut metadata, sources) = joined.finish();
            if left_out > 0 {
                metadata.rearranged = true;
                // The remaining counts describe all documents of the corpus, so they do not apply
                // to the output.
                metadata.counts = Counts {
                    documents: num_taken,
                    tokens: self.reader.width().tokens_in(self.writer.data_bytes()),
                    ..Counts::default()
                };
            }
            let finished = self.writer.finish(&metadata, &sources)?;
            let summary = finished.summary();
            if self.keeps_existing {
                compare(finished.path(), &self.output)?;
            } else {
                finished.publish(self.existing.replace())?;
            }
            report(summary.documents, summary.tokens, summary.file_bytes)
        };
        if !report.skipped_existing {
            let input = [self.reader.path().to_owned()];
            report.tokenizer_path = copy_tokenizer(&self.output, &input, None)?;
        }
        Ok(report)
    }
}

/// Whether a writer would write the same header, data and index for the documents, so that a copy
/// is the result. False for files of old versions of Modalities.
fn is_as_written(reader: &Reader) -> Result<bool> {
    match reader.dialect() {
        Dialect::Packtok => Ok(true),
        Dialect::ModalitiesLegacy => Ok(false),
        Dialect::Modalities => {
            let mut index = Crc32c(0);
            let mut fault = None;
            let pairs = (0..reader.len()).map_while(|i| match reader.document_span(i) {
                Ok(span) => Some((span.start, span.end - span.start)),
                Err(error) => {
                    fault = Some(error);
                    None
                }
            });
            write_pairs(&mut index, pairs).map_err(Error::io(reader.path()))?;
            match fault {
                Some(error) => Err(error.into()),
                None => Ok(index.0 == reader.index_crc32c()),
            }
        }
    }
}

/// A writer that computes the checksum of the written bytes.
struct Crc32c(u32);

impl io::Write for Crc32c {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = crc32c::crc32c_append(self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A copy of the input under a temporary name.
fn copied(mut input: File, output: &Path) -> Result<TempFile> {
    let mut file = TempFile::create(output)?;
    io::copy(&mut input, &mut file).map_err(Error::io(output))?;
    Ok(file)
}
