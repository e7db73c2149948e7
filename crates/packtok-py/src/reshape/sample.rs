//! Samples of token files. Converts the arguments, calls `packtok-reshape` without the GIL and
//! converts the result.

use std::path::PathBuf;

use packtok_reshape::sample::{self, LongRecipe, Recipe, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values;
use crate::tokenizer::PyTokenizer;

/// Draws and writes the samples of a recipe, which is JSON, and returns a report.
///
/// With `shard`, a pair of number and count, writes only that part. With `join`, publishes all
/// parts.
#[pyfunction]
#[pyo3(signature = (recipe, tokenizer, *, shard, join, num_threads, on_progress))]
pub(crate) fn draw_samples<'py>(
    py: Python<'py>,
    recipe: &str,
    tokenizer: Option<Py<PyTokenizer>>,
    shard: Option<(u64, u64)>,
    join: bool,
    num_threads: usize,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let recipe: Recipe = serde_json::from_str(recipe)
        .map_err(|error| PyValueError::new_err(format!("recipe: {error}")))?;
    let task = task(shard, join);
    let tokenizer = tokenizer.as_ref().map(|tokenizer| &tokenizer.get().inner);
    let report = watched_reshaping(py, on_progress, |monitor| {
        sample::sample(&recipe, task, tokenizer, num_threads, monitor)
    })?;
    values::to_python(py, &report)
}

/// Packs long documents into rows as defined by a recipe, which is JSON, and returns a report.
/// `shard` and `join` are as in `draw_samples`.
#[pyfunction]
#[pyo3(signature = (recipe, *, shard, join, num_threads, on_progress))]
pub(crate) fn pack_samples<'py>(
    py: Python<'py>,
    recipe: &str,
    shard: Option<(u64, u64)>,
    join: bool,
    num_threads: usize,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let recipe: LongRecipe = serde_json::from_str(recipe)
        .map_err(|error| PyValueError::new_err(format!("recipe: {error}")))?;
    let report = watched_reshaping(py, on_progress, |monitor| {
        sample::pack_long(&recipe, task(shard, join), num_threads, monitor)
    })?;
    values::to_python(py, &report)
}

/// Whether an interrupted run left work in its output folder that the same call resumes.
#[pyfunction]
pub(crate) fn keeps_samples(py: Python<'_>, output: PathBuf) -> bool {
    py.detach(|| sample::keeps_work(&output))
}

fn task(shard: Option<(u64, u64)>, join: bool) -> Task {
    match (shard, join) {
        (Some((index, count)), _) => Task::Shard { index, count },
        (None, true) => Task::Join,
        (None, false) => Task::All,
    }
}
