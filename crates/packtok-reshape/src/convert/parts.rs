//! The tokens of one output: consecutive tokens of one or more files.

use std::ops::Range;
use std::path::Path;

use packtok_formats::{Result as FormatsResult, TokenFile, TokenFormat};
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::TokenWidth;

use crate::diff::{difference_of, documents_of};
use crate::error::{Error, Result};

/// Tokens that are copied between two reports of progress.
const STEP_TOKENS: u64 = 16 << 20;

/// Documents that are written between two reports of progress.
const STEP_DOCUMENTS: u64 = 1024;

/// Consecutive documents of a file. Where `tokens` starts or stops within a document, that is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) documents: Range<u64>,
    pub(super) tokens: Range<u64>,
}

/// Spans of files, in order.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a> {
    spans: Vec<(&'a TokenFile, Span)>,
    /// The file that outputs record as their source; `None` for the file of each span.
    source: Option<&'a Path>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(parts: Vec<(&'a TokenFile, Span)>) -> Self {
        Self {
            spans: parts,
            source: None,
        }
    }

    /// The same tokens, with another file as their source.
    pub(super) fn with_source(self, source: Option<&'a Path>) -> Self {
        Self { source, ..self }
    }

    /// The name that outputs record for a file as their source.
    pub(super) fn source_name(&self, file: &TokenFile) -> String {
        let path = self.source.unwrap_or(file.path());
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// All tokens of these files.
    pub(super) fn whole(files: impl IntoIterator<Item = &'a TokenFile>) -> Self {
        let span = |file: &TokenFile| Span {
            documents: 0..file.num_documents(),
            tokens: 0..file.num_tokens(),
        };
        Self::new(files.into_iter().map(|file| (file, span(file))).collect())
    }

    /// The file of which these are all tokens; `None` if there are several files, or a part of one.
    pub(super) fn as_whole_file(&self) -> Option<&'a TokenFile> {
        let [(file, span)] = &self.spans[..] else {
            return None;
        };
        let is_whole =
            span.tokens == (0..file.num_tokens()) && span.documents == (0..file.num_documents());
        is_whole.then_some(*file)
    }

    /// The files with the numbers of their documents.
    pub(super) fn documents(&self) -> Vec<(&'a TokenFile, Range<u64>)> {
        let parts = self.spans.iter();
        parts
            .map(|(file, span)| (*file, span.documents.clone()))
            .collect()
    }

    /// The first file.
    pub(super) fn first_file(&self) -> Option<&'a TokenFile> {
        self.spans.first().map(|(file, _)| *file)
    }

    pub(super) fn num_documents(&self) -> u64 {
        let parts = self.spans.iter();
        parts
            .map(|(_, span)| span.documents.end - span.documents.start)
            .sum()
    }

    pub(super) fn num_tokens(&self) -> u64 {
        let parts = self.spans.iter();
        parts
            .map(|(_, span)| span.tokens.end - span.tokens.start)
            .sum()
    }

    /// The greatest width of the files.
    pub(super) fn width(&self) -> TokenWidth {
        let widths = self.spans.iter().map(|(file, _)| file.width());
        widths
            .max_by_key(|width| width.bytes())
            .unwrap_or(TokenWidth::U16)
    }

    /// The documents with their files; of a cut document, its part.
    pub(super) fn document_spans(
        &self,
    ) -> impl Iterator<Item = FormatsResult<(&'a TokenFile, Range<u64>)>> + '_ {
        self.spans.iter().flat_map(|(file, span)| {
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
        for (file, span) in &self.spans {
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

    /// Calls `each` with one document after the other, and reports progress in between.
    ///
    /// # Errors
    /// Those of `each`; an index is damaged; the monitor breaks.
    pub(super) fn for_each_document(
        &self,
        monitor: &mut Monitor<'_>,
        mut each: impl FnMut(&'a TokenFile, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let width = self.width().bytes();
        let mut progress = Progress {
            total_bytes: self.num_tokens() * width,
            ..Progress::default()
        };
        for span in self.document_spans() {
            let (file, tokens) = span?;
            let num_tokens = tokens.end - tokens.start;
            each(file, tokens)?;
            progress.tokens += num_tokens;
            progress.bytes_read += num_tokens * width;
            progress.documents += 1;
            if progress.documents.is_multiple_of(STEP_DOCUMENTS) {
                file.release_pages();
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
        let others = documents_of(std::slice::from_ref(file));
        let difference = difference_of(documents, others, total_bytes, monitor)?;
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
    match first_beyond(file, tokens, u64::from(max_id) + 1)? {
        None => Ok(()),
        Some((document, token, id)) => Err(Error::IdBeyondType {
            path: file.path().into(),
            token,
            document,
            id,
            dtype,
        }),
    }
}

/// Checks that the ids of a range of tokens are in the vocabulary. Those of pbins that name their tokenizer are:
/// packing wrote them.
///
/// # Errors
/// [`Error::IdBeyondVocab`].
pub(crate) fn check_vocabulary(
    file: &TokenFile,
    tokens: Range<u64>,
    vocab_size: u64,
) -> Result<()> {
    if names_its_tokenizer(file) {
        return Ok(());
    }
    match first_beyond(file, tokens, vocab_size)? {
        None => Ok(()),
        Some((document, token, id)) => Err(Error::IdBeyondVocab {
            path: file.path().into(),
            document,
            token,
            id,
            vocab_size,
        }),
    }
}

/// Checks that no document is empty, if the format has no room for that.
///
/// # Errors
/// [`Error::EmptyDocument`].
pub(super) fn check_no_empty_documents(to: TokenFormat, files: &[TokenFile]) -> Result<()> {
    if to != TokenFormat::Mds {
        return Ok(());
    }
    for file in files {
        for document in 0..file.num_documents() {
            if file.document_tokens(document)?.is_empty() {
                return Err(Error::EmptyDocument {
                    path: file.path().into(),
                    document,
                    format: to.name(),
                });
            }
        }
    }
    Ok(())
}

/// Whether a file is a pbin that names its tokenizer.
pub(super) fn names_its_tokenizer(file: &TokenFile) -> bool {
    let TokenFile::Pbin(reader) = file else {
        return false;
    };
    let metadata = reader.metadata().ok().flatten();
    metadata.is_some_and(|metadata| metadata.tokenizer.is_some())
}

/// The first of the tokens whose id is not below `limit`: its document, its position there, and the id.
fn first_beyond(
    file: &TokenFile,
    tokens: Range<u64>,
    limit: u64,
) -> Result<Option<(u64, u64, u32)>> {
    if limit > file.width().max_id().into() {
        return Ok(None);
    }
    let bytes = file.tokens(tokens.clone())?;
    let is_beyond = |id: u32| u64::from(id) >= limit;
    if !is_beyond(file.width().greatest_id(bytes)) {
        return Ok(None);
    }
    let mut ids = file.width().ids(bytes).zip(tokens.start..);
    let Some((id, token)) = ids.find(|&(id, _)| is_beyond(id)) else {
        return Ok(None);
    };
    let document = file.documents_from(token)?.next().transpose()?;
    let (document, tokens) = document.unwrap_or((0, 0..0));
    Ok(Some((document, token.saturating_sub(tokens.start), id)))
}

/// Appends ids in another width. Every id must fit.
pub(crate) fn convert_width(bytes: &[u8], from: TokenWidth, to: TokenWidth, out: &mut Vec<u8>) {
    use TokenWidth::{U8, U16, U32};
    match (from, to) {
        (U8, U16) => append::<1, 2>(bytes, out),
        (U8, U32) => append::<1, 4>(bytes, out),
        (U16, U8) => append::<2, 1>(bytes, out),
        (U16, U32) => append::<2, 4>(bytes, out),
        (U32, U8) => append::<4, 1>(bytes, out),
        (U32, U16) => append::<4, 2>(bytes, out),
        (U8, U8) | (U16, U16) | (U32, U32) => out.extend_from_slice(bytes),
    }
}

/// Appends little-endian numbers of `FROM` bytes as numbers of `TO` bytes.
fn append<const FROM: usize, const TO: usize>(bytes: &[u8], out: &mut Vec<u8>) {
    let ids = bytes.as_chunks::<FROM>().0;
    let start = out.len();
    out.resize(start + ids.len() * TO, 0);
    let written = out[start..].as_chunks_mut::<TO>().0;
    let num_kept = FROM.min(TO);
    for (written, id) in written.iter_mut().zip(ids) {
        written[..num_kept].copy_from_slice(&id[..num_kept]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_in_every_width() {
        let widths = [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32];
        let ids = [0, 1, 127, 200, 255];
        for from in widths {
            let mut bytes = Vec::new();
            convert_width(&ids, TokenWidth::U8, from, &mut bytes);
            for to in widths {
                let mut converted = vec![9];
                convert_width(&bytes, from, to, &mut converted);
                let read: Vec<u32> = to.ids(&converted[1..]).collect();
                assert_eq!(read, ids.map(u32::from), "{from:?} {to:?}");
                assert_eq!(to.greatest_id(&converted[1..]), 255);
            }
        }
    }
}
