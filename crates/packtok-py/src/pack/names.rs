//! File names and sort orders that Python needs too; defined once, in the core.

use std::ffi::OsString;
use std::path::PathBuf;

use packtok_corpus::field::names_of_path;
use packtok_corpus::{is_corpus_name as is_name_of_corpus, sort_naturally};
use packtok_pack::shard::folder;
use pyo3::prelude::*;

/// The name of the pbin of shard `shard_index` of `num_shards` in a folder of shards.
#[pyfunction]
pub(crate) fn shard_name(shard_index: u64, num_shards: u64) -> String {
    folder::shard_name(shard_index, num_shards)
}

/// The name of the marker of the shard with the pbin `name`.
#[pyfunction]
pub(crate) fn marker_name(name: PathBuf) -> OsString {
    folder::marker_path(&name).into_os_string()
}

/// The paths in natural order (`part2` before `part10`).
#[pyfunction]
pub(crate) fn natural_sorted(mut paths: Vec<OsString>) -> Vec<OsString> {
    sort_naturally(&mut paths);
    paths
}

/// Whether a file name is a name of a corpus file, such as `a.jsonl.gz` or `a.parquet`.
#[pyfunction]
pub(crate) fn is_corpus_name(name: &str) -> bool {
    is_name_of_corpus(name)
}

/// The names in a pattern that is a plain path, such as `.meta.text`; None for any other pattern.
#[pyfunction]
pub(crate) fn column_names(pattern: &str) -> Option<Vec<String>> {
    names_of_path(pattern)
}
