//! File names and sort orders that Python needs too; defined once, in the core.

use std::ffi::OsString;
use std::path::PathBuf;

use packtok_corpus::field::names_of_path;
use packtok_corpus::{is_corpus_name as is_name_of_corpus, sort_naturally};
use packtok_pack::shard::folder;
use packtok_store::user_cache as cache_of_user;
use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PLAN_NAME", folder::PLAN)?;
    module.add("PLAN_TOKENIZER_NAME", folder::TOKENIZER)?;
    module.add("SHARD_PREFIX", folder::SHARD_PREFIX)?;
    module.add("REJECTS_SUFFIX", folder::REJECTS_SUFFIX)?;
    module.add_function(wrap_pyfunction!(shard_name, module)?)?;
    module.add_function(wrap_pyfunction!(marker_name, module)?)?;
    module.add_function(wrap_pyfunction!(natural_sorted, module)?)?;
    module.add_function(wrap_pyfunction!(is_corpus_name, module)?)?;
    module.add_function(wrap_pyfunction!(column_names, module)?)?;
    module.add_function(wrap_pyfunction!(user_cache, module)?)
}

/// The name of the pbin of shard `shard_index` of `num_shards` in a folder of shards.
#[pyfunction]
fn shard_name(shard_index: u64, num_shards: u64) -> String {
    folder::shard_name(shard_index, num_shards)
}

/// The name of the marker of the shard with the pbin `name`.
#[pyfunction]
fn marker_name(name: PathBuf) -> OsString {
    folder::marker_path(&name).into_os_string()
}

/// The paths in natural order (`part2` before `part10`).
#[pyfunction]
fn natural_sorted(mut paths: Vec<OsString>) -> Vec<OsString> {
    sort_naturally(&mut paths);
    paths
}

/// Whether a file name is a name of a corpus file, such as `a.jsonl.gz` or `a.parquet`.
#[pyfunction]
fn is_corpus_name(name: &str) -> bool {
    is_name_of_corpus(name)
}

/// The names in a pattern that is a plain path, such as `.meta.text`; None for any other pattern.
#[pyfunction]
fn column_names(pattern: &str) -> Option<Vec<String>> {
    names_of_path(pattern)
}

/// packtok's folder in the user's cache; None if there is no home folder.
#[pyfunction]
fn user_cache() -> Option<OsString> {
    cache_of_user().map(PathBuf::into_os_string)
}
