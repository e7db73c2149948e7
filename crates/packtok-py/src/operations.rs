//! The functions behind the commands: convert, call the core without the GIL, convert back.

use std::ops::ControlFlow;
use std::path::PathBuf;

use packtok_bpe::{EncodeOptions, EngineChoice, SpecialTokensInText, Tokenizer};
use packtok_core::corpus::ReadOptions;
use packtok_core::field::Field;
use packtok_core::merge::MergeOptions;
use packtok_core::pack::{
    EmptyDocument, Existing, NotALimit, OnBadDocument, PackOptions, Progress, RejectLimit,
};
use packtok_core::pbin::{self, Replace, SpecialToken};
use packtok_core::raw_index::RawIndexOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::error::{core_error, pbin_error};
use crate::monitor::{watched, watched_writing};
use crate::tokenizer::PyTokenizer;
use crate::{json, memory};

/// Length that a chunk of lines is filled up to: long enough that locks cost nothing, short enough
/// that lines, texts and tokens of one chunk stay in a core's second-level cache (4 to 7 % less CPU
/// time than 1 MiB on code and multi, within noise on prose; one core of an AMD EPYC, Zen 4).
pub(crate) const CHUNK_BYTES: usize = 1 << 18;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(available_cpus, module)?)?;
    module.add_function(wrap_pyfunction!(publish_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(checked_reject_limit, module)?)?;
    module.add_function(wrap_pyfunction!(pack, module)?)?;
    module.add_function(wrap_pyfunction!(write_raw_index, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(verify_corpus, module)?)
}

/// Number of CPUs that this process may use: affinity and cgroup limits count.
#[pyfunction]
pub(crate) fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Writes a small file whole, synced and under its name in one step, replacing what has the name.
#[pyfunction]
fn publish_bytes(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    py.detach(|| pbin::publish_bytes(&path, data, Replace::Existing))
        .map_err(pbin_error)
}

/// Runs `call` as [`watched`] does and returns its report as a dict.
pub(crate) fn run<'py, R: Serialize + Send>(
    py: Python<'py>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> packtok_core::Result<R> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    json::to_python(py, &watched(py, on_progress, call)?)
}

/// Runs `call`, which writes a pbin, as [`watched_writing`] does and returns its report as a dict.
pub(crate) fn run_writing<'py, R: Serialize + Send>(
    py: Python<'py>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> packtok_core::Result<R> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    json::to_python(py, &watched_writing(py, on_progress, call)?)
}

/// What packing and comparing with a corpus have in common; names as in the stub.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CorpusArguments {
    inputs: Vec<String>,
    field: String,
    eod_token: String,
    bos_token: Option<String>,
    index_path: Option<PathBuf>,
    num_cpus: usize,
    add_special_tokens: bool,
    special_tokens_in_text: String,
    truncate_to: Option<usize>,
    engine: String,
    cache_bytes: Option<usize>,
    empty_document: String,
    on_bad_document: String,
    max_rejects: Option<String>,
    max_document_bytes: u64,
    max_documents: Option<u64>,
    max_tokens: Option<u64>,
    zstd_window_log: u32,
    pub(crate) tokenizer: Py<PyTokenizer>,
    pub(crate) on_progress: Option<Py<PyAny>>,
}

/// The rest of what packing takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct OutputArguments {
    pub(crate) output: PathBuf,
    pub(crate) existing: String,
    pub(crate) span_bytes: u64,
    pub(crate) restart: bool,
    pub(crate) redactions: Vec<(String, String)>,
}

impl OutputArguments {
    /// An output that is read, or spoken of, and not written.
    pub(crate) fn untouched(output: PathBuf, redactions: Vec<(String, String)>) -> Self {
        Self {
            output,
            existing: "error".to_owned(),
            span_bytes: u64::MAX,
            restart: false,
            redactions,
        }
    }
}

/// The rest of what comparing takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SampleArguments {
    path: PathBuf,
    sample: f64,
}

