//! The index of a folder that lists its shards: `index.json`, which completes the output.

use std::path::{Path, PathBuf};

use packtok_formats::TokenFormat;
use packtok_formats::litdata::{self, ChunkEntry, IndexedFolder};
use packtok_formats::mds::{self, ShardEntry};
use packtok_jobs::remove_if_there;
use packtok_pack::pack::Existing;
use packtok_pbin::{Replace, TokenWidth};

use super::parts::Parts;
use crate::error::{Error, Result};

/// The entries of the shards that are written.
enum Entries {
    Litdata(Vec<ChunkEntry>),
    Mds(Vec<ShardEntry>),
}

/// The index of the shards that are written.
pub(super) struct FolderIndex {
    entries: Entries,
    /// The width of the ids of all shards.
    width: TokenWidth,
}

impl FolderIndex {
    /// The index, still without shards, of a folder of this format; `None` if the format has none.
    pub(super) fn new(to: TokenFormat) -> Option<Self> {
        let entries = match to {
            TokenFormat::Litdata => Entries::Litdata(Vec::new()),
            TokenFormat::Mds => Entries::Mds(Vec::new()),
            _ => return None,
        };
        let width = TokenWidth::U16;
        Some(Self { entries, width })
    }

    /// Adds the next shard: the file at `path`, which has the tokens `parts` in this width.
    pub(super) fn push(
        &mut self,
        path: &Path,
        parts: &Parts<'_>,
        width: TokenWidth,
        file_bytes: u64,
    ) -> Result<()> {
        let num_documents = parts.num_documents();
        self.width = width;
        match &mut self.entries {
            Entries::Litdata(chunks) => {
                let name = path.file_name().unwrap_or_default();
                chunks.push(ChunkEntry {
                    chunk_bytes: file_bytes,
                    chunk_size: num_documents,
                    dim: Some(parts.num_tokens()),
                    filename: name.to_string_lossy().into_owned(),
                });
            }
            Entries::Mds(shards) => {
                let number = shards.len() as u64;
                let entry = mds::tokens_entry(number, width, num_documents, file_bytes)?;
                shards.push(entry);
            }
        }
        Ok(())
    }

    /// Publishes the index in `folder`. Its shards have at most `max_tokens`.
    pub(super) fn publish(&self, folder: &Path, max_tokens: u64) -> Result<()> {
        let replace = Replace::Existing;
        Ok(match &self.entries {
            Entries::Litdata(chunks) => {
                let chunk_bytes = max_tokens.saturating_mul(self.width.bytes());
                litdata::publish_index(folder, chunks, self.width, chunk_bytes, replace)
            }
            Entries::Mds(shards) => mds::publish_index(folder, shards, replace),
        }?)
    }
}

/// Checks that the index in `folder` may be written: another program may have one of the same name.
///
/// # Errors
/// It exists and may not be replaced.
pub(super) fn check_index(to: TokenFormat, folder: &Path, existing: Existing) -> Result<()> {
    let Some(path) = index_path(to, folder) else {
        return Ok(());
    };
    let is_of_format = || match to {
        TokenFormat::Mds => mds::shard_names(folder).map(|names| names.is_some()),
        _ => IndexedFolder::open(folder).map(|index| index.is_some()),
    };
    let may_be_replaced = existing != Existing::Error && is_of_format()?;
    if may_be_replaced || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(packtok_pbin::Error::Exists { path }.into())
}

/// Removes the index in `folder`, because one of its shards is replaced.
pub(super) fn remove_index(to: TokenFormat, folder: &Path) -> Result<()> {
    match index_path(to, folder) {
        Some(path) => remove_if_there(&path).map_err(Error::io(&path)),
        None => Ok(()),
    }
}

fn index_path(to: TokenFormat, folder: &Path) -> Option<PathBuf> {
    match to {
        TokenFormat::Litdata => Some(folder.join(litdata::INDEX_FILE)),
        TokenFormat::Mds => Some(folder.join(mds::INDEX_FILE)),
        _ => None,
    }
}
