//! The texts of a corpus as an iterator.

use std::sync::Mutex;
use std::vec::IntoIter;

use packtok_pack::corpus_texts::CorpusTexts;
use packtok_pack::scan::ScanOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::boundary::calls::lock;
use crate::boundary::error::pack_error;
use crate::pack::operations::parsed_spec;

/// The texts of a corpus in order; with a key, as dicts that have the text under it.
#[pyclass(frozen, name = "Texts", module = "packtok._packtok")]
pub(crate) struct PyTexts {
    state: Mutex<(CorpusTexts, IntoIter<String>)>,
    key: Option<Py<PyString>>,
}

#[pymethods]
impl PyTexts {
    #[new]
    #[pyo3(signature = (spec, key = None))]
    fn new(py: Python<'_>, spec: &str, key: Option<Py<PyString>>) -> PyResult<Self> {
        let options = ScanOptions::of(&parsed_spec(spec)?).map_err(pack_error)?;
        let texts = py
            .detach(|| CorpusTexts::open(&options))
            .map_err(pack_error)?;
        let state = Mutex::new((texts, Vec::new().into_iter()));
        Ok(Self { state, key })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Waiting for another thread, which may call Python to read, needs the GIL released.
        let ready = (self.state.try_lock().ok()).and_then(|mut state| state.1.next());
        let read = || {
            let (texts, ready) = &mut *lock(&self.state);
            if ready.len() == 0 {
                *ready = texts.next_batch()?.unwrap_or_default().into_iter();
            }
            Ok(ready.next())
        };
        let text = match ready {
            Some(text) => Some(text),
            None => py.detach(read).map_err(pack_error)?,
        };
        let Some(text) = text else {
            return Ok(None);
        };
        let text = PyString::new(py, &text);
        let Some(key) = &self.key else {
            return Ok(Some(text.into_any()));
        };
        let record = PyDict::new(py);
        record.set_item(key, text)?;
        Ok(Some(record.into_any()))
    }

    fn __repr__(&self) -> &'static str {
        "Texts()"
    }
}
