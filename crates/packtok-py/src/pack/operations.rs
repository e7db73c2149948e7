//! The functions that the commands call. Each converts the arguments, calls the core without the
//! GIL and converts the result.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use packtok_corpus::{Plugin, ReadOptions};
use packtok_jobs::Progress;
use packtok_pack::merge::MergeOptions;
use packtok_pack::pack::{PackOptions, PackSpec};
use packtok_pack::pbin::{self, Replace};
use packtok_pack::raw_index::RawIndexOptions;
use packtok_pack::verify::OriginsOptions;
use packtok_tokenizer::Tokenizer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::boundary::error::{pack_error, pbin_error};
use crate::boundary::monitor::{watched, watched_writing};
use crate::boundary::token_formats::open_options;
use crate::boundary::values::choice;
use crate::boundary::{memory, values};
use crate::pack::plugin::PyPlugin;
use crate::tokenizer::PyTokenizer;

/// Writes a small file atomically and synced, replacing an existing one.
#[pyfunction]
pub(crate) fn publish_bytes(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    py.detach(|| pbin::publish_bytes(&path, data, Replace::Existing))
        .map_err(pbin_error)
}

/// Runs `call` like [`watched`] and returns its report as a dict.
pub(crate) fn run<'py, R: Serialize + Send>(
    py: Python<'py>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> packtok_pack::Result<R> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    values::to_python(py, &watched(py, on_progress, call)?)
}

/// Runs `call`, which writes a pbin, like [`watched_writing`] and returns its report as a dict.
pub(crate) fn run_writing<'py, R: Serialize + Send>(
    py: Python<'py>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> packtok_pack::Result<R> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    values::to_python(py, &watched_writing(py, on_progress, call)?)
}

/// Parses the options of a run from the JSON of `PackConfig.spec` in Python.
pub(crate) fn parsed_spec(json: &str) -> PyResult<PackSpec> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("options: {error}")))
}

/// The options of a run, resolved for `tokenizer`.
pub(crate) fn pack_options(json: &str, tokenizer: &Tokenizer) -> PyResult<PackOptions> {
    parsed_spec(json)?.resolve(tokenizer).map_err(pack_error)
}

/// Calls `call` with the plug-in, if there is one. Ends the threads of the plug-in afterwards.
pub(crate) fn with_plugin<'py>(
    py: Python<'py>,
    plugin: Option<Bound<'py, PyAny>>,
    call: impl FnOnce(Option<Arc<dyn Plugin>>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let plugin = plugin.as_ref().map(PyPlugin::new).transpose()?;
    let result = call((plugin.clone()).map(|plugin| plugin as Arc<dyn Plugin>));
    let Some(plugin) = plugin else {
        return result;
    };
    plugin.stop(py);
    result.map_err(|error| plugin.error_or(py, error))
}

/// Packs a corpus into a pbin and returns a report; see `packtok.pack`.
#[pyfunction]
#[pyo3(signature = (spec, tokenizer, on_progress, plugin = None))]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
    plugin: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let mut options = pack_options(spec, tokenizer)?;
    memory::give_back();
    with_plugin(py, plugin, |plugin| {
        options.spec.plugin = plugin;
        run_writing(py, on_progress, |monitor| {
            packtok_pack::pack::pack(&options, tokenizer, monitor)
        })
    })
}

/// Tokenizes a fraction of a corpus again and compares it with the pbin that the options name as
/// output.
#[pyfunction]
#[pyo3(signature = (spec, tokenizer, on_progress, plugin = None, *, sample))]
pub(crate) fn verify_corpus<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
    plugin: Option<Bound<'py, PyAny>>,
    sample: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let mut options = pack_options(spec, tokenizer)?;
    with_plugin(py, plugin, |plugin| {
        options.spec.plugin = plugin;
        run(py, on_progress, |monitor| {
            packtok_pack::verify::verify_corpus(&options, tokenizer, sample, monitor)
        })
    })
}

/// Reads the records of origin of a fraction of the documents, in the corpus below `folder`, and
/// compares the ids.
#[pyfunction]
#[pyo3(signature = (tokenizer, on_progress, *, path, folder, sample, num_cpus, zstd_window_log))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn verify_origins<'py>(
    py: Python<'py>,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
    path: PathBuf,
    folder: PathBuf,
    sample: f64,
    num_cpus: usize,
    zstd_window_log: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let options = OriginsOptions {
        path,
        folder,
        fraction: sample,
        num_cpus,
        zstd_window_log,
    };
    let tokenizer = &tokenizer.get().inner;
    run(py, on_progress, |monitor| {
        packtok_pack::verify::verify_origins(&options, tokenizer, monitor)
    })
}

/// Writes the raw index of a JSONL file in the format of Modalities and returns a report.
#[pyfunction]
#[pyo3(signature = (*, src, index_path, on_bad_document, existing, max_document_bytes, on_progress))]
pub(crate) fn write_raw_index<'py>(
    py: Python<'py>,
    src: PathBuf,
    index_path: PathBuf,
    on_bad_document: &str,
    existing: &str,
    max_document_bytes: u64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = RawIndexOptions {
        src,
        index_path,
        on_bad_document: choice("on_bad_document", on_bad_document)?,
        existing: choice("existing", existing)?,
        read: ReadOptions::for_json_lines(max_document_bytes),
    };
    run(py, on_progress, |monitor| {
        packtok_pack::raw_index::write_raw_index(&options, monitor)
    })
}

/// Joins pbins into one and returns a report.
#[pyfunction]
#[pyo3(signature = (*, parts, output, existing, tokenizer, on_progress))]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    parts: Vec<PathBuf>,
    output: PathBuf,
    existing: &str,
    tokenizer: Option<Py<PyTokenizer>>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = MergeOptions {
        parts,
        output,
        existing: choice("existing", existing)?,
    };
    let tokenizer = tokenizer.as_ref().map(|tokenizer| &tokenizer.get().inner);
    run_writing(py, on_progress, |monitor| {
        packtok_pack::merge::merge(&options, tokenizer, monitor)
    })
}

/// Verifies checksums, index, ids and EODs of a pbin and returns the verified properties.
#[pyfunction]
#[pyo3(signature = (*, path, format=None, input_dtype=None, boundaries=None, tokenizer, on_progress))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: Option<&str>,
    input_dtype: Option<&str>,
    boundaries: Option<&str>,
    tokenizer: Option<Py<PyTokenizer>>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = tokenizer.as_ref().map(|tokenizer| &tokenizer.get().inner);
    let open = open_options(format, input_dtype, boundaries)?;
    run(py, on_progress, |monitor| {
        packtok_pack::verify::verify_file(&path, &open, tokenizer, monitor)
    })
}
