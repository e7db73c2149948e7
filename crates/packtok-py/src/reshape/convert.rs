//! Conversions between formats of token files, and the content of markers.

use std::path::PathBuf;

use packtok_formats::npy::IdType;
use packtok_pack::pbin::TokenizerInfo;
use packtok_reshape::convert::marker::{Marker, TokenPlan};
use packtok_reshape::convert::{self, ConvertOptions, FORMATS, TokenFormat};
use packtok_tokenizer::Tokenizer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::error::reshape_error;
use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values::{self, choice};
use crate::tokenizer::PyTokenizer;

/// Writes the documents of a token file in another format and returns a report.
#[pyfunction]
#[pyo3(signature = (*, input, format, output, to, link, accept_loss, dtype, tokenizer, existing, on_progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn convert_tokens<'py>(
    py: Python<'py>,
    input: PathBuf,
    format: Option<&str>,
    output: PathBuf,
    to: &str,
    link: bool,
    accept_loss: Vec<String>,
    dtype: &str,
    tokenizer: Option<Py<PyTokenizer>>,
    existing: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = ConvertOptions {
        input,
        format: format.map(format_of).transpose()?,
        output,
        to: format_of(to)?,
        link,
        accept_loss,
        id_type: id_type(dtype)?,
        tokenizer: tokenizer.map(|tokenizer| info(&tokenizer.get().inner)),
        existing: choice("existing", existing)?,
    };
    let report = watched_reshaping(py, on_progress, |monitor| {
        convert::convert(&options, monitor)
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

/// The type of ids that the user gives by name.
pub(crate) fn id_type(name: &str) -> PyResult<IdType> {
    IdType::of_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("dtype is {name:?}, expected one of int64, uint32"))
    })
}

fn format_of(name: &str) -> PyResult<TokenFormat> {
    TokenFormat::of_name(name).ok_or_else(|| {
        let names = FORMATS.map(|(name, _)| name).join(", ");
        PyValueError::new_err(format!("format is {name:?}, expected one of {names}"))
    })
}
