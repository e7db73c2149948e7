//! Chunks of files: the documents of each file in chunk `k` of `n`, and the lists of files.

use std::ops::Range;
use std::path::{Path, PathBuf};

use packtok_pbin::ChunkInfo;

use crate::error::{Error, Result};

/// Checks that a chunk exists.
pub(crate) fn checked(chunk: ChunkInfo) -> Result<ChunkInfo> {
    let ChunkInfo { index, count } = chunk;
    if count == 0 {
        return Err(Error::NoChunks);
    }
    if index >= count {
        return Err(Error::NoSuchChunk {
            chunk_id: index,
            num_chunks: count,
        });
    }
    Ok(chunk)
}

/// The documents of a file with `num_documents` documents that are in a chunk. If the division
/// leaves a remainder, the first chunks have one more document.
pub(crate) fn documents(chunk: ChunkInfo, num_documents: u64) -> Range<u64> {
    let (least, remainder) = (num_documents / chunk.count, num_documents % chunk.count);
    let start = chunk.index * least + chunk.index.min(remainder);
    start..start + least + u64::from(chunk.index < remainder)
}

/// The error that no file has a document for a chunk.
pub(super) fn empty(chunk: ChunkInfo, num_documents: &[u64]) -> Error {
    Error::EmptyChunk {
        chunk_id: chunk.index,
        num_chunks: chunk.count,
        num_files: num_documents.len(),
        longest: num_documents.iter().copied().max().unwrap_or(0),
    }
}

/// Reads a list of files: one path per line, relative to `root`, with its suffix replaced by
/// `extension`. Blank lines are skipped.
///
/// # Errors
/// A file does not exist; the list cannot be read, or names no files.
pub fn read_list(list: &Path, root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let bytes = std::fs::read(list).map_err(Error::io(list))?;
    let mut files = Vec::new();
    for (line, bytes) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::ListNotUtf8 {
            list: list.to_owned(),
            line,
        })?;
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let mut path = root.join(text);
        if !path.set_extension(extension) {
            return Err(Error::ListedNoFile {
                list: list.to_owned(),
                line,
                text: text.to_owned(),
            });
        }
        if !path.exists() {
            return Err(Error::ListedMissing {
                list: list.to_owned(),
                line,
                path,
            });
        }
        files.push(path);
    }
    if files.is_empty() {
        return Err(Error::ListEmpty {
            list: list.to_owned(),
        });
    }
    Ok(files)
}
