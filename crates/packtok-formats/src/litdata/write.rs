//! Writes the bytes before the ids of a chunk.

use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::TokenWidth;

use crate::error::{Error, Result};
use crate::npy::Element;
use crate::token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};

/// The largest chunk: positions in it are 32 bits wide.
pub const MAX_CHUNK_BYTES: u64 = u32::MAX as u64;

/// How litdata writes chunks.
pub(crate) struct Litdata;

impl TokenWrite for Litdata {
    fn paths(output: &Path) -> OutputPaths {
        let prefix = without_ending(output, &["bin"]);
        OutputPaths::of_data(with_suffix(&prefix, ".bin"), Vec::new())
    }

    fn element(width: TokenWidth) -> Element {
        Element::signed_if_four_bytes(width)
    }

    fn header(path: &Path, tokens: &impl TokensToWrite) -> Result<Vec<u8>> {
        encode_header(
            tokens.width(),
            tokens.num_documents(),
            tokens.lengths(),
            path,
        )
    }
}

/// The path of chunk `i` of a folder.
pub fn chunk_path(folder: &Path, i: usize) -> PathBuf {
    folder.join(format!("chunk-0-{i}"))
}

/// The bytes before the ids of the chunk at `path`: the number of documents, which have `lengths`
/// tokens of this width, and the position of each.
///
/// # Errors
/// [`Error::LitdataChunkTooLarge`]; a length is an error.
pub(super) fn encode_header(
    width: TokenWidth,
    num_documents: u64,
    lengths: impl Iterator<Item = Result<u64>>,
    path: &Path,
) -> Result<Vec<u8>> {
    let too_large = |bytes| Error::LitdataChunkTooLarge {
        path: path.into(),
        found: bytes,
    };
    let first = num_documents.saturating_mul(4).saturating_add(8);
    let mut position = u32::try_from(first).map_err(|_| too_large(first))?;
    let mut header = Vec::with_capacity(position as usize);
    // As the positions do, their number fits.
    header.extend_from_slice(&(num_documents as u32).to_le_bytes());
    header.extend_from_slice(&position.to_le_bytes());
    for length in lengths {
        let end = length?
            .saturating_mul(width.bytes())
            .saturating_add(position.into());
        position = u32::try_from(end).map_err(|_| too_large(end))?;
        header.extend_from_slice(&position.to_le_bytes());
    }
    Ok(header)
}
