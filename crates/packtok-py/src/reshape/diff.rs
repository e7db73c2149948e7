//! Comparing the documents of token files.

use std::path::PathBuf;

use packtok_formats::{OpenOptions, TokenFile};
use packtok_reshape::diff::first_difference;
use pyo3::prelude::*;

use crate::boundary::monitor::watched_reshaping;
use crate::boundary::token_formats::{ReadAs, options_of};
use crate::boundary::values;

/// The first difference between the documents of two token files, as a dict; None if all are the
/// same. `first_as` and `second_as` are their formats, types of ids and boundaries, as `PbinReader` takes
/// them.
#[pyfunction]
#[pyo3(signature = (first, second, first_as, second_as, on_progress = None))]
pub(crate) fn first_difference_of<'py>(
    py: Python<'py>,
    first: Vec<PathBuf>,
    second: Vec<PathBuf>,
    first_as: ReadAs,
    second_as: ReadAs,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (first_as, second_as) = (options_of(&first_as)?, options_of(&second_as)?);
    let difference = watched_reshaping(py, on_progress, |monitor| {
        let (first, second) = (opened(&first, &first_as)?, opened(&second, &second_as)?);
        first_difference(&first, &second, monitor)
    })?;
    let difference = difference.map(|difference| values::to_python(py, &difference));
    difference.transpose()
}

fn opened(paths: &[PathBuf], options: &OpenOptions) -> packtok_formats::Result<Vec<TokenFile>> {
    let files = paths.iter();
    files
        .map(|path| TokenFile::open_with(path, options))
        .collect()
}
