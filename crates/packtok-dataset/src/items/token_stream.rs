//! The tokens of all files as one stream, and its mapping to pieces of files.
//!
//! Positions in the stream are counted in tokens and called virtual. A piece is a range of tokens
//! of one file. Every piece of a range except its first starts at the start of a document.

use std::ops::Range;

use packtok_formats::TokenFile;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::file_set::Files;
use crate::files::fingerprint::DataFingerprint;
use crate::items::ids::{Id, write_ids};
use crate::plans::split::SplitRuns;

/// The concatenated tokens of a dataset.
#[derive(Debug)]
pub struct TokenStream {
    files: Files,
    /// The documents in the stream; `None` for all.
    runs: Option<SplitRuns>,
}

/// Consecutive tokens of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpan {
    /// Ordinal of the file.
    pub file: usize,
    /// Tokens, counted from the start of the file's data.
    pub tokens: Range<u64>,
}

impl FileSpan {
    /// Number of tokens.
    pub fn len(&self) -> u64 {
        self.tokens.end - self.tokens.start
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// Consecutive tokens of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Span {
    /// Virtual tokens, which may cross files.
    Virtual(Range<u64>),
    /// Tokens of a known file, which saves a lookup.
    FileSpan(FileSpan),
}

impl Span {
    /// Number of tokens.
    pub(crate) fn len(&self) -> u64 {
        let (Self::Virtual(tokens) | Self::FileSpan(FileSpan { tokens, .. })) = self;
        tokens.end - tokens.start
    }
}

impl TokenStream {
    /// All tokens of `files` in order.
    pub fn new(files: Files) -> Self {
        Self { files, runs: None }
    }

    /// The tokens of the documents of `files` on one side of a split.
    ///
    /// # Errors
    /// [`Error::SplitDisagrees`] if the split is for other files.
    pub fn selected(files: Files, runs: SplitRuns) -> Result<Self> {
        if runs.totals() != (files.num_documents(), files.num_tokens()) {
            return Err(disagrees(&runs));
        }
        let runs = Some(runs);
        Ok(Self { files, runs })
    }

    /// The underlying files, including documents that the stream does not select.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Whether the stream omits documents of its files.
    pub fn is_selected(&self) -> bool {
        self.runs.is_some()
    }

    /// Identifies this stream. A plan is only valid for one fingerprint.
    pub fn fingerprint(&self) -> DataFingerprint {
        let runs = self.runs.as_ref();
        runs.map_or_else(|| self.files.fingerprint(), SplitRuns::fingerprint)
    }

    /// Identifies the tokens of this stream, also in files that record no checksums.
    ///
    /// # Errors
    /// As [`Files::content_fingerprint`].
    pub fn content_fingerprint(&self) -> Result<DataFingerprint> {
        let files = self.files.content_fingerprint()?;
        Ok(match &self.runs {
            Some(runs) if files == self.files.fingerprint() => runs.fingerprint(),
            Some(runs) => {
                let both = Sha256::new()
                    .chain_update(runs.fingerprint())
                    .chain_update(files);
                both.finalize().into()
            }
            None => files,
        })
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> u64 {
        let runs = self.runs.as_ref();
        runs.map_or_else(|| self.files.num_tokens(), SplitRuns::num_tokens)
    }

    /// Number of documents.
    pub fn num_documents(&self) -> u64 {
        let runs = self.runs.as_ref();
        runs.map_or_else(|| self.files.num_documents(), SplitRuns::num_documents)
    }

    /// Virtual tokens of document `i`, which must be below [`TokenStream::num_documents`].
    ///
    /// # Errors
    /// The errors of opening its file; damaged offsets or a damaged split.
    pub fn document(&self, i: u64) -> Result<Range<u64>> {
        self.neighbours(i)?.tokens(i)
    }

    /// Virtual tokens of all documents in order. Each lookup starts from the previous document.
    pub fn documents(&self) -> impl Iterator<Item = Result<Range<u64>>> + '_ {
        let mut neighbours: Option<Neighbours<'_>> = None;
        (0..self.num_documents()).map(move |i| {
            let known = neighbours.take().filter(|known| i < known.documents.end);
            let known = known.map_or_else(|| self.neighbours(i), Ok)?;
            neighbours.insert(known).tokens(i)
        })
    }

    /// The documents around document `i` in the same file and, with a split, in the same run.
    fn neighbours(&self, i: u64) -> Result<Neighbours<'_>> {
        let Some(runs) = &self.runs else {
            let file = self.files.file_of_document(i);
            let documents = self.files.documents_of(file);
            return Ok(Neighbours {
                token_file: self.files.token_file(file)?,
                first_in_file: 0,
                first_token: self.files.tokens_of(file).start,
                first_token_in_file: 0,
                documents,
                runs: None,
            });
        };
        let run = runs.run_of_document(i)?;
        let document = run.documents.start + (i - run.first_virtual_document);
        let file = self.files.file_of_document(document);
        let (of_file, tokens_of_file) = (self.files.documents_of(file), self.files.tokens_of(file));
        let first = run.documents.start.max(of_file.start);
        let stop = run.documents.end.min(of_file.end);
        let first_token = run.tokens.start.max(tokens_of_file.start);
        let virtual_document = run.first_virtual_document + (first - run.documents.start);
        Ok(Neighbours {
            token_file: self.files.token_file(file)?,
            documents: virtual_document..virtual_document + (stop - first),
            first_in_file: first - of_file.start,
            first_token: run.first_virtual_token + (first_token - run.tokens.start),
            first_token_in_file: first_token - tokens_of_file.start,
            runs: Some(runs),
        })
    }

