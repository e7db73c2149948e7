//! Conversions between formats of token files, and the content of markers.

use std::path::PathBuf;

use packtok_dataset::items::LossMarkers;
use packtok_formats::npy::IdType;
use packtok_pack::pbin::TokenizerInfo;
use packtok_reshape::DeclaredTokenizer;
use packtok_reshape::convert::marker::{Marker, TokenPlan};
use packtok_reshape::convert::{self, ConvertOptions, PackedOptions, Sharding};
use packtok_tokenizer::Tokenizer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::error::reshape_error;
use crate::boundary::monitor::{watched_reshaping, with_start};
use crate::boundary::token_formats::{element, format_of, open_options};
use crate::boundary::values::{self, choice};
use crate::dataset::blocks::PyBlocks;
use crate::tokenizer::PyTokenizer;

/// Writes the documents of token files in another format and returns a report.
///
/// `sharding` is None for one output, otherwise the most tokens of a shard and the number that the
/// tokens of a shard are a multiple of. `part` is `(k, N)` to write each Nth output from the kth on; with
/// `completes_parts`, calls with it have written all, and only the index of a folder is missing. `on_start` is called with what is kept before anything is written.
#[pyfunction]
#[pyo3(signature = (*, inputs, format, input_dtype, boundaries, output, to, link, sharding, part, completes_parts, accept_loss, dtype, tokenizer, existing, num_threads, on_start, on_progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn convert_tokens<'py>(
    py: Python<'py>,
    inputs: Vec<PathBuf>,
    format: Option<&str>,
    input_dtype: Option<&str>,
    boundaries: Option<&str>,
    output: PathBuf,
    to: &str,
    link: bool,
    sharding: Option<(Option<u64>, Option<u64>)>,
    part: Option<(u64, u64)>,
    completes_parts: bool,
    accept_loss: Vec<String>,
    dtype: Option<&str>,
    tokenizer: Option<Py<PyTokenizer>>,
    existing: &str,
    num_threads: usize,
    on_start: Option<Py<PyAny>>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = ConvertOptions {
        inputs,
        open: open_options(format, input_dtype, boundaries)?,
        output,
        to: format_of(to)?,
        link,
        sharding: sharding.map(|(max_tokens, multiple_of)| Sharding {
            max_tokens,
            multiple_of,
        }),
        part,
        completes_parts,
        accept_loss,
        dtype: dtype.map(|name| element(name, "dtype")).transpose()?,
        tokenizer: tokenizer.map(|tokenizer| declared(&tokenizer.get().inner)),
        existing: choice("existing", existing)?,
        source_name: None,
        num_threads,
    };
    let report = with_start(on_start.as_ref(), |started| {
        watched_reshaping(py, on_progress, |monitor| {
            convert::convert(&options, started, monitor)
        })
    })?;
    values::to_python(py, &report)
}

/// Writes the rows of a best-fit plan as Parquet files and returns a report.
#[pyfunction]
#[pyo3(signature = (blocks, *, output, max_tokens, loss_markers, accept_loss, tokenizer, existing, on_progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn write_packed_rows<'py>(
    py: Python<'py>,
    blocks: Py<PyBlocks>,
    output: PathBuf,
    max_tokens: Option<u64>,
    loss_markers: Option<(u32, u32)>,
    accept_loss: Vec<String>,
    tokenizer: Option<Py<PyTokenizer>>,
    existing: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = PackedOptions {
        output,
        max_tokens,
        loss_markers: loss_markers.map(|(begin, end)| LossMarkers { begin, end }),
        accept_loss,
        tokenizer: tokenizer.map(|tokenizer| declared(&tokenizer.get().inner)),
        existing: choice("existing", existing)?,
    };
    let items = &blocks.get().items;
    let report = watched_reshaping(py, on_progress, |monitor| {
        convert::write_packed(items, &options, monitor)
    })?;
    values::to_python(py, &report)
}

/// The content of the marker of a token file; None if the file has no marker.
#[pyfunction]
pub(crate) fn find_token_marker(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    let marker = py.detach(|| Marker::find(&path)).map_err(reshape_error)?;
    marker
        .map(|marker| values::to_python(py, &marker))
        .transpose()
}

/// The first difference between two plans in JSON: the name, the actual and the expected value.
/// None if they are equal.
#[pyfunction]
pub(crate) fn plan_difference(
    actual: &str,
    expected: &str,
) -> PyResult<Option<(&'static str, String, String)>> {
    Ok(plan(actual)?.difference(&plan(expected)?))
}

/// A plan from its JSON.
pub(crate) fn plan(json: &str) -> PyResult<TokenPlan> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("plan: {error}")))
}

/// The properties of a tokenizer that a file records.
pub(crate) fn info(tokenizer: &Tokenizer) -> TokenizerInfo {
    TokenizerInfo {
        name: tokenizer.name().to_owned(),
        fingerprint: tokenizer.fingerprint().to_owned(),
        vocab_size: tokenizer.vocab_size(),
    }
}

/// The tokenizer of files that do not record theirs.
pub(crate) fn declared(tokenizer: &Tokenizer) -> DeclaredTokenizer {
    DeclaredTokenizer::new(tokenizer.clone(), info(tokenizer))
}

/// The type of ids that the user gives by name.
pub(crate) fn id_type(name: &str) -> PyResult<IdType> {
    IdType::of_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("dtype is {name:?}, expected one of int64, uint32"))
    })
}
