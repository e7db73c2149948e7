//! What a reader that jumps about in a file asks for: which document holds a token, whether one piece of
//! the data is whole, which pages come next, and what tells one file from another.
//!
//! Responsible for questions that must cost the same for any file; checks of whole files are the matter
//! of `verify`.

use std::ops::Range;

use memmap2::Advice;

use crate::error::{Error, Result};
use crate::fault::Checked;
use crate::header::HEADER_BYTES;
use crate::index::check_span;
use crate::reader::Reader;
use crate::trailer::{
    CHECKED_DATA_BYTES, CHECKED_TAIL_BYTES, DATA_CHECKSUMS, OFFSETS, TAIL_BYTES, u32_at,
};

/// Rounds of guessing before halving takes over.
const GUESSES: u32 = 3;
/// Offsets that are so near each other that halving is faster than guessing.
const FEW_DOCUMENTS: u64 = 16;

/// How the pages of a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessPattern {
    /// As the system thinks best.
    Normal,
    /// From start to end: the system reads far ahead.
    Sequential,
    /// Here and there: the system reads no more than it is asked for.
    Random,
}

impl Reader {
    /// The document that holds token `token`; documents without tokens hold none.
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

    /// The documents from the one that holds token `token` on, each with its tokens, empty ones too.
    ///
    /// # Errors
    /// As [`Reader::document_at`], for the first; the iterator gives [`Error::DocumentSpan`] for others.
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
            let (found, stop) = (document, self.offset(document + 1));
            if let Err(error) = check_span(self.header(), self.path(), found, start, stop) {
                document = self.len();
                return Some(Err(error));
            }
            let width = self.width();
            let tokens = width.tokens_in(start)..width.tokens_in(stop);
            (document, start) = (document + 1, stop);
            Some(Ok((found, tokens)))
        }))
    }

    /// The last document that starts at or before data offset `offset`, which is within the data.
    ///
    /// Sums of many lengths grow evenly, so that guesses narrow the search to a few cache lines; halving bounds it
    /// whatever the lengths are.
    fn document_before(&self, offset: u64) -> u64 {
        // The first offset is 0 and the last is past every token: both were checked at opening.
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

    /// Whether the data has checksums.
    pub fn has_data_checksums(&self) -> bool {
        self.section(DATA_CHECKSUMS).is_some()
    }

    /// Compares the checksum of the piece of data that starts at byte `piece` × [`CHECKED_DATA_BYTES`] of the data;
    /// a file without checksums has nothing to compare.
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

    /// Compares the checksum of the document offsets; those of a file without trailer were checked at opening.
    ///
    /// # Errors
    /// [`Error::Checksum`].
    pub fn verify_offsets(&self) -> Result<()> {
        let section = self.section(OFFSETS);
        section.map_or(Ok(()), |section| self.checked_section(section).map(drop))
    }

    /// Checksum of the trailer's tail, which stands for the whole content: it covers the checksums of the
    /// sections, and these those of the data. `None` without trailer.
    pub fn trailer_crc32c(&self) -> Option<u32> {
        self.trailer()?;
        let tail = self.file().len() - TAIL_BYTES as usize;
        Some(u32_at(self.file(), tail + CHECKED_TAIL_BYTES))
    }

    /// CRC32C of the bytes behind the data; for a file without trailer, of its pickled index.
    pub fn index_crc32c(&self) -> u32 {
        crc32c::crc32c(&self.file()[(HEADER_BYTES + self.data_bytes()) as usize..])
    }

    /// Tells the system how the file will be read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        let advice = match pattern {
            AccessPattern::Normal => Advice::Normal,
            AccessPattern::Sequential => Advice::Sequential,
            AccessPattern::Random => Advice::Random,
        };
        self.map().advise(advice).map_err(Error::io(self.path()))
    }

    /// Asks the system to read the pages of tokens `tokens` now, without waiting for them.
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

/// Places of two offsets, one at or before the one that is sought, the other behind it.
struct Bracket {
    low: u64,
    low_offset: u64,
    high: u64,
    high_offset: u64,
}

impl Bracket {
    /// A place before and one behind the likely one; none if all is near.
    fn guesses(&self, offset: u64) -> impl Iterator<Item = u64> + use<> {
        let len = self.high - self.low;
        let share = (offset - self.low_offset) as f64 / (self.high_offset - self.low_offset) as f64;
        let guess = self.low + (share * len as f64) as u64;
        // The sum of n lengths is off by about the square root of n of them.
        let reach = (len as f64).sqrt() as u64;
        let places = [
            guess.saturating_sub(reach).max(self.low),
            (guess + reach).min(self.high),
        ];
        places
            .into_iter()
            .take(if len > FEW_DOCUMENTS { 2 } else { 0 })
    }

    /// Moves one end to `place`, where `found` stands, if it is within: damaged offsets may say anything.
    fn narrow(&mut self, place: u64, found: u64, offset: u64) {
        if place <= self.low || place >= self.high {
            return;
        }
        if found <= offset {
            (self.low, self.low_offset) = (place, found);
        } else {
            (self.high, self.high_offset) = (place, found);
        }
    }
}