impl CorpusArguments {
    pub(crate) fn pack_options(&self, output: OutputArguments) -> PyResult<PackOptions> {
        let tokenizer = &self.tokenizer.get().inner;
        let special = |option: &str, token: &str| special_token(tokenizer, option, token);
        Ok(PackOptions {
            inputs: self.inputs.clone(),
            existing: existing(&output.existing)?,
            output: output.output,
            span_bytes: output.span_bytes,
            restart: output.restart,
            redactions: output.redactions,
            index_path: self.index_path.clone(),
            field: Field::compile(&self.field).map_err(core_error)?,
            encode: EncodeOptions {
                add_special_tokens: self.add_special_tokens,
                special_tokens_in_text: special_tokens_in_text(&self.special_tokens_in_text)?,
                truncate_to: self.truncate_to,
                engine: engine(&self.engine)?,
                cache_bytes: self.cache_bytes,
            },
            eod: special("--eod: settings.eod_token", &self.eod_token)?,
            bos: (self.bos_token.as_ref())
                .map(|token| special("--bos: settings.bos_token", token))
                .transpose()?,
            empty_document: choice(
                "empty_document",
                &self.empty_document,
                &[
                    ("skip", EmptyDocument::Skip),
                    ("keep", EmptyDocument::Keep),
                    ("fail", EmptyDocument::Fail),
                ],
            )?,
            on_bad_document: on_bad_document(&self.on_bad_document)?,
            max_rejects: self.max_rejects.as_deref().map(reject_limit).transpose()?,
            max_documents: self.max_documents,
            max_tokens: self.max_tokens,
            num_threads: self.num_cpus,
            read: ReadOptions {
                chunk_bytes: CHUNK_BYTES,
                max_document_bytes: self.max_document_bytes,
                zstd_window_log_max: self.zstd_window_log,
            },
        })
    }
}

/// The option that `value` names.
pub(crate) fn choice<T: Copy>(option: &str, value: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let named = choices.iter().find(|choice| choice.0 == value);
    named.map(|choice| choice.1).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
        PyValueError::new_err(format!(
            "{option} is {value:?}, expected one of {}",
            names.join(", ")
        ))
    })
}

pub(crate) fn existing(value: &str) -> PyResult<Existing> {
    let choices = [
        ("error", Existing::Error),
        ("skip", Existing::Skip),
        ("replace", Existing::Replace),
    ];
    choice("existing", value, &choices)
}

pub(crate) fn on_bad_document(value: &str) -> PyResult<OnBadDocument> {
    let choices = [("fail", OnBadDocument::Fail), ("skip", OnBadDocument::Skip)];
    choice("on_bad_document", value, &choices)
}

/// What `max_rejects` says.
pub(crate) fn reject_limit(value: &str) -> PyResult<RejectLimit> {
    (value.parse()).map_err(|expected: NotALimit| PyValueError::new_err(expected.to_string()))
}

/// The text of a limit on rejects in its shortest form; ValueError, saying what is expected, if it is none.
#[pyfunction]
fn checked_reject_limit(value: &str) -> PyResult<String> {
    Ok(reject_limit(value)?.to_string())
}

pub(crate) fn special_tokens_in_text(value: &str) -> PyResult<SpecialTokensInText> {
    let choices = [
        ("parse", SpecialTokensInText::Parse),
        ("text", SpecialTokensInText::Text),
        ("fail", SpecialTokensInText::Fail),
    ];
    choice("special_tokens_in_text", value, &choices)
}

pub(crate) fn engine(value: &str) -> PyResult<EngineChoice> {
    let choices = [
        ("auto", EngineChoice::Auto),
        ("fast", EngineChoice::Fast),
        ("reference", EngineChoice::Reference),
    ];
    choice("engine", value, &choices)
}

