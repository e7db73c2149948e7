//! Counts of one token file.

use std::path::Path;

use packtok_formats::TokenFile;
use serde::Serialize;

use crate::error::Result;

/// Counts of a token file.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// Number of documents in the file.
    pub documents: u64,
    /// Number of tokens in the file.
    pub tokens: u64,
    /// Complete chunks within documents: the sum of length ÷ chunk length, rounded down.
    pub chunks: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC32C of all bytes of an NPY file, or of the index of a dataset with one, if requested.
    pub crc32c: Option<u32>,
}

/// Counts the documents, tokens and chunks of `chunk_tokens` tokens of the file at `path`.
///
/// # Errors
/// The file is damaged.
pub fn facts(path: &Path, chunk_tokens: u64, has_crc32c: bool) -> Result<Facts> {
    let file = TokenFile::open(path)?;
    let mut chunks = 0;
    let mut add = |length: u64| chunks += length.checked_div(chunk_tokens).unwrap_or(0);
    match &file {
        TokenFile::Npy(npy) => npy.document_lengths().for_each(&mut add),
        TokenFile::Pbin(_) | TokenFile::Raw(_) | TokenFile::Flat(_) => {
            for document in 0..file.num_documents() {
                let tokens = file.document_tokens(document)?;
                add(tokens.end - tokens.start);
            }
        }
    }
    let crc32c = match &file {
        TokenFile::Npy(npy) if has_crc32c => Some(npy.crc32c()),
        TokenFile::Flat(_) if has_crc32c => Some(file.index_crc32c()),
        _ => None,
    };
    Ok(Facts {
        documents: file.num_documents(),
        tokens: file.num_tokens(),
        chunks,
        file_bytes: file.file_bytes(),
        crc32c,
    })
}
