//! The file names in a folder of shards.

use std::path::{Path, PathBuf};

use packtok_corpus::{PLAN_OF_SHARDS, TOKENIZER_OF_SHARDS};
use packtok_jobs::Shard;
use packtok_jobs::with_suffix;

/// The plan.
pub const PLAN: &str = PLAN_OF_SHARDS;
/// The tokenizer of all shards.
pub const TOKENIZER: &str = TOKENIZER_OF_SHARDS;
/// Prefix of the names of all other files.
pub const SHARD_PREFIX: &str = "shard-";
/// Suffix of the rejects, after the name of a shard's pbin.
pub const REJECTS_SUFFIX: &str = ".rejects.jsonl";
/// Extension of a marker, instead of `pbin`.
pub const MARKER_EXTENSION: &str = "done.json";

/// The name of the pbin of shard `index` of `count`.
pub fn shard_name(index: u64, count: u64) -> String {
    format!("{SHARD_PREFIX}{index:05}-of-{count:05}.pbin")
}

pub(super) fn plan_path(folder: &Path) -> PathBuf {
    folder.join(PLAN)
}

pub(super) fn tokenizer_path(folder: &Path) -> PathBuf {
    folder.join(TOKENIZER)
}

/// The pbin of a shard.
pub(super) fn shard_path(folder: &Path, shard: Shard) -> PathBuf {
    folder.join(shard_name(shard.index(), shard.count()))
}

/// The marker of the shard at `shard_path`; it exists once the shard is complete.
pub fn marker_path(shard_path: &Path) -> PathBuf {
    shard_path.with_extension(MARKER_EXTENSION)
}

pub(super) fn rejects_path(shard_path: &Path) -> PathBuf {
    with_suffix(shard_path, REJECTS_SUFFIX)
}