    /// The first piece of `range`, which must be non-empty and within the stream.
    ///
    /// # Errors
    /// The split is damaged.
    pub fn piece(&self, range: Range<u64>) -> Result<FileSpan> {
        let tokens = match &self.runs {
            None => range,
            Some(runs) => {
                let run = runs.run_of_token(range.start)?;
                let start = run.tokens.start + (range.start - run.first_virtual_token);
                let stop = start.saturating_add(range.end - range.start);
                start..stop.min(run.tokens.end)
            }
        };
        let file = self.files.file_of_token(tokens.start);
        let of_file = self.files.tokens_of(file);
        let stop = tokens.end.min(of_file.end);
        Ok(FileSpan {
            file,
            tokens: tokens.start - of_file.start..stop - of_file.start,
        })
    }

    /// The pieces of `span`, which must be within the stream; none is empty.
    ///
    /// # Errors
    /// As [`TokenStream::piece`]; the iterator ends after an error.
    pub(crate) fn pieces(&self, span: Span) -> impl Iterator<Item = Result<FileSpan>> + '_ {
        let mut rest = Some(span).filter(|span| span.len() > 0);
        std::iter::from_fn(move || {
            let range = match rest.take()? {
                Span::FileSpan(piece) => return Some(Ok(piece)),
                Span::Virtual(range) => range,
            };
            let piece = self.piece(range.clone());
            if let Ok(piece) = &piece
                && piece.len() < range.end - range.start
            {
                rest = Some(Span::Virtual(range.start + piece.len()..range.end));
            }
            Some(piece)
        })
    }

    /// Writes the tokens of `range`, which must be within the stream, to the start of `out`.
    ///
    /// # Errors
    /// [`Error::IdTooLarge`], and the errors of reading files.
    ///
    /// # Panics
    /// If `out` is too short.
    pub fn copy<T: Id>(&self, range: Range<u64>, mut out: &mut [T]) -> Result<()> {
        for piece in self.pieces(Span::Virtual(range)) {
            let piece = piece?;
            let (ids, rest) = out.split_at_mut(piece.len() as usize);
            self.copy_piece(&piece, ids)?;
            out = rest;
        }
        Ok(())
    }

    /// Writes the tokens of `piece` to `out`, which has the same length.
    pub(crate) fn copy_piece<T: Id>(&self, piece: &FileSpan, out: &mut [T]) -> Result<()> {
        let bytes = self.files.tokens(piece.file, piece.tokens.clone())?;
        let written = write_ids(self.files.width(), bytes, out);
        written.map_err(|id| self.too_large::<T>(piece, id))
    }

    /// The error that `T` cannot hold `id`, which is among the tokens of `piece`.
    pub(crate) fn too_large<T: Id>(&self, piece: &FileSpan, id: u32) -> crate::Error {
        Error::IdTooLarge {
            path: self.files.path(piece.file).into(),
            start: piece.tokens.start,
            stop: piece.tokens.end,
            id,
            dtype: T::DTYPE,
        }
    }
}

/// Documents that are adjacent both in a file and in the stream.
struct Neighbours<'a> {
    token_file: &'a TokenFile,
    /// The range of these documents in the stream.
    documents: Range<u64>,
    /// The number of the first document in the file.
    first_in_file: u64,
    /// The first virtual token of the first document.
    first_token: u64,
    /// The first token of the first in the file.
    first_token_in_file: u64,
    /// The split, if documents are selected.
    runs: Option<&'a SplitRuns>,
}

impl Neighbours<'_> {
    /// Virtual tokens of document `i` of the stream, which must be one of `documents`.
    fn tokens(&self, i: u64) -> Result<Range<u64>> {
        let in_file = self.first_in_file + (i - self.documents.start);
        let tokens = self.token_file.document_tokens(in_file)?;
        match (
            tokens.start.checked_sub(self.first_token_in_file),
            self.runs,
        ) {
            (Some(offset), _) => {
                let start = self.first_token + offset;
                Ok(start..start + (tokens.end - tokens.start))
            }
            (None, Some(runs)) => Err(disagrees(runs)),
            // The first document of a file starts at its first token.
            (None, None) => Ok(self.first_token..self.first_token),
        }
    }
}

fn disagrees(runs: &SplitRuns) -> crate::Error {
    let path = runs.path().into();
    Error::SplitDisagrees { path }
}
