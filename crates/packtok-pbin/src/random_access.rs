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
use crate::reader::Reader;
use crate::trailer::{
    CHECKED_DATA_BYTES, CHECKED_TAIL_BYTES, DATA_CHECKSUMS, OFFSETS, TAIL_BYTES, u32_at,
};

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
            return Err(Error::NoSuchTokens {
                path: self.path().into(),
                start: token,
                stop: token.saturating_add(1),
                tokens: self.num_tokens(),
            });
        }
        let offset = token * self.width().bytes();
        // The first offset is 0 and the last is past every token: both were checked at opening.
        let (mut low, mut high) = (0, self.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.offset(middle) <= offset {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.document_span(low)?;
        Ok(low)
    }

    /// Tokens of document `i`, counted from the start of the data.
    ///
    /// # Errors
    /// As [`Reader::document_span`].
    pub fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        let span = self.document_span(i)?;
        let width = self.width().bytes();
        Ok(span.start / width..span.end / width)
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
        let start = HEADER_BYTES + tokens.start.saturating_mul(self.width().bytes());
        let bytes = self.tokens(tokens)?.len();
        self.map()
            .advise_range(Advice::WillNeed, start as usize, bytes)
            .map_err(Error::io(self.path()))
    }
}
