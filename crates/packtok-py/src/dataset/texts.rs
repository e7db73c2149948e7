//! `DocumentTexts`: the profile of token files, and a search in their documents.

use std::path::PathBuf;
use std::time::Duration;

use packtok_dataset::texts::{DocumentTexts, Pattern, Position, SearchLimits};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::error::dataset_error;
use crate::boundary::monitor::watched_planning;
use crate::boundary::token_formats::ReadAs;
use crate::boundary::values;
use crate::dataset::files::{EntryTuple, Sources};
use crate::tokenizer::PyTokenizer;

/// The documents of token files, decoded with a tokenizer. Threads may share it; it lets others run.
///
/// The files are those of `Blocks`. Without a tokenizer, documents have ids only.
#[pyclass(frozen, name = "DocumentTexts", module = "packtok._packtok")]
pub(crate) struct PyDocumentTexts {
    inner: DocumentTexts,
}

#[pymethods]
impl PyDocumentTexts {
    #[new]
    #[pyo3(signature = (paths=None, *, tokenizer, manifest=None, entries=None, read_as=None))]
    fn new(
        py: Python<'_>,
        paths: Option<Vec<PathBuf>>,
        tokenizer: Option<Py<PyTokenizer>>,
        manifest: Option<PathBuf>,
        entries: Option<Vec<EntryTuple>>,
        read_as: Option<ReadAs>,
    ) -> PyResult<Self> {
        let sources = Sources {
            paths,
            manifest,
            entries,
            fingerprint: None,
            read_as,
        };
        let tokenizer = tokenizer.map(|tokenizer| tokenizer.get().inner.clone());
        py.detach(|| {
            let (files, _) = sources.open(false)?;
            let inner = DocumentTexts::new(files, tokenizer).map_err(dataset_error)?;
            Ok(Self { inner })
        })
    }

    /// The paths of the files, in order.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        self.inner.paths().map(Into::into).collect()
    }

    /// What a sample of about `sample_tokens` tokens contains. Documents are drawn by their content.
    #[pyo3(signature = (*, sample_tokens, on_progress))]
    fn profile<'py>(
        &self,
        py: Python<'py>,
        sample_tokens: u64,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let profile = watched_planning(py, on_progress, |monitor| {
            self.inner.profile(sample_tokens, monitor)
        })?;
        values::to_python(py, &profile)
    }

    /// Searches for `text` from a token of a document, until there are `max_hits` or `seconds` have passed.
    ///
    /// Returns `hits`, each with `document`, `token`, `before`, `text` and `after`, and `next`: where to
    /// continue, or None at the end.
    #[pyo3(signature = (text, *, ignore_case, document, token, max_hits, seconds))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        ignore_case: bool,
        document: u64,
        token: u64,
        max_hits: usize,
        seconds: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let limits = SearchLimits {
            hits: max_hits,
            time,
        };
        let result = py.detach(|| {
            let pattern = Pattern::new(text, ignore_case)?;
            self.inner
                .search(&pattern, Position { document, token }, limits)
        });
        values::to_python(py, &result.map_err(dataset_error)?)
    }
}
