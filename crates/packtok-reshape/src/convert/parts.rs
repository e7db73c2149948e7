//! The tokens of one output: consecutive tokens of one or more files.

use std::ops::Range;

use packtok_formats::{Result as FormatsResult, TokenFile};
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::TokenWidth;

use crate::diff::difference_of;
use crate::error::{Error, Result};

/// Tokens that are copied between two reports of progress.
const STEP_TOKENS: u64 = 16 << 20;

/// Consecutive documents of a file. Where `tokens` starts or stops within a document, that is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) documents: Range<u64>,
    pub(super) tokens: Range<u64>,
}

/// Spans of files, in order.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a>(Vec<(&'a TokenFile, Span)>);

impl<'a> Parts<'a> {
    pub(super) fn new(parts: Vec<(&'a TokenFile, Span)>) -> Self {
        Self(parts)
    }

    /// All tokens of these files.
    pub(super) fn whole(files: impl IntoIterator<Item = &'a TokenFile>) -> Self {
        let span = |file: &TokenFile| Span {
            documents: 0..file.num_documents(),
            tokens: 0..file.num_tokens(),
        };
        Self(files.into_iter().map(|file| (file, span(file))).collect())
    }

    /// The file of which these are all tokens; `None` if there are several files, or a part of one.
    pub(super) fn as_whole_file(&self) -> Option<&'a TokenFile> {
        let [(file, span)] = &self.0[..] else {
            return None;
        };
        let is_whole =
            span.tokens == (0..file.num_tokens()) && span.documents == (0..file.num_documents());
        is_whole.then_some(*file)
    }

    /// The files with the numbers of their documents.
    pub(super) fn documents(&self) -> Vec<(&'a TokenFile, Range<u64>)> {
        let parts = self.0.iter();
        parts
            .map(|(file, span)| (*file, span.documents.clone()))
            .collect()
    }

    /// The first file.
    pub(super) fn first_file(&self) -> Option<&'a TokenFile> {
        self.0.first().map(|(file, _)| *file)
    }

    pub(super) fn num_documents(&self) -> u64 {
        let parts = self.0.iter();
        parts
            .map(|(_, span)| span.documents.end - span.documents.start)
            .sum()
    }

    pub(super) fn num_tokens(&self) -> u64 {
        let parts = self.0.iter();
        parts
            .map(|(_, span)| span.tokens.end - span.tokens.start)
            .sum()
    }

    /// The greatest width of the files.
    pub(super) fn width(&self) -> TokenWidth {
        let widths = self.0.iter().map(|(file, _)| file.width());
        widths
            .max_by_key(|width| width.bytes())
            .unwrap_or(TokenWidth::U16)
    }

    /// The documents with their files; of a cut document, its part.
    pub(super) fn document_spans(
        &self,
    ) -> impl Iterator<Item = FormatsResult<(&'a TokenFile, Range<u64>)>> + '_ {
        self.0.iter().flat_map(|(file, span)| {
            span.documents.clone().map(move |i| {
                let tokens = file.document_tokens(i)?;
                let start = tokens.start.max(span.tokens.start);
                let end = tokens.end.min(span.tokens.end);
                Ok((*file, start..end.max(start)))
            })
        })
    }

    /// The numbers of tokens of the documents; of a cut document, those of its part.
    pub(super) fn lengths(&self) -> impl Iterator<Item = FormatsResult<u64>> + '_ {
        self.document_spans()
            .map(|span| span.map(|(_, tokens)| tokens.end - tokens.start))
    }

    /// Calls `each` with the tokens of one step after the other, and reports progress in between.
    ///
    /// # Errors
    /// Those of `each`; the monitor breaks.
    pub(super) fn for_each_step(
        &self,
        monitor: &mut Monitor<'_>,
        mut each: impl FnMut(&'a TokenFile, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let width = self.width().bytes();
        let (total_bytes, mut tokens) = (self.num_tokens() * width, 0);
        for (file, span) in &self.0 {
            let mut first = span.tokens.start;
            while first < span.tokens.end {
                let stop = (first + STEP_TOKENS).min(span.tokens.end);
                each(file, first..stop)?;
                file.release_pages();
                tokens += stop - first;
                first = stop;
                let progress = Progress {
                    bytes_read: tokens * width,
                    total_bytes,
                    tokens,
                    ..Progress::default()
                };
                if monitor(&progress).is_break() {
                    return Err(packtok_jobs::Error::Cancelled.into());
                }
            }
        }
        Ok(())
    }

    /// The first document that differs from those of `file`; `None` if all are the same.
    pub(super) fn first_difference(
        &self,
        file: &TokenFile,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<u64>> {
        let total_bytes = self.num_tokens() * self.width().bytes();
        let documents = (self.num_documents(), self.document_spans());
        let difference = difference_of(documents, total_bytes, file, monitor)?;
        Ok(difference.map(|difference| difference.document))
    }
}

/// Checks that all ids of a range of tokens are at most `max_id`, which `dtype` can hold.
///
/// # Errors
/// [`Error::IdBeyondType`].
pub(super) fn check_ids(
    file: &TokenFile,
    tokens: Range<u64>,
    max_id: u32,
    dtype: &'static str,
) -> Result<()> {
    if max_id >= file.width().max_id() {
        return Ok(());
    }
    let ids = file.width().ids(file.tokens(tokens.clone())?);
    let Some((id, token)) = ids.zip(tokens.start..).find(|&(id, _)| id > max_id) else {
        return Ok(());
    };
    let (document, tokens) = match file.documents_from(token)?.next() {
        Some(document) => document?,
        None => (0, 0..0),
    };
    Err(Error::IdBeyondType {
        path: file.path().into(),
        token: token.saturating_sub(tokens.start),
        document,
        id,
        dtype,
    })
}

/// Appends ids in another width. Every id must fit.
pub(super) fn convert_width(bytes: &[u8], from: TokenWidth, to: TokenWidth, out: &mut Vec<u8>) {
    let ids = from.ids(bytes);
    match to {
        _ if from == to => out.extend_from_slice(bytes),
        TokenWidth::U8 => out.extend(ids.map(|id| id as u8)),
        TokenWidth::U16 => ids.for_each(|id| out.extend((id as u16).to_le_bytes())),
        TokenWidth::U32 => ids.for_each(|id| out.extend(id.to_le_bytes())),
    }
}
