//! Functions that go over the texts of a corpus and write nothing.

use packtok_bpe::EncodeOptions;
use packtok_core::corpus::ReadOptions;
use packtok_core::count::count;
use packtok_core::field::Field;
use packtok_core::scan::ScanOptions;
use packtok_core::verify::verify_engines;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::core_error;
use crate::memory;
use crate::operations::{CHUNK_BYTES, extract, on_bad_document, run, special_tokens_in_text};
use crate::tokenizer::PyTokenizer;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(count_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(compare_engines, module)?)
}

/// Which texts of which corpus; names as in the stub.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ScanArguments {
    inputs: Vec<String>,
    field: String,
    num_cpus: usize,
    on_bad_document: String,
    max_document_bytes: u64,
    max_documents: Option<u64>,
    zstd_window_log: u32,
    on_progress: Option<Py<PyAny>>,
}

impl ScanArguments {
    fn options(&self) -> PyResult<ScanOptions> {
        Ok(ScanOptions {
            inputs: self.inputs.clone(),
            field: Field::compile(&self.field).map_err(core_error)?,
            on_bad_document: on_bad_document(&self.on_bad_document)?,
            max_documents: self.max_documents,
            num_threads: self.num_cpus,
            read: ReadOptions {
                chunk_bytes: CHUNK_BYTES,
                max_document_bytes: self.max_document_bytes,
                zstd_window_log_max: self.zstd_window_log,
            },
        })
    }
}

/// The rest of what counting takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CountArguments {
    tokenizers: Vec<Py<PyTokenizer>>,
    add_special_tokens: bool,
    special_tokens_in_text: String,
}

/// The rest of what comparing engines takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EngineArguments {
    tokenizer: Py<PyTokenizer>,
}

/// Counts documents, bytes and tokens of a corpus by source, for several tokenizers at once.
#[pyfunction]
#[pyo3(signature = (**options))]
fn count_tokens<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (corpus, rest): (ScanArguments, CountArguments) = extract(options)?;
    let options = corpus.options()?;
    let encode = EncodeOptions {
        add_special_tokens: rest.add_special_tokens,
        special_tokens_in_text: special_tokens_in_text(&rest.special_tokens_in_text)?,
        ..EncodeOptions::default()
    };
    let tokenizers: Vec<_> = (rest.tokenizers.iter())
        .map(|tokenizer| tokenizer.get().inner.clone())
        .collect();
    memory::give_back();
    run(py, corpus.on_progress, |monitor| {
        count(&options, &tokenizers, &encode, monitor)
    })
}

/// Compares the engine that serves a tokenizer with the one that engines are held against.
#[pyfunction]
#[pyo3(signature = (**options))]
fn compare_engines<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (corpus, rest): (ScanArguments, EngineArguments) = extract(options)?;
    let options = corpus.options()?;
    let tokenizer = &rest.tokenizer.get().inner;
    // Without inputs, the built-in texts alone.
    let scanned = (!options.inputs.is_empty()).then_some(&options);
    run(py, corpus.on_progress, |monitor| {
        verify_engines(tokenizer, scanned, options.num_threads, monitor)
    })
}
