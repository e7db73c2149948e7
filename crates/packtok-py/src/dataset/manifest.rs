//! The function behind `packtok manifest`.

use std::path::PathBuf;

use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::{self, Entry};
use packtok_pack::pbin::Replace;
use pyo3::prelude::*;

use crate::boundary::error::dataset_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(write_manifest, module)?)
}

/// Writes the entries of `paths`, listed under `names`, to the manifest at `output`; returns the
/// number of files, documents and tokens.
#[pyfunction]
#[pyo3(signature = (*, paths, names, output, replace))]
fn write_manifest(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    names: Vec<PathBuf>,
    output: PathBuf,
    replace: bool,
) -> PyResult<(usize, u64, u64)> {
    let replace = if replace {
        Replace::Existing
    } else {
        Replace::Never
    };
    py.detach(|| {
        let files = Files::open(&paths, false)?;
        let named = files.entries().zip(names).map(|(entry, name)| Entry {
            path: name,
            ..entry.clone()
        });
        let entries: Vec<Entry> = named.collect();
        manifest::write_manifest(&output, &entries, replace)?;
        Ok((files.len(), files.num_documents(), files.num_tokens()))
    })
    .map_err(dataset_error)
}
