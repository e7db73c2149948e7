//! Converts option values and reports through serde: reports are small, and the names of their
//! fields and of the values of options are defined only in Rust.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, IntoDeserializer};

/// The value of an option with a fixed set of values.
pub(crate) fn choice<T: DeserializeOwned>(option: &str, value: &str) -> PyResult<T> {
    let named: Result<T, ValueError> = T::deserialize(value.into_deserializer());
    named.map_err(|error| {
        // The message of serde is: unknown variant `x`, expected one of `a`, `b`.
        let text = error.to_string();
        let (_, names) = text.rsplit_once(", expected ").unwrap_or_default();
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("{option} is {value:?}, expected one of {names}"))
    })
}

/// `value` as Python's own dicts, lists and numbers.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let text =
        serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// Dicts, lists and numbers of Python as a type of Rust.
pub(crate) fn from_python<T: DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let text: String = value
        .py()
        .import("json")?
        .call_method1("dumps", (value,))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))
}
