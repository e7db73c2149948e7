//! What callers say about token files: formats, types of ids, boundaries.

use packtok_formats::npy::Element;
use packtok_formats::{Boundaries, OpenOptions, TokenFormat};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// How to read a token file.
pub(crate) fn open_options(
    format: Option<&str>,
    dtype: Option<&str>,
    boundaries: Option<&str>,
) -> PyResult<OpenOptions> {
    let boundaries = boundaries.map(|text| {
        Boundaries::parse(text).ok_or_else(|| {
            let forms = Boundaries::FORMS;
            PyValueError::new_err(format!(
                "--boundaries (boundaries): is {text:?}; expected {forms}"
            ))
        })
    });
    Ok(OpenOptions {
        format: format.map(format_of).transpose()?,
        dtype: dtype
            .map(|name| element(name, "--input-dtype (input_dtype)"))
            .transpose()?,
        boundaries: boundaries.transpose()?,
    })
}

/// What the caller says about token files: format, type of ids, boundaries.
pub(crate) type ReadAs = (Option<String>, Option<String>, Option<String>);

/// As [`open_options`].
pub(crate) fn options_of((format, dtype, boundaries): &ReadAs) -> PyResult<OpenOptions> {
    open_options(format.as_deref(), dtype.as_deref(), boundaries.as_deref())
}

/// The type of ids that the user gives by its name in NumPy.
pub(crate) fn element(name: &str, option: &str) -> PyResult<Element> {
    Element::of_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{option}: is {name:?}; expected the name of an integer type, as uint16"
        ))
    })
}

/// The format that the user gives by its name.
pub(crate) fn format_of(name: &str) -> PyResult<TokenFormat> {
    TokenFormat::of_name(name).ok_or_else(|| {
        let names = TokenFormat::NAMES.join(", ");
        PyValueError::new_err(format!("format is {name:?}, expected one of {names}"))
    })
}
