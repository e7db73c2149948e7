//! Parses option values from Python: enumerations and limits.

use packtok_pack::pack::{NotALimit, RejectLimit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, IntoDeserializer};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(checked_reject_limit, module)?)
}

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

/// Parses `max_rejects`.
pub(crate) fn reject_limit(value: &str) -> PyResult<RejectLimit> {
    (value.parse()).map_err(|expected: NotALimit| PyValueError::new_err(expected.to_string()))
}

/// The shortest form of a limit on rejects; raises ValueError with the expected forms if it is
/// invalid.
#[pyfunction]
fn checked_reject_limit(value: &str) -> PyResult<String> {
    Ok(reject_limit(value)?.to_string())
}
