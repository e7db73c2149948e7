//! What every token file has, whatever its format.

use std::ops::Range;
use std::path::Path;

use packtok_pbin::{AccessPattern, HEADER_BYTES, Metadata, Reader, TokenWidth};

use crate::error::Result;
use crate::format::TokenFormat;
use crate::loss_mask::LossMask;

/// An open token file: tokens of one width, divided into documents, and what the file knows of them.
///
/// The methods that have a body are those of a file that records no more than tokens and documents.
pub trait TokenRead {
    /// The format of the file.
    fn format(&self) -> TokenFormat;

    /// The path that was opened.
    fn path(&self) -> &Path;

    /// Bytes of one token.
    fn width(&self) -> TokenWidth;

    /// Number of documents.
    fn num_documents(&self) -> u64;

    /// Number of tokens in all documents.
    fn num_tokens(&self) -> u64;

    /// Bytes of the file, and of those beside it that record its documents.
    fn file_bytes(&self) -> u64;

    /// Tokens as little-endian bytes.
    ///
    /// # Errors
    /// A range that is out of bounds or decreasing; an id in it does not fit in the width.
    fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]>;

    /// As [`TokenRead::tokens`]; `None` instead of an error, or if ids have not been copied yet.
    fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]>;

    /// The tokens of document `i`, as a range.
    ///
    /// # Errors
    /// The document does not exist, or the index is damaged there.
    fn document_tokens(&self, i: u64) -> Result<Range<u64>>;

    /// The documents starting with the one that contains token `token`, each with its tokens,
    /// including empty ones.
    ///
    /// # Errors
    /// There is no such token. The iterator returns an error where the index is damaged.
    fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_>;

    /// The position in [`TokenRead::data_path`] of the first token; `None` if the file does not store the
    /// tokens in the form that [`TokenRead::tokens`] returns.
    fn data_position(&self) -> Option<u64>;

    /// CRC32C of the index of the documents, computed from its bytes.
    fn index_crc32c(&self) -> u32;

    /// Advises the system how the tokens will be read.
    ///
    /// # Errors
    /// The system rejects the advice.
    fn advise(&self, pattern: AccessPattern) -> Result<()>;

    /// Asks the system to read the pages of `tokens`, without waiting.
    ///
    /// # Errors
    /// The range is out of bounds, or the system rejects the advice.
    fn prefetch(&self, tokens: Range<u64>) -> Result<()>;

    /// Removes pages of the file that were read from this process's memory. They stay in the
    /// system's cache. For passes over files that are larger than the memory that a caller may
    /// use.
    fn release_pages(&self);

    /// The path of the file that has the tokens; different from [`TokenRead::path`] where a dataset
    /// has several files.
    fn data_path(&self) -> &Path {
        self.path()
    }

    /// The meaning of the ids, or `None` if the file does not record it.
    ///
    /// # Errors
    /// The metadata is damaged.
    fn metadata(&self) -> Result<Option<&Metadata>> {
        Ok(None)
    }

    /// Whether the file records which tokens count in the loss.
    fn has_loss_mask(&self) -> bool {
        false
    }

    /// Whether each token counts in the loss where it is a label; `None` if the file does not record it, so
    /// that all do.
    fn loss_mask(&self) -> Option<LossMask<'_>> {
        None
    }

    /// Verifies the loss mask: its checksum, or that its bytes are 0 and 1. Does nothing if there is none.
    ///
    /// # Errors
    /// The mask is damaged.
    fn verify_loss_mask(&self) -> Result<()> {
        Ok(())
    }

    /// What the file records besides tokens, documents and a loss mask, and no other format has room for:
    /// `sequences` of documents, and their `modes`; other columns.
    fn extras(&self) -> &[String] {
        &[]
    }

    /// The names of extras that say how tokens count in the loss, but are no loss mask: labels of other ids,
    /// weights, padding. Who trains with the tokens and without these columns trains something else.
    fn unusable_masks(&self) -> &[String] {
        &[]
    }

    /// Number of tokens of the last document, if it has no EOS although the others have; otherwise 0.
    fn tail_tokens(&self) -> u64 {
        0
    }

    /// Whether the ids are signed integers that are read as unsigned ones, so that a negative id, which no
    /// tokenizer gives, is a large one. Checking that when tokens are read would cost more than reading.
    fn has_signed_ids(&self) -> bool {
        false
    }

    /// Checks that none of these tokens is a negative id.
    ///
    /// # Errors
    /// One is negative; as [`TokenRead::tokens`].
    fn check_signs(&self, _tokens: Range<u64>) -> Result<()> {
        Ok(())
    }

    /// Whether the file has checksums of its data.
    fn has_data_checksums(&self) -> bool {
        false
    }

    /// Verifies the checksum of a piece of the data, of
    /// [`CHECKED_DATA_BYTES`](packtok_pbin::CHECKED_DATA_BYTES).
    ///
    /// # Errors
    /// The checksum differs.
    fn verify_data_piece(&self, _piece: u64) -> Result<()> {
        Ok(())
    }

    /// Verifies the checksum of the document offsets.
    ///
    /// # Errors
    /// The checksum differs.
    fn verify_offsets(&self) -> Result<()> {
        Ok(())
    }

    /// The checksum that identifies the complete content; `None` if the file does not record one.
    fn content_crc32c(&self) -> Option<u32> {
        None
    }

    /// Bytes of all tokens.
    fn data_bytes(&self) -> u64 {
        self.num_tokens() * self.width().bytes()
    }
}

