//! Comparing the documents of token files.

use std::path::PathBuf;

use packtok_formats::TokenFile;
use packtok_reshape::diff::first_difference;
use pyo3::prelude::*;

use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values;

/// The first difference between the documents of two token files, as a dict; None if all are the
/// same.
#[pyfunction]
#[pyo3(signature = (first, second, on_progress = None))]
pub(crate) fn first_difference_of<'py>(
    py: Python<'py>,
    first: Vec<PathBuf>,
    second: Vec<PathBuf>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let difference = watched_reshaping(py, on_progress, |monitor| {
        first_difference(&opened(&first)?, &opened(&second)?, monitor)
    })?;
    let difference = difference.map(|difference| values::to_python(py, &difference));
    difference.transpose()
}

fn opened(paths: &[PathBuf]) -> packtok_formats::Result<Vec<TokenFile>> {
    paths.iter().map(|path| TokenFile::open(path)).collect()
}
