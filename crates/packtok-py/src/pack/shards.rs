//! The functions for packing in shards. Each converts the arguments, calls the core without the
//! GIL and converts the result.

use std::path::PathBuf;

use packtok_pack::pack::{NotALimit, RejectLimit};
use packtok_pack::shard;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::error::pack_error;
use crate::boundary::values::choice;
use crate::boundary::{memory, values};
use crate::pack::operations::{pack_options, run, run_writing, with_plugin};
use crate::tokenizer::PyTokenizer;

/// Fingerprint, number of shards and raw bytes of the plan in a folder; None if the folder has no
/// plan.
#[pyfunction]
pub(crate) fn read_plan(folder: PathBuf) -> PyResult<Option<(String, u64, u64)>> {
    let plan = shard::ShardPlan::find(&folder).map_err(pack_error)?;
    Ok(plan.map(|plan| {
        let fingerprint = plan.fingerprint().to_owned();
        (fingerprint, plan.num_shards(), plan.total_bytes())
    }))
}

/// The content of the marker of the shard at a path, if it exists and the shard has the recorded
/// length.
#[pyfunction]
pub(crate) fn find_marker(py: Python<'_>, path: PathBuf) -> PyResult<Option<Bound<'_, PyAny>>> {
    let marker = py
        .detach(|| shard::Marker::find(&path))
        .map_err(pack_error)?;
    marker
        .map(|marker| values::to_python(py, &marker))
        .transpose()
}

/// Writes the plan of a corpus's shards into a folder and returns a report; see `packtok.plan`.
#[pyfunction]
#[pyo3(signature = (spec, tokenizer, on_progress, plugin = None, *, num_shards))]
pub(crate) fn plan_shards<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
    plugin: Option<Bound<'py, PyAny>>,
    num_shards: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let mut options = pack_options(spec, tokenizer)?;
    with_plugin(py, plugin, |plugin| {
        options.spec.plugin = plugin;
        run(py, on_progress, |monitor| {
            shard::plan(&options, tokenizer, num_shards, monitor)
        })
    })
}

/// Packs one shard of a corpus into a folder and returns a report; see `packtok.pack`.
#[pyfunction]
#[pyo3(signature = (spec, tokenizer, on_progress, plugin = None, *, shard_index, num_shards, default_num_shards))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the keywords of the Python function"
)]
pub(crate) fn pack_shard<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
    plugin: Option<Bound<'py, PyAny>>,
    shard_index: u64,
    num_shards: Option<u64>,
    default_num_shards: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let mut options = pack_options(spec, tokenizer)?;
    let choice = shard::Choice {
        index: shard_index,
        count: num_shards,
        default_count: default_num_shards,
    };
    memory::give_back();
    with_plugin(py, plugin, |plugin| {
        options.spec.plugin = plugin;
        run_writing(py, on_progress, |monitor| {
            shard::pack_shard(&options, tokenizer, choice, monitor)
        })
    })
}

/// The report of a complete shard, from its marker's JSON; the output of the options is its pbin.
#[pyfunction]
pub(crate) fn report_of_marker<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    marker: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = &tokenizer.get().inner;
    let options = pack_options(spec, tokenizer)?;
    let marker: shard::Marker = serde_json::from_str(marker)
        .map_err(|error| PyValueError::new_err(format!("marker: {error}")))?;
    values::to_python(py, &shard::report_of_marker(&options, tokenizer, &marker))
}

/// Joins the shards in a folder into one pbin and returns a report; see `packtok.join`.
#[pyfunction]
#[pyo3(signature = (*, folder, output, existing, max_rejects, on_progress))]
pub(crate) fn join_shards<'py>(
    py: Python<'py>,
    folder: PathBuf,
    output: PathBuf,
    existing: &str,
    max_rejects: Option<&str>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = shard::JoinOptions {
        folder,
        output,
        existing: choice("existing", existing)?,
        max_rejects: max_rejects.map(reject_limit).transpose()?,
    };
    run_writing(py, on_progress, |monitor| shard::join(&options, monitor))
}

/// The pbins of all shards in a folder, in order, after checking that none is missing.
#[pyfunction]
pub(crate) fn list_shards(
    py: Python<'_>,
    folder: PathBuf,
    max_rejects: Option<&str>,
) -> PyResult<Vec<PathBuf>> {
    let max_rejects = max_rejects.map(reject_limit).transpose()?;
    py.detach(|| shard::list(&folder, max_rejects))
        .map_err(pack_error)
}

/// Parses `max_rejects`.
fn reject_limit(value: &str) -> PyResult<RejectLimit> {
    (value.parse()).map_err(|expected: NotALimit| PyValueError::new_err(expected.to_string()))
}

/// The shortest form of a limit on rejects; raises ValueError with the expected forms if it is
/// invalid.
#[pyfunction]
pub(crate) fn checked_reject_limit(value: &str) -> PyResult<String> {
    Ok(reject_limit(value)?.to_string())
}
