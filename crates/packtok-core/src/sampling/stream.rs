//! The tokens of all files as one stream, and which pieces of files a range of it is.
//!
//! Positions in the stream are counted in tokens and called virtual; a piece is a range of tokens of one
//! file. Every piece of a range but its first starts at the start of a document.

use std::ops::Range;

use super::error::Result;
use super::files::Files;

/// The tokens of a dataset, one behind the other.
#[derive(Debug)]
pub struct Stream {
    files: Files,
}

/// Consecutive tokens of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Ordinal of the file.
    pub file: usize,
    /// Tokens, counted from the start of the file's data.
    pub tokens: Range<u64>,
}

impl Piece {
    /// Number of tokens.
    pub fn len(&self) -> u64 {
        self.tokens.end - self.tokens.start
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

impl Stream {
    /// All tokens of `files` in order.
    pub fn new(files: Files) -> Self {
        Self { files }
    }

    /// The files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> u64 {
        self.files.num_tokens()
    }

    /// Number of documents.
    pub fn num_documents(&self) -> u64 {
        self.files.num_documents()
    }

    /// Virtual tokens of document `i`, which must be below [`Stream::num_documents`].
    ///
    /// # Errors
    /// What opening its file may find; its offsets are damaged.
    pub fn document(&self, i: u64) -> Result<Range<u64>> {
        let file = self.files.file_of_document(i);
        let in_file = i - self.files.documents_of(file).start;
        let tokens = self.files.reader(file)?.document_tokens(in_file)?;
        let origin = self.files.tokens_of(file).start;
        Ok(origin + tokens.start..origin + tokens.end)
    }

    /// The first piece of `range`, which must be within the stream and not empty.
    pub fn piece(&self, range: Range<u64>) -> Piece {
        let file = self.files.file_of_token(range.start);
        let of_file = self.files.tokens_of(file);
        let stop = range.end.min(of_file.end);
        Piece {
            file,
            tokens: range.start - of_file.start..stop - of_file.start,
        }
    }

    /// The pieces of `range`, which must be within the stream.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let mut start = range.start;
        std::iter::from_fn(move || {
            (start < range.end).then(|| {
                let piece = self.piece(start..range.end);
                start += piece.len();
                piece
            })
        })
    }
}
