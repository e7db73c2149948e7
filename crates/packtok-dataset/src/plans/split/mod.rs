//! Train and validation: assigns each document to a side of a split.
//!
//! Responsible for the rules that assign a document to a side. `runs` stores the sides.

mod hash;
mod runs;
mod side;

use std::ops::Range;
use std::path::Path;

use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};
use crate::plans::plan_file::{DataFingerprint, Key, Kind};
pub use hash::{document_hash, least_train_hash};
use runs::RunsWriter;
pub use runs::{SplitRun, SplitRuns};
pub use side::Side;

/// The properties of a document that its hash depends on.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// The tokens of the document, as a range of the complete stream.
    pub tokens: Range<u64>,
    /// The tokens of the document as bytes, in the file's token width.
    pub bytes: &'a [u8],
}

/// The key of the file written by [`write_by_hash`].
pub fn key_by_hash(data: DataFingerprint, fraction: f64, seed: u64) -> Key {
    Key {
        kind: Kind::SplitByHash,
        options: [seed, least_train_hash(fraction)],
        data,
    }
}

/// The key of the file written by [`write_at`].
pub fn key_at(data: DataFingerprint, first_validation_document: u64) -> Key {
    Key {
        kind: Kind::SplitAt,
        options: [first_validation_document, 0],
        data,
    }
}

/// Assigns every document a side that depends only on its tokens and a seed, and publishes `dst`.
///
/// Equal documents are on the same side, and adding or removing other documents does not change
/// the side of a document. About the fraction of documents in `key` is held out.
///
/// # Errors
/// The errors of `documents`; the file cannot be written.
pub fn write_by_hash<'a>(
    dst: &Path,
    key: Key,
    documents: impl Iterator<Item = Result<Document<'a>>>,
    width: TokenWidth,
) -> Result<()> {
    let [seed, least_train_hash] = key.options;
    let mut writer = RunsWriter::create(dst, key)?;
    for document in documents {
        let Document { tokens, bytes } = document?;
        let side = if document_hash(bytes, width, seed) < least_train_hash {
            Side::Validation
        } else {
            Side::Train
        };
        writer.push(side, 1, tokens.end - tokens.start)?;
    }
    writer.publish()
}

/// Holds out all documents from the document in `key` on, and publishes `dst`.
///
/// `num_train_tokens` is the number of tokens before that document.
///
/// # Errors
/// [`Error::NoSuchSplit`] if the document does not exist; the file cannot be written.
pub fn write_at(
    dst: &Path,
    key: Key,
    num_train_tokens: u64,
    num_documents: u64,
    num_tokens: u64,
) -> Result<()> {
    let document = key.options[0];
    let num_validation_documents =
        num_documents
            .checked_sub(document)
            .ok_or(Error::NoSuchSplit {
                document,
                num_documents,
            })?;
    let mut writer = RunsWriter::create(dst, key)?;
    writer.push(Side::Train, document, num_train_tokens)?;
    writer.push(
        Side::Validation,
        num_validation_documents,
        num_tokens - num_train_tokens,
    )?;
    writer.publish()
}
