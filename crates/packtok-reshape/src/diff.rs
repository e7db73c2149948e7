//! Compares the documents of two token files, whatever their formats.

use std::ops::Range;

use packtok_formats::TokenFile;
use packtok_jobs::{Monitor, Progress};
use serde::Serialize;

use crate::error::Result;

/// Documents that are compared between two reports of progress.
const STEP_DOCUMENTS: u64 = 1024;

/// The first difference between two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The first document that differs, or that only one file has.
    pub document: u64,
    /// Position in the document of the first id that differs, or that only one document has. `None`
    /// if only one file has the document.
    pub token: Option<u64>,
    /// The id in the first file, if it has that token.
    pub first: Option<u32>,
    /// The id in the second file, if it has that token.
    pub second: Option<u32>,
}

/// The first difference between the documents of two files; `None` if all are the same.
///
/// # Errors
/// A file is damaged; the monitor breaks.
pub fn first_difference(
    first: &TokenFile,
    second: &TokenFile,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Difference>> {
    let num_documents = first.num_documents();
    let documents = (0..num_documents).map(|i| Ok((first, first.document_tokens(i)?)));
    let documents = (num_documents, documents);
    difference_of(documents, first.data_bytes(), second, monitor)
}

/// As [`first_difference`], of documents that are tokens of any files, given with their number.
pub(crate) fn difference_of<'a>(
    (num_first, documents): (
        u64,
        impl Iterator<Item = packtok_formats::Result<(&'a TokenFile, Range<u64>)>>,
    ),
    total_bytes: u64,
    second: &TokenFile,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Difference>> {
    let num_documents = num_first.min(second.num_documents());
    let mut bytes_read = 0;
    for (document, span) in (0..num_documents).zip(documents) {
        let (first, tokens) = span?;
        let bytes = first.tokens(tokens)?;
        let other_bytes = second.tokens(second.document_tokens(document)?)?;
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
    let has_same_number = num_first == second.num_documents();
    Ok((!has_same_number).then_some(Difference {
        document: num_documents,
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
