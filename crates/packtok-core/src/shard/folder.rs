//! The names of the files in a folder of shards.

use std::path::{Path, PathBuf};

use super::Shard;
use crate::pack::with_suffix;

/// The plan.
pub(super) fn plan_path(folder: &Path) -> PathBuf {
    folder.join("plan.jsonl")
}

/// The tokenizer of all shards.
pub(super) fn tokenizer_path(folder: &Path) -> PathBuf {
    folder.join("tokenizer.json")
}

/// The pbin of a shard.
pub(super) fn shard_path(folder: &Path, shard: Shard) -> PathBuf {
    folder.join(format!(
        "shard-{:05}-of-{:05}.pbin",
        shard.index(),
        shard.count()
    ))
}

/// The marker that says that the shard at `shard_path` is whole.
pub(super) fn marker_path(shard_path: &Path) -> PathBuf {
    shard_path.with_extension("done.json")
}

/// The rejects of the shard at `shard_path`.
pub(super) fn rejects_path(shard_path: &Path) -> PathBuf {
    with_suffix(shard_path, ".rejects.jsonl")
}
