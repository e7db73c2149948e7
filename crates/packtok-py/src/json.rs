//! Passes reports to Python as JSON: they are small, and their field names are defined only in
//! Rust.

use pyo3::prelude::*;
use serde::Serialize;

/// `value` as Python's own dicts, lists and numbers.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}