impl TokenRead for Reader {
    fn format(&self) -> TokenFormat {
        TokenFormat::Pbin
    }

    fn path(&self) -> &Path {
        self.path()
    }

    fn width(&self) -> TokenWidth {
        self.width()
    }

    fn num_documents(&self) -> u64 {
        self.len()
    }

    #[inline]
    fn num_tokens(&self) -> u64 {
        self.num_tokens()
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes()
    }

    fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        Ok(self.tokens(tokens)?)
    }

    #[inline]
    fn tokens_if_there(&self, tokens: Range<u64>) -> Option<&[u8]> {
        self.tokens_if_there(tokens)
    }

    fn document_tokens(&self, i: u64) -> Result<Range<u64>> {
        Ok(self.document_tokens(i)?)
    }

    fn documents_from(
        &self,
        token: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Range<u64>)>> + '_> {
        Ok(self.documents_from(token)?.map(|document| Ok(document?)))
    }

    fn data_position(&self) -> Option<u64> {
        Some(HEADER_BYTES)
    }

    fn index_crc32c(&self) -> u32 {
        self.index_crc32c()
    }

    fn advise(&self, pattern: AccessPattern) -> Result<()> {
        Ok(self.advise(pattern)?)
    }

    fn prefetch(&self, tokens: Range<u64>) -> Result<()> {
        Ok(self.prefetch(tokens)?)
    }

    fn release_pages(&self) {
        self.release_pages();
    }

    fn metadata(&self) -> Result<Option<&Metadata>> {
        Ok(self.metadata()?)
    }

    #[inline]
    fn has_loss_mask(&self) -> bool {
        self.has_loss_mask()
    }

    fn loss_mask(&self) -> Option<LossMask<'_>> {
        self.loss_mask().map(LossMask::from)
    }

    fn verify_loss_mask(&self) -> Result<()> {
        Ok(self.verify_loss_mask()?)
    }

    fn has_data_checksums(&self) -> bool {
        self.has_data_checksums()
    }

    fn verify_data_piece(&self, piece: u64) -> Result<()> {
        Ok(self.verify_data_piece(piece)?)
    }

    fn verify_offsets(&self) -> Result<()> {
        Ok(self.verify_offsets()?)
    }

    fn content_crc32c(&self) -> Option<u32> {
        self.trailer_crc32c()
    }
}
