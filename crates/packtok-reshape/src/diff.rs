//! Compares the documents of token files, whatever their formats.

use std::ops::Range;

use packtok_formats::TokenFile;
use packtok_jobs::{Monitor, Progress};
use serde::Serialize;

use crate::error::Result;

/// Documents that are compared between two reports of progress.
const STEP_DOCUMENTS: u64 = 1024;

/// The first difference between two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The first document that differs, or that only one side has.
    pub document: u64,
    /// Position in the document of the first id that differs, or that only one document has. `None`
    /// if only one side has the document.
    pub token: Option<u64>,
    /// The id on the first side, if it has that token.
    pub first: Option<u32>,
    /// The id on the second side, if it has that token.
    pub second: Option<u32>,
}

/// The first difference between the documents of these files and of those; `None` if all are the same.
///
/// # Errors
/// A file is damaged; the monitor breaks.
pub fn first_difference(
    first: &[TokenFile],
    second: &[TokenFile],
    monitor: &mut Monitor<'_>,
) -> Result<Option<Difference>> {
    let total_bytes = first.iter().map(TokenFile::data_bytes).sum();
    difference_of(
        documents_of(first),
        documents_of(second),
        total_bytes,
        monitor,
    )
}

/// The number of documents, and the tokens of each with their file.
pub(crate) type Documents<I> = (u64, I);

/// All documents of `files`.
pub(crate) fn documents_of(
    files: &[TokenFile],
) -> Documents<impl Iterator<Item = packtok_formats::Result<(&TokenFile, Range<u64>)>>> {
    let documents = files.iter().flat_map(|file| {
        let numbers = 0..file.num_documents();
        numbers.map(move |document| Ok((file, file.document_tokens(document)?)))
    });
    let num_documents = files.iter().map(TokenFile::num_documents).sum();
    (num_documents, documents)
}

/// As [`first_difference`], of documents that are tokens of any files.
pub(crate) fn difference_of<'a>(
    (num_first, documents): Documents<
        impl Iterator<Item = packtok_formats::Result<(&'a TokenFile, Range<u64>)>>,
    >,
    (num_second, other_documents): Documents<
        impl Iterator<Item = packtok_formats::Result<(&'a TokenFile, Range<u64>)>>,
    >,
    total_bytes: u64,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Difference>> {
    let mut bytes_read = 0;
    for (document, (span, other_span)) in (0..).zip(documents.zip(other_documents)) {
        let ((first, tokens), (second, other_tokens)) = (span?, other_span?);
        let bytes = first.tokens(tokens)?;
        let other_bytes = second.tokens(other_tokens)?;
        let is_same = first.width() == second.width() && bytes == other_bytes;
        if !is_same && let Some(token) = first_different_token(first, bytes, second, other_bytes) {
            return Ok(Some(Difference { document, ..token }));
        }
        bytes_read += bytes.len() as u64;
        if document % STEP_DOCUMENTS == 0 {
            let progress = Progress {
                bytes_read,
                total_bytes,
                documents: document,
                ..Progress::default()
            };
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
    }
    Ok((num_first != num_second).then_some(Difference {
        document: num_first.min(num_second),
        token: None,
        first: None,
        second: None,
    }))
}

/// The first difference within a document.
fn first_different_token(
    first: &TokenFile,
    bytes: &[u8],
    second: &TokenFile,
    other_bytes: &[u8],
) -> Option<Difference> {
    let (mut ids, mut other_ids) = (first.width().ids(bytes), second.width().ids(other_bytes));
    (0..).find_map(|token| match (ids.next(), other_ids.next()) {
        (None, None) => Some(None),
        (id, other_id) if id == other_id => None,
        (id, other_id) => Some(Some(Difference {
            document: 0,
            token: Some(token),
            first: id,
            second: other_id,
        })),
    })?
}
