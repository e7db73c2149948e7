//! A few records of one file of a corpus, for a page that shows them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use packtok_corpus::{
    Error, Excerpt, Format, ReadOptions, Shown, Source, first_rows, format_of_name, is_late,
    len_of, record_at, unescaped,
};
use packtok_pack::chain;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

use crate::boundary::error::corpus_error;
use crate::boundary::values::{choice, to_python};

/// The record at an offset of a file, or None if the file ends before it: its `text`, or the `cells`
/// of its `columns`. Raises TimeoutError if the record is not reached in time.
#[pyfunction]
#[pyo3(signature = (path, format, *, offset, text_separator, max_columns, max_bytes, max_record_bytes, seconds))]
#[expect(clippy::too_many_arguments, reason = "all but the first two are named")]
pub(crate) fn source_record<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: &str,
    offset: u64,
    text_separator: Option<&str>,
    max_columns: usize,
    max_bytes: usize,
    max_record_bytes: u64,
    seconds: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let format = choice("format", format)?;
    let options = ReadOptions {
        text_separator: text_separator.map(|separator| unescaped(separator).into()),
        ..options(max_record_bytes, seconds)?
    };
    let shown = Shown {
        columns: max_columns,
        bytes: max_bytes,
    };
    let record = py.detach(|| record_at(&source(path, format)?, &options, offset, shown));
    to_python(py, &record.map_err(error_of)?)
}

/// Up to `num_rows` records of a file from one on, with their columns, the `format` that the name of
/// the file stands for, and the reason if reading `stopped` before.
#[pyfunction]
#[pyo3(signature = (path, name, *, first, num_rows, max_columns, max_bytes, max_record_bytes, seconds))]
#[expect(clippy::too_many_arguments, reason = "all but the first two are named")]
pub(crate) fn source_rows<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: &str,
    first: u64,
    num_rows: usize,
    max_columns: usize,
    max_bytes: usize,
    max_record_bytes: u64,
    seconds: f64,
) -> PyResult<Bound<'py, PyAny>> {
    #[derive(Serialize)]
    struct Rows {
        format: Format,
        #[serde(flatten)]
        excerpt: Excerpt,
        is_late: bool,
        stopped: Option<String>,
    }
    let format = format_of_name(name.as_bytes());
    let format = format.ok_or_else(|| {
        PyValueError::new_err(format!("{name:?} is not the name of a file of a corpus"))
    })?;
    let options = options(max_record_bytes, seconds)?;
    let shown = Shown {
        columns: max_columns,
        bytes: max_bytes,
    };
    let (excerpt, error) = py.detach(|| match source(path, format) {
        Ok(source) => first_rows(&source, &options, first, num_rows, shown),
        Err(error) => (Excerpt::default(), Some(error)),
    });
    let is_late = error.as_ref().is_some_and(is_late);
    let stopped = match error {
        Some(error) if !is_late && excerpt.rows.is_empty() => return Err(corpus_error(error)),
        error => error.map(|error| chain(&error)),
    };
    to_python(
        py,
        &Rows {
            format,
            excerpt,
            is_late,
            stopped,
        },
    )
}

fn source(path: PathBuf, format: Format) -> Result<Source, Error> {
    Ok(Source {
        bytes: len_of(&path)?,
        label: path.to_string_lossy().into_owned(),
        path,
        format,
        input: 0,
        range: None,
        files: None,
    })
}

fn options(max_record_bytes: u64, seconds: f64) -> PyResult<ReadOptions> {
    let seconds = Duration::try_from_secs_f64(seconds);
    let seconds = seconds.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(ReadOptions {
        deadline: Some(Instant::now() + seconds.min(LONGEST)),
        ..ReadOptions::for_json_lines(max_record_bytes)
    })
}

const LONGEST: Duration = Duration::from_secs(3600);

fn error_of(error: Error) -> PyErr {
    if is_late(&error) {
        PyTimeoutError::new_err(chain(&error))
    } else {
        corpus_error(error)
    }
}
