//! Reshaping of token files: the documents, columns that filters read, and the steps.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use packtok_dataset::plans::split::Side;
use packtok_pack::pbin::{ChunkInfo, SpecialToken};
use packtok_pack::texts::Encoders;
use packtok_reshape::convert::{ConvertOptions, Sharding};
use packtok_reshape::steps::{Reshaper, Retokenizing, ShuffledUnit, Shuffling, WriteOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::calls::lock;
use crate::boundary::error::reshape_error;
use crate::boundary::monitor::{watched_reshaping, with_start};
use crate::boundary::token_formats::{element, format_of, open_options};
use crate::boundary::values::{self, choice};
use crate::reshape::convert::declared;
use crate::reshape::shuffle::budget;
use crate::tokenizer::PyTokenizer;

// The lock is only waited for without the GIL, which its holder may need.
/// Documents of token files, and how often each is used. Documents are numbered from 0 over all files;
/// columns are arrays with one element for each of the documents that the caller names.
#[pyclass(name = "Reshaper", module = "packtok._packtok", frozen)]
pub(crate) struct PyReshaper {
    inner: Mutex<Reshaper>,
}

type Column<'py> = Bound<'py, PyArray1<u64>>;

#[pymethods]
impl PyReshaper {
    /// Opens token files, of which all documents are used.
    #[new]
    #[pyo3(signature = (inputs, *, format, input_dtype, boundaries, tokenizer))]
    fn new(
        py: Python<'_>,
        inputs: Vec<PathBuf>,
        format: Option<&str>,
        input_dtype: Option<&str>,
        boundaries: Option<&str>,
        tokenizer: Option<Py<PyTokenizer>>,
    ) -> PyResult<Self> {
        let open = open_options(format, input_dtype, boundaries)?;
        let tokenizer = tokenizer.map(|tokenizer| declared(&tokenizer.get().inner));
        let reshaper = py
            .detach(|| Reshaper::open(&inputs, &open, tokenizer.as_ref()))
            .map_err(reshape_error)?;
        Ok(Self {
            inner: Mutex::new(reshaper),
        })
    }

    /// Number of documents of the files.
    #[getter]
    fn num_documents(&self, py: Python<'_>) -> u64 {
        py.detach(|| lock(&self.inner).num_documents())
    }

    /// Number of used documents, each as often as it is used.
    #[getter]
    fn num_used(&self, py: Python<'_>) -> u64 {
        py.detach(|| lock(&self.inner).num_used())
    }

    /// Names of the sources that `origins` has indices of.
    #[getter]
    fn source_names(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| lock(&self.inner).source_names())
    }

    /// The meaning of the ids: `tokenizer`, `eod` and `bos`, as a trailer records them.
    #[getter]
    fn meaning<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let meaning = py.detach(|| lock(&self.inner).meaning());
        values::to_python(py, &meaning)
    }

    /// Numbers of the next used documents from `first` on; None after the last.
    fn batch<'py>(&self, py: Python<'py>, first: u64) -> PyResult<Option<Column<'py>>> {
        let numbers = py
            .detach(|| lock(&self.inner).batch(first))
            .map_err(reshape_error)?;
        Ok(numbers.map(|numbers| numbers.into_pyarray(py)))
    }

    /// The number of tokens of each document.
    fn lengths<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Column<'py>> {
        let numbers = numbers.as_slice()?;
        let lengths = py.detach(|| lock(&self.inner).lengths(numbers));
        Ok(lengths.map_err(reshape_error)?.into_pyarray(py))
    }

    /// The hash of each document that splits use.
    fn hashes<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, u64>,
        seed: u64,
    ) -> PyResult<Column<'py>> {
        let numbers = numbers.as_slice()?;
        let hashes = py.detach(|| lock(&self.inner).hashes(numbers, seed));
        Ok(hashes.map_err(reshape_error)?.into_pyarray(py))
    }

    /// How often an id is in each document.
    fn counts<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, u64>,
        id: u32,
    ) -> PyResult<Column<'py>> {
        let numbers = numbers.as_slice()?;
        let counts = py.detach(|| lock(&self.inner).counts(numbers, id));
        Ok(counts.map_err(reshape_error)?.into_pyarray(py))
    }

    /// The source of each document, as an index of `source_names`, and its place there.
    fn origins<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<(Column<'py>, Column<'py>)> {
        let numbers = numbers.as_slice()?;
        let origins = py.detach(|| lock(&self.inner).origins(numbers));
        let (sources, offsets) = origins.map_err(reshape_error)?;
        Ok((sources.into_pyarray(py), offsets.into_pyarray(py)))
    }

    /// The ids of a document.
    fn ids<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let ids = py.detach(|| lock(&self.inner).ids(number));
        Ok(ids.map_err(reshape_error)?.into_pyarray(py))
    }

    /// Starts a filter, whose decisions follow.
    #[pyo3(signature = (value))]
    fn start_filter(&self, py: Python<'_>, value: Option<String>) {
        py.detach(|| lock(&self.inner).start_step("filter", value));
    }

    /// Leaves out the documents whose flag is false.
    fn decide(
        &self,
        py: Python<'_>,
        numbers: PyReadonlyArray1<'_, u64>,
        flags: PyReadonlyArray1<'_, bool>,
    ) -> PyResult<()> {
        let (numbers, flags) = (numbers.as_slice()?, flags.as_slice()?);
        if numbers.len() != flags.len() {
            let (found, expected) = (flags.len(), numbers.len());
            return Err(PyValueError::new_err(format!(
                "the filter returned {found} values; expected {expected}, one for each document"
            )));
        }
        py.detach(|| lock(&self.inner).decide(numbers, flags))
            .map_err(reshape_error)
    }

    /// Keeps the documents of each file that are in chunk `index` of `count`.
    fn chunk(&self, py: Python<'_>, index: u64, count: u64) -> PyResult<()> {
        py.detach(|| lock(&self.inner).chunk(ChunkInfo { index, count }))
            .map_err(reshape_error)
    }

    /// Leaves out the documents that lists name; `tokenizer` decodes texts whose hashes are listed.
    fn remove(
        &self,
        py: Python<'_>,
        lists: Vec<String>,
        tokenizer: Option<Py<PyTokenizer>>,
        num_threads: usize,
    ) -> PyResult<()> {
        let encoders = tokenizer.map(|tokenizer| Encoders::new(tokenizer.get().inner.clone()));
        watched_reshaping(py, None, |monitor| {
            let mut check = || monitor(&Default::default());
            lock(&self.inner).remove(&lists, encoders.as_ref(), num_threads, &mut check)
        })
    }

    /// Keeps one side of a split by hash.
    fn split_by_hash(&self, py: Python<'_>, side: &str, fraction: f64, seed: u64) -> PyResult<()> {
        let side = side_of(side)?;
        watched_reshaping(py, None, |monitor| {
            let mut check = || monitor(&Default::default());
            lock(&self.inner).split_by_hash(side, fraction, seed, &mut check)
        })
    }

    /// Keeps one side of a split that holds out the last documents.
    fn split_last(&self, py: Python<'_>, side: &str, num_validation: u64) -> PyResult<()> {
        let side = side_of(side)?;
        py.detach(|| lock(&self.inner).split_last(side, num_validation))
            .map_err(reshape_error)
    }

    /// Keeps this number of randomly chosen documents.
    fn sample_documents(&self, py: Python<'_>, num_documents: u64, seed: u64) -> PyResult<()> {
        py.detach(|| lock(&self.inner).sample_documents(num_documents, seed))
            .map_err(reshape_error)
    }

    /// Keeps randomly chosen documents with at most this number of tokens together.
    fn sample_tokens(&self, py: Python<'_>, max_tokens: u64, seed: u64) -> PyResult<()> {
        py.detach(|| lock(&self.inner).sample_tokens(max_tokens, seed))
            .map_err(reshape_error)
    }

    /// Uses the documents of each source as often as its weight says.
    fn sample_by_weight(
        &self,
        py: Python<'_>,
        weights: Vec<f64>,
        seed: u64,
        described: String,
    ) -> PyResult<()> {
        py.detach(|| lock(&self.inner).sample_by_weight(&weights, seed, described))
            .map_err(reshape_error)
    }

    /// Writes the used documents and returns a report.
    ///
    /// `retokenize` is the tokenizer of the input and the new one, each new EOD and BOS as token and id.
    /// `shuffle` is a seed, and the least tokens of a block or None for documents. `memory` is as in
    /// `shuffle_files`. `on_start` is called with what is kept before anything is written.
    #[pyo3(signature = (*, inputs, output, to, sharding, accept_loss, dtype, existing, truncate_to, retokenize, shuffle, row_tokens, num_threads, on_start, on_progress, memory = None))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn write<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<PathBuf>,
        output: PathBuf,
        to: &str,
        sharding: Option<(Option<u64>, Option<u64>)>,
        accept_loss: Vec<String>,
        dtype: Option<&str>,
        existing: &str,
        truncate_to: Option<u64>,
        retokenize: Option<(
            Py<PyTokenizer>,
            Py<PyTokenizer>,
            (String, u32),
            Option<(String, u32)>,
        )>,
        shuffle: Option<(u64, Option<u64>)>,
        row_tokens: Option<u64>,
        num_threads: usize,
        on_start: Option<Py<PyAny>>,
        on_progress: Option<Py<PyAny>>,
        memory: Option<(u64, u64)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let special = |(token, id)| SpecialToken { token, id };
        let retokenizing = retokenize.map(|(from, to, eod, bos)| Retokenizing {
            from: Encoders::new(from.get().inner.clone()),
            to: Encoders::new(to.get().inner.clone()),
            eod: special(eod),
            bos: bos.map(special),
            num_threads,
        });
        let options = WriteOptions {
            convert: ConvertOptions {
                inputs,
                open: open_options(None, None, None)?,
                output,
                to: format_of(to)?,
                link: false,
                sharding: sharding.map(|(max_tokens, multiple_of)| Sharding {
                    max_tokens,
                    multiple_of,
                }),
                part: None,
                completes_parts: false,
                accept_loss,
                dtype: dtype.map(|name| element(name, "dtype")).transpose()?,
                tokenizer: None,
                existing: choice("existing", existing)?,
                source_name: None,
                num_threads,
            },
            retokenizing,
            truncate_to,
            shuffling: shuffle.map(|(seed, min_tokens)| Shuffling {
                seed,
                unit: match min_tokens {
                    Some(min_tokens) => ShuffledUnit::Blocks { min_tokens },
                    None => ShuffledUnit::Documents,
                },
                budget: budget(memory),
            }),
            row_tokens,
        };
        let report = with_start(on_start.as_ref(), |started| {
            watched_reshaping(py, on_progress, |monitor| {
                lock(&self.inner).write(&options, started, monitor)
            })
        })?;
        values::to_python(py, &report)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (num_used, num_documents) = (self.num_used(py), self.num_documents(py));
        format!("Reshaper({num_used} of {num_documents} documents)")
    }
}

fn side_of(name: &str) -> PyResult<Side> {
    [Side::Train, Side::Validation]
        .into_iter()
        .find(|side| side.name() == name)
        .ok_or_else(|| {
            PyValueError::new_err(format!("split is {name:?}, expected train or validation"))
        })
}
