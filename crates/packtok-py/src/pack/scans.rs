//! Functions that scan the texts of a corpus and write nothing.

use packtok_corpus::{Selection, describe};
use packtok_pack::count::count;
use packtok_pack::scan::ScanOptions;
use packtok_pack::verify::verify_engines;
use packtok_tokenizer::{EncodeOptions, SpecialTokensInText};
use pyo3::prelude::*;

use crate::boundary::error::{corpus_error, pack_error};
use crate::boundary::memory;
use crate::boundary::values::choice;
use crate::pack::operations::{parsed_spec, run, with_plugin};
use crate::tokenizer::PyTokenizer;

/// Counts documents, bytes and tokens of a corpus by source, for several tokenizers at once.
/// `as_each_file` encodes the text of special tokens as the library of each tokenizer's file does.
#[pyfunction]
#[pyo3(signature = (spec, tokenizers, on_progress, plugin = None, *, as_each_file = false))]
pub(crate) fn count_tokens<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizers: Vec<Py<PyTokenizer>>,
    on_progress: Option<Py<PyAny>>,
    plugin: Option<Bound<'py, PyAny>>,
    as_each_file: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut spec = parsed_spec(spec)?;
    let mut encode = EncodeOptions {
        truncate_to: None,
        ..spec.encode()
    };
    if as_each_file {
        encode.special_tokens_in_text = SpecialTokensInText::OfFile;
    }
    let tokenizers: Vec<_> = (tokenizers.iter())
        .map(|tokenizer| tokenizer.get().inner.clone())
        .collect();
    memory::give_back();
    with_plugin(py, plugin, |plugin| {
        spec.plugin = plugin;
        let options = ScanOptions::of(&spec).map_err(pack_error)?;
        run(py, on_progress, |monitor| {
            count(&options, &tokenizers, &encode, monitor)
        })
    })
}

/// Describes a corpus without reading its documents: format, columns that contain texts, number of
/// sources and their bytes, and the files that are not read.
#[pyfunction]
#[pyo3(signature = (inputs, format = None, ignore = None))]
pub(crate) fn describe_corpus<'py>(
    py: Python<'py>,
    inputs: Vec<String>,
    format: Option<&str>,
    ignore: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let selection = selection(format, &ignore.unwrap_or_default(), None)?;
    run(py, None, |_| Ok(describe(&inputs, &selection)?))
}

/// The selection of the files of inputs, from the arguments of Python.
pub(crate) fn selection(
    format: Option<&str>,
    ignore: &[String],
    split: Option<&str>,
) -> PyResult<Selection> {
    let format = format.map(|format| choice("format", format)).transpose()?;
    Selection::new(format, ignore, split).map_err(corpus_error)
}

/// Compares the engine of a tokenizer with the reference engine.
#[pyfunction]
pub(crate) fn compare_engines<'py>(
    py: Python<'py>,
    spec: &str,
    tokenizer: Py<PyTokenizer>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = ScanOptions::of(&parsed_spec(spec)?).map_err(pack_error)?;
    let tokenizer = &tokenizer.get().inner;
    // Without inputs, only the built-in texts are compared.
    let scanned = (!options.inputs.is_empty()).then_some(&options);
    run(py, on_progress, |monitor| {
        verify_engines(tokenizer, scanned, options.num_threads, monitor)
    })
}
