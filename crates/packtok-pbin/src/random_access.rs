//! Random access: which document contains a token, whether one piece of the data is intact, which
//! pages are needed next, and the identity of a file.
//!
//! Responsible for queries whose cost does not grow with the file. `verify` checks complete files.

use std::ops::Range;

use memmap2::Advice;

use crate::access_pattern::AccessPattern;
use crate::error::{Error, Result};
use crate::fault::Checked;
use crate::header::HEADER_BYTES;
use crate::index::check_span;
use crate::reader::Reader;
use crate::trailer::{
    CHECKED_DATA_BYTES, CHECKED_TAIL_BYTES, DATA_CHECKSUMS, OFFSETS, TAIL_BYTES, u32_at,
};

/// Rounds of interpolation search before binary search takes over.
const GUESSES: u32 = 3;
/// Below this number of offsets, binary search is faster than interpolation.
const FEW_DOCUMENTS: u64 = 16;

impl Reader {
    /// The document that contains token `token`; empty documents contain none.
    ///
    /// # Errors
    /// [`Error::NoSuchTokens`]; [`Error::DocumentSpan`] if the offsets there are damaged.
    pub fn document_at(&self, token: u64) -> Result<u64> {
        if token >= self.num_tokens() {
            return Err(self.no_such_tokens(token, token.saturating_add(1)));
        }
        let document = self.document_before(token * self.width().bytes());
        self.document_span(document)?;
        Ok(document)
    }

    /// The documents starting with the one that contains token `token`, each with its tokens,
    /// including empty ones.
    ///
    /// # Errors
    /// As [`Reader::document_at`] for the first; the iterator returns [`Error::DocumentSpan`] for
    /// others.
    pub fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        let mut document = self.document_at(token)?;
        let mut start = self.offset(document);
        Ok(std::iter::from_fn(move || {
            if document == self.len() {
                return None;
            }
            let (current, stop) = (document, self.offset(document + 1));
            if let Err(error) = check_span(self.header(), self.path(), current, start, stop) {
                document = self.len();
                return Some(Err(error));
            }
            let width = self.width();
            let tokens = width.tokens_in(start)..width.tokens_in(stop);
            (document, start) = (document + 1, stop);
            Some(Ok((current, tokens)))
        }))
    }

    /// The last document that starts at or before data offset `offset`, which is within the data.
    ///
    /// Sums of many lengths grow evenly, so interpolation narrows the search to a few cache lines.
    /// Binary search bounds the cost for all other lengths.
    fn document_before(&self, offset: u64) -> u64 {
        // The first offset is 0 and the last offset exceeds every token. Opening the file checked
        // both.
        let mut bracket = Bracket {
            low: 0,
            low_offset: 0,
            high: self.len(),
            high_offset: self.data_bytes(),
        };
        for _ in 0..GUESSES {
            for probe in bracket.guesses(offset) {
                bracket.narrow(probe, self.offset(probe), offset);
            }
        }
        while bracket.high - bracket.low > 1 {
            let middle = bracket.low + (bracket.high - bracket.low) / 2;
            bracket.narrow(middle, self.offset(middle), offset);
        }
        bracket.low
    }

    /// Tokens of document `i`, counted from the start of the data.
    ///
    /// # Errors
    /// As [`Reader::document_span`].
    pub fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        let (span, width) = (self.document_span(i)?, self.width());
        Ok(width.tokens_in(span.start)..width.tokens_in(span.end))
    }

    /// Whether the file has checksums of its data.
    pub fn has_data_checksums(&self) -> bool {
        self.section(DATA_CHECKSUMS).is_some()
    }

    /// Verifies the checksum of the piece of data that starts at byte `piece` ×
    /// [`CHECKED_DATA_BYTES`] of the data. Does nothing for a file without checksums.
    ///
    /// # Errors
    /// [`Error::Checksum`].
    pub fn verify_data_piece(&self, piece: u64) -> Result<()> {
        let start = piece.saturating_mul(CHECKED_DATA_BYTES);
        let stop = start
            .saturating_add(CHECKED_DATA_BYTES)
            .min(self.data_bytes());
        let Some(section) = self
            .section(DATA_CHECKSUMS)
            .filter(|_| start < self.data_bytes())
        else {
            return Ok(());
        };
        let expected = u32_at(self.section_bytes(section), piece as usize * 4);
        let found = crc32c::crc32c(&self.data()[start as usize..stop as usize]);
        self.check(
            Checked::Data,
            HEADER_BYTES + start,
            HEADER_BYTES + stop,
            found,
            expected,
        )
    }

    /// Verifies the checksum of the document offsets. For a file without a trailer, opening
    /// already checked the offsets.
    ///
    /// # Errors
    /// [`Error::Checksum`].
    pub fn verify_offsets(&self) -> Result<()> {
        let section = self.section(OFFSETS);
        section.map_or(Ok(()), |section| self.checked_section(section).map(drop))
    }

    /// Checksum of the trailer's tail, or `None` without a trailer. It identifies the complete
    /// content: the tail covers the checksums of the sections, and these cover the checksums of the
    /// data.
    pub fn trailer_crc32c(&self) -> Option<u32> {
        self.trailer()?;
        let tail = self.file().len() - TAIL_BYTES as usize;
        Some(u32_at(self.file(), tail + CHECKED_TAIL_BYTES))
    }

    /// CRC32C of the bytes after the data; for a file without a trailer, of its pickled index.
    pub fn index_crc32c(&self) -> u32 {
        crc32c::crc32c(&self.file()[(HEADER_BYTES + self.data_bytes()) as usize..])
    }

    /// Advises the system how the file will be read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        self.map()
            .advise(pattern.advice())
            .map_err(Error::io(self.path()))
    }

    /// Asks the system to read the pages of tokens `tokens` asynchronously.
    ///
    /// # Errors
    /// [`Error::NoSuchTokens`], [`Error::Io`].
    pub fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        let first = tokens.start;
        let bytes = self.tokens(tokens)?.len();
        let start = HEADER_BYTES + first * self.width().bytes();
        self.map()
            .advise_range(Advice::WillNeed, start as usize, bytes)
            .map_err(Error::io(self.path()))
    }
}

/// Positions of two offsets: one at or before the target, the other after it.
struct Bracket {
    low: u64,
    low_offset: u64,
    high: u64,
    high_offset: u64,
}

impl Bracket {
    /// A position before and one after the estimated target; empty if the bracket is small.
    fn guesses(&self, offset: u64) -> impl Iterator<Item = u64> + use<> {
        let len = self.high - self.low;
        let share = (offset - self.low_offset) as f64 / (self.high_offset - self.low_offset) as f64;
        let guess = self.low + (share * len as f64) as u64;
        // The sum of n lengths deviates by about the square root of n lengths.
        let reach = (len as f64).sqrt() as u64;
        let places = [
            guess.saturating_sub(reach).max(self.low),
            (guess + reach).min(self.high),
        ];
        places
            .into_iter()
            .take(if len > FEW_DOCUMENTS { 2 } else { 0 })
    }

    /// Moves one end of the bracket to `place`, whose offset is `place_offset`, if `place` is inside
    /// the bracket. Damaged offsets may have any value.
    fn narrow(&mut self, place: u64, place_offset: u64, offset: u64) {
        if place <= self.low || place >= self.high {
            return;
        }
        if place_offset <= offset {
            (self.low, self.low_offset) = (place, place_offset);
        } else {
            (self.high, self.high_offset) = (place, place_offset);
        }
    }
}