/// A token by its name, which has to be exactly one token.
fn special_token(tokenizer: &Tokenizer, option: &str, token: &str) -> PyResult<SpecialToken> {
    if let Some(id) = tokenizer.token_to_id(token) {
        return Ok(SpecialToken {
            token: token.to_owned(),
            id,
        });
    }
    let names: Vec<String> = tokenizer
        .special_tokens()
        .map(|special| format!("{:?}", special.content))
        .collect();
    Err(PyValueError::new_err(format!(
        "{option} {token:?} is not one token of {}; its special tokens are {}",
        tokenizer.name(),
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    )))
}

/// Packs a corpus into a pbin and returns a report; see `packtok.pack`.
#[pyfunction]
#[pyo3(signature = (**options))]
fn pack<'py>(py: Python<'py>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let (corpus, rest): (CorpusArguments, OutputArguments) = extract(options)?;
    let options = corpus.pack_options(rest)?;
    let tokenizer = &corpus.tokenizer.get().inner;
    memory::give_back();
    run_writing(py, corpus.on_progress, |monitor| {
        packtok_core::pack::pack(&options, tokenizer, monitor)
    })
}

/// Tokenizes a share of a corpus again and compares it with the pbin at `path`.
#[pyfunction]
#[pyo3(signature = (**options))]
fn verify_corpus<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (corpus, rest): (CorpusArguments, SampleArguments) = extract(options)?;
    let options = corpus.pack_options(OutputArguments::untouched(rest.path, Vec::new()))?;
    let tokenizer = &corpus.tokenizer.get().inner;
    run(py, corpus.on_progress, |monitor| {
        packtok_core::verify::verify_corpus(&options, tokenizer, rest.sample, monitor)
    })
}

/// Both halves of a function's keyword arguments.
pub(crate) fn extract<'py, A, B>(options: Option<&Bound<'py, PyDict>>) -> PyResult<(A, B)>
where
    A: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    B: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let options = options.ok_or_else(|| PyTypeError::new_err("no arguments were given"))?;
    Ok((options.extract()?, options.extract()?))
}

/// Writes the raw index of a JSONL file, as Modalities writes it, and returns a report.
#[pyfunction]
#[pyo3(signature = (*, src, index_path, on_bad_document, existing, max_document_bytes, on_progress))]
fn write_raw_index<'py>(
    py: Python<'py>,
    src: PathBuf,
    index_path: PathBuf,
    on_bad_document: &str,
    existing: &str,
    max_document_bytes: u64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = RawIndexOptions {
        src,
        index_path,
        on_bad_document: self::on_bad_document(on_bad_document)?,
        existing: self::existing(existing)?,
        read: ReadOptions {
            chunk_bytes: CHUNK_BYTES,
            max_document_bytes,
            // A raw index is of a plain file, so that no window is ever asked for.
            zstd_window_log_max: 27,
        },
    };
    run(py, on_progress, |monitor| {
        packtok_core::raw_index::write_raw_index(&options, monitor)
    })
}

/// Joins pbins into one and returns a report.
#[pyfunction]
#[pyo3(signature = (*, parts, output, existing, tokenizer, on_progress))]
fn merge<'py>(
    py: Python<'py>,
    parts: Vec<PathBuf>,
    output: PathBuf,
    existing: &str,
    tokenizer: Option<Py<PyTokenizer>>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = MergeOptions {
        parts,
        output,
        existing: self::existing(existing)?,
    };
    let tokenizer = tokenizer.as_ref().map(|tokenizer| &tokenizer.get().inner);
    run_writing(py, on_progress, |monitor| {
        packtok_core::merge::merge(&options, tokenizer, monitor)
    })
}

/// Checks checksums, index, ids and EODs of a pbin and returns what was proven.
#[pyfunction]
#[pyo3(signature = (*, path, tokenizer, on_progress))]
fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    tokenizer: Option<Py<PyTokenizer>>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let tokenizer = tokenizer.as_ref().map(|tokenizer| &tokenizer.get().inner);
    run(py, on_progress, |monitor| {
        packtok_core::verify::verify_file(&path, tokenizer, monitor)
    })
}
