//! Folders of NPY files, one for each file of a corpus.

use std::path::PathBuf;

use packtok_corpus::written_list as list_of_paths;
use packtok_pack::pbin::Replace;
use packtok_reshape::tokens::{
    SplitOptions, Target, corpus_files as files_of, facts as facts_of, listed_files as listed,
    plan_of, split,
};
use pyo3::prelude::*;

use crate::boundary::error::{corpus_error, reshape_error};
use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values;
use crate::pack::operations::pack_options;
use crate::pack::scans::selection;
use crate::reshape::convert::{id_type, info, plan};
use crate::tokenizer::PyTokenizer;

/// The files that inputs stand for, in order, each with the name of its NPY file.
#[pyfunction]
#[pyo3(signature = (inputs, *, format, ignore, split, root))]
pub(crate) fn npy_files<'py>(
    py: Python<'py>,
    inputs: Vec<String>,
    format: Option<&str>,
    ignore: Vec<String>,
    split: Option<&str>,
    root: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let selection = selection(format, &ignore, split)?.with_root(root.clone());
    let files = py
        .detach(|| files_of(&inputs, &selection, root.as_deref()))
        .map_err(reshape_error)?;
    values::to_python(py, &files)
}

/// The line number and the NPY file of each line of a list of corpus files.
#[pyfunction]
#[pyo3(signature = (list, *, root))]
pub(crate) fn listed_files(
    py: Python<'_>,
    list: PathBuf,
    root: Option<PathBuf>,
) -> PyResult<Vec<(u64, String)>> {
    py.detach(|| listed(&list, root.as_deref()))
        .map_err(reshape_error)
}

/// The content of a list of files, which `@LIST` reads.
#[pyfunction]
pub(crate) fn written_list(paths: Vec<PathBuf>) -> PyResult<String> {
    list_of_paths(paths).map_err(corpus_error)
}

/// The meaning of the ids, as the markers of a tokenizing run record it.
#[pyfunction]
pub(crate) fn token_plan<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let options = pack_options(spec, tokenizer)?;
    values::to_python(py, &plan_of(&options, info(tokenizer), id_type(dtype)?))
}

/// Documents, tokens, complete chunks within documents and the checksum of a token file.
#[pyfunction]
#[pyo3(signature = (path, *, chunk_tokens, has_crc32c))]
pub(crate) fn token_facts(
    py: Python<'_>,
    path: PathBuf,
    chunk_tokens: u64,
    has_crc32c: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let facts = py
        .detach(|| facts_of(&path, chunk_tokens, has_crc32c))
        .map_err(reshape_error)?;
    values::to_python(py, &facts)
}

/// Writes the NPY files of a packed corpus and returns a report. A target is a tuple: the number
/// of the source, its relative path, and the file to write, or None to skip the source.
#[pyfunction]
#[pyo3(signature = (*, pbin, targets, dtype, replace, plan_json, on_progress))]
pub(crate) fn split_tokens<'py>(
    py: Python<'py>,
    pbin: PathBuf,
    targets: Vec<(usize, String, Option<PathBuf>)>,
    dtype: &str,
    replace: bool,
    plan_json: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = |(source, relative, npy)| Target {
        source,
        relative,
        npy,
    };
    let options = SplitOptions {
        pbin,
        targets: targets.into_iter().map(target).collect(),
        id_type: id_type(dtype)?,
        replace: if replace {
            Replace::Existing
        } else {
            Replace::Never
        },
        plan: plan(plan_json)?,
    };
    let report = watched_reshaping(py, on_progress, |monitor| split(&options, monitor))?;
    values::to_python(py, &report)
}
