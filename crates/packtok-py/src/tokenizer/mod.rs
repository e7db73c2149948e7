//! `Tokenizer`: encodes texts, decodes ids, and describes the vocabulary.

pub(crate) mod proof;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use numpy::{IntoPyArray, PyArray1};
use packtok_jobs::Progress;
use packtok_pack::pbin::TokenWidth;
use packtok_pack::texts::{Encoders, Text};
use packtok_tokenizer::{
    BUILTIN_NAMES, ENDOFTEXT, EncodeOptions, NewToken, SpecialTokensInText, Tokenizer, Vocabulary,
};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use self::proof::proven;
use crate::boundary::error::{pack_error, tokenizer_error};
use crate::boundary::integers::integers;
use crate::boundary::memory::{room_for_ids, without_room};
use crate::boundary::monitor::watched;
use crate::boundary::strings::{string, strings};
use crate::boundary::values::{self, choice};

type Array<'py, T> = Bound<'py, PyArray1<T>>;

/// The built-in tokenizer that was used last. Loading one takes as long as packing megabytes, and programs pack many
/// files with the same.
static LAST_BUILTIN: Mutex<Option<Tokenizer>> = Mutex::new(None);

/// A loaded tokenizer. Returns the same ids as Hugging Face `tokenizers`.
///
/// Created by `Tokenizer.from_pretrained`, `Tokenizer.from_file`, `Tokenizer.builtin`, or from the
/// bytes of a tokenizer.json. Immutable and safe to share between threads. Pickles with the
/// content of its file, so that it is the same in any process and on any machine.
#[pyclass(frozen, name = "Tokenizer", module = "packtok")]
pub(crate) struct PyTokenizer {
    pub(crate) inner: Tokenizer,
    encoders: Encoders,
    /// Built at the first lookup of a token; most uses never need it.
    vocabulary: OnceLock<Vocabulary>,
    named: Named,
}

/// The properties of a tokenizer that its file does not contain.
#[derive(Clone, Default)]
struct Named {
    bos_token: Option<String>,
    eos_token: Option<String>,
    /// Remarks on files next to tokenizer.json that add to it.
    remarks: Vec<String>,
}

impl PyTokenizer {
    fn new(inner: Tokenizer, named: Named) -> Self {
        Self {
            encoders: Encoders::new(inner.clone()),
            inner,
            vocabulary: OnceLock::new(),
            named,
        }
    }

    /// A tokenizer for a program that encodes texts. Importing NumPy takes as long as encoding
    /// megabytes, and is done here instead of in the first call.
    fn with_numpy(py: Python<'_>, inner: Tokenizer, named: Named) -> PyResult<Self> {
        py.import("numpy")?;
        Ok(Self::new(inner, named))
    }

    /// A tokenizer that needs neither file nor network.
    fn loaded_builtin(py: Python<'_>, name: &str) -> PyResult<(Tokenizer, Named)> {
        let last = last_builtin(|last| last.clone()).flatten();
        let loaded = match last.filter(|last| last.name() == name) {
            Some(last) => last,
            None => py
                .detach(|| Tokenizer::builtin(name))
                .map_err(tokenizer_error)?,
        };
        let inner = proven(py, loaded)?;
        let kept = inner.distrust().is_none().then(|| inner.clone());
        last_builtin(|last| *last = kept);
        let end_of_text = || ENDOFTEXT.to_owned();
        let named = Named {
            // For GPT-2, Hugging Face has a tokenizer, in which this token is also BOS.
            bos_token: (name == "gpt2").then(end_of_text),
            // Every built-in tokenizer has this token.
            eos_token: Some(end_of_text()),
            remarks: Vec::new(),
        };
        Ok((inner, named))
    }

    /// The result of a function of `packtok.tokenizer.find`, which reads the files next to a
    /// tokenizer for the commands and for this class.
    fn of_finder<'py>(
        py: Python<'py>,
        function: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Self> {
        let finder = py.import("packtok.tokenizer.find")?;
        let result = finder.call_method1(function, arguments)?;
        finder.call_method1("warn", (&result,))?;
        let tokenizer = result.getattr("tokenizer")?;
        let inner = tokenizer.cast::<Self>()?.get().inner.clone();
        let named = Named {
            bos_token: result.getattr("bos_token")?.extract()?,
            eos_token: result.getattr("eos_token")?.extract()?,
            remarks: result.getattr("warnings")?.extract()?,
        };
        Self::with_numpy(py, inner, named)
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.vocabulary.get_or_init(|| Vocabulary::of(&self.inner))
    }
}

/// The result of `function` for [`LAST_BUILTIN`]; `None` if a thread is using it, as it may be forever after a fork.
fn last_builtin<T>(function: impl FnOnce(&mut Option<Tokenizer>) -> T) -> Option<T> {
    let mut last = LAST_BUILTIN.try_lock().ok()?;
    Some(function(&mut last))
}

/// The tokenizer in a file, ignoring the files next to it.
#[pyfunction]
pub(crate) fn read_tokenizer(py: Python<'_>, path: PathBuf, name: &str) -> PyResult<PyTokenizer> {
    let loaded = py.detach(|| Tokenizer::from_file(&path, Some(name)));
    let inner = proven(py, loaded.map_err(tokenizer_error)?)?;
    Ok(PyTokenizer::new(inner, Named::default()))
}

/// A built-in tokenizer, for commands, which do without NumPy.
#[pyfunction]
pub(crate) fn builtin_tokenizer(py: Python<'_>, name: &str) -> PyResult<PyTokenizer> {
    let (inner, named) = PyTokenizer::loaded_builtin(py, name)?;
    Ok(PyTokenizer::new(inner, named))
}

/// For each of `tokens`, which is JSON, `"absent"`, `"ordinary"`, `"differing"` or `"same"`.
#[pyfunction]
pub(crate) fn presence_of_tokens<'py>(
    py: Python<'py>,
    tokenizer: &PyTokenizer,
    tokens: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let presence = tokenizer.inner.presence_of(&new_tokens(tokens)?);
    values::to_python(py, &presence.map_err(tokenizer_error)?)
}

/// The tokenizer with `tokens`, which is JSON, added to its file.
#[pyfunction]
pub(crate) fn with_tokens(
    py: Python<'_>,
    tokenizer: &PyTokenizer,
    tokens: &str,
) -> PyResult<PyTokenizer> {
    let tokens = new_tokens(tokens)?;
    let loaded = py.detach(|| tokenizer.inner.with_tokens(&tokens));
    let inner = proven(py, loaded.map_err(tokenizer_error)?)?;
    let named = Named {
        remarks: Vec::new(),
        ..tokenizer.named.clone()
    };
    Ok(PyTokenizer::new(inner, named))
}

fn new_tokens(json: &str) -> PyResult<Vec<NewToken>> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The id that the post-processor in the text of a tokenizer.json appends to a document, or None;
/// errors call the file `name`.
#[pyfunction]
pub(crate) fn appended_id(name: &str, json: &str) -> PyResult<Option<u32>> {
    packtok_tokenizer::appended_id(name, json).map_err(tokenizer_error)
}

#[pymethods]
impl PyTokenizer {
    /// Loads the bytes of a tokenizer.json. Messages call the tokenizer `name`.
    #[new]
    #[pyo3(signature = (
        json, name="tokenizer.json", eos_token=None, remarks=Vec::new(), bos_token=None,
        special_tokens_in_text=None,
    ))]
    fn from_bytes(
        py: Python<'_>,
        json: &[u8],
        name: &str,
        eos_token: Option<String>,
        remarks: Vec<String>,
        bos_token: Option<String>,
        special_tokens_in_text: Option<&str>,
    ) -> PyResult<Self> {
        let loaded = py.detach(|| Tokenizer::from_json_bytes(name, json.to_vec()));
        let mut inner = proven(py, loaded.map_err(tokenizer_error)?)?;
        if let Some(rule) = special_tokens_in_text {
            inner = inner.with_special_tokens_in_text(choice("special_tokens_in_text", rule)?);
        }
        let named = Named {
            bos_token,
            eos_token,
            remarks,
        };
        Self::with_numpy(py, inner, named)
    }

    /// Loads a tokenizer.json, tekken.json or SentencePiece .model file. Messages call it `name`
    /// (default: the path).
    ///
    /// Files next to it name its EOS. `add_special_tokens_from_config` adds the tokens that these
    /// files name and the tokenizer file lacks.
    #[staticmethod]
    #[pyo3(signature = (path, *, name=None, add_special_tokens_from_config=false))]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        name: Option<String>,
        add_special_tokens_from_config: bool,
    ) -> PyResult<Self> {
        let path = path.into_os_string();
        let arguments = (path, name, add_special_tokens_from_config);
        Self::of_finder(py, "tokenizer_of_file", arguments)
    }

    /// Loads a tokenizer by name: a tokenizer file or its folder, a built-in name, or a name on the
    /// hub.
    ///
    /// Accepts the same as `tokenizer` in a config and `--tokenizer` of the commands, and the flag
    /// `--add-special-tokens-from-config`.
    #[staticmethod]
    #[pyo3(signature = (name, *, add_special_tokens_from_config=false))]
    fn from_pretrained(
        py: Python<'_>,
        name: PathBuf,
        add_special_tokens_from_config: bool,
    ) -> PyResult<Self> {
        let arguments = (name.into_os_string(), add_special_tokens_from_config);
        Self::of_finder(py, "find_tokenizer", arguments)
    }

    /// Loads a tokenizer that needs neither file nor network; see `builtin_names`.
    #[staticmethod]
    fn builtin(py: Python<'_>, name: &str) -> PyResult<Self> {
        let (inner, named) = Self::loaded_builtin(py, name)?;
        Self::with_numpy(py, inner, named)
    }

    /// Names that `builtin` accepts.
    #[staticmethod]
    fn builtin_names() -> Vec<&'static str> {
        BUILTIN_NAMES.to_vec()
    }

    /// The name under which it was loaded.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// `sha256:` and the hash of the parsed tokenizer.json; independent of layout and key order.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }

    /// Highest id + 1, including added tokens.
    #[getter]
    fn vocab_size(&self) -> u64 {
        self.inner.vocab_size()
    }

    /// Bytes per id in a pbin.
    #[getter]
    fn token_bytes(&self) -> u64 {
        TokenWidth::for_vocab(self.inner.vocab_size()).bytes()
    }

    /// Name and version of its engine.
    #[getter]
    fn engine(&self) -> &'static str {
        self.inner.engine().name()
    }

    /// The reason why this engine was chosen, as a phrase.
    #[getter]
    fn engine_reason(&self) -> String {
        self.inner.engine_reason()
    }

    /// Whether encoding time is known to grow at most linearly with the length of the text.
    #[getter]
    fn is_linear(&self) -> bool {
        self.inner.is_linear()
    }

    /// Notes on the exactness of the tokenizer and on the files next to it, one sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let distrust = self.inner.distrust().map(|difference| {
            let engine = self.inner.engine().name();
            format!(
                "uses {engine}, because packtok's fast engine gives different ids: {difference}"
            )
        });
        let distrust: Vec<String> = distrust.into_iter().collect();
        [self.inner.notes(), &distrust, &self.named.remarks].concat()
    }

    /// The token that ends texts, if the tokenizer file or a file next to it names one.
    #[getter]
    fn eos_token(&self) -> Option<&str> {
        let of_file = || self.inner.eos_token();
        self.named.eos_token.as_deref().or_else(of_file)
    }

    /// The token that starts texts, if a file next to the tokenizer names one. Some tokenizers add
    /// a BOS without naming it.
    #[getter]
    fn bos_token(&self) -> Option<&str> {
        self.named.bos_token.as_deref()
    }

    /// Each component of tokenizer.json and its effect: `name`, `found`, `is_used`, `became`.
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let components = py.detach(|| self.inner.components());
        values::to_python(py, &components)
    }

    /// The speed on a built-in sample, of each engine that can encode with this tokenizer: `engine`,
    /// `is_used`, `bytes_per_second`.
    fn measured_speeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let speeds = py.detach(|| self.inner.measured_speeds());
        values::to_python(py, &speeds.map_err(tokenizer_error)?)
    }

    /// Special tokens and their ids.
    #[getter]
    fn special_tokens(&self) -> Vec<(String, u32)> {
        let tokens = self.inner.special_tokens();
        tokens
            .map(|token| (token.content.clone(), token.id))
            .collect()
    }

    /// How a special token's text inside a text is encoded unless a caller says otherwise: `"text"`,
    /// as by Mistral's library, if it was loaded from a tekken.json, else `"parse"`.
    #[getter]
    fn special_tokens_in_text(&self) -> &'static str {
        match self.inner.special_tokens_in_text() {
            SpecialTokensInText::Text => "text",
            SpecialTokensInText::Fail => "fail",
            SpecialTokensInText::Parse | SpecialTokensInText::OfFile => "parse",
        }
    }

    /// All added tokens and their ids, special or not.
    #[getter]
    fn added_tokens(&self) -> Vec<(String, u32)> {
        let tokens = self.inner.added_tokens().iter();
        tokens
            .map(|token| (token.content.clone(), token.id))
            .collect()
    }

    /// The id of a token by its name in tokenizer.json, or None.
    fn token_to_id(&self, py: Python<'_>, token: &str) -> Option<u32> {
        py.detach(|| self.vocabulary().id_of(token))
    }

    /// The name of an id in tokenizer.json, or None.
    fn id_to_token(&self, py: Python<'_>, id: u32) -> Option<&str> {
        py.detach(|| self.vocabulary().name_of(id))
    }

    /// The ids of `text`, as a uint32 array, by default with the post-processor's special tokens.
    ///
    /// `special_tokens_in_text` determines how a special token's text inside `text` is encoded:
    /// `"parse"`, as the token; `"text"`, like any other text; `"fail"`, raises an error. By default
    /// the attribute of this name applies.
    #[pyo3(signature = (text, *, add_special_tokens=true, special_tokens_in_text=None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special_tokens: bool,
        special_tokens_in_text: Option<&str>,
    ) -> PyResult<Array<'py, u32>> {
        let options = options(add_special_tokens, special_tokens_in_text)?;
        let text = string(text)?;
        let ids = py.detach(|| self.encoders.encode(&text, &options));
        Ok(ids.map_err(pack_error)?.into_pyarray(py))
    }

    /// The ids of many texts: all ids concatenated, and the offset of each text.
    ///
    /// Text `i` has the ids `ids[offsets[i]:offsets[i + 1]]`; `ids` is uint32 and `offsets` int64,
    /// with one more element than `texts`. `threads` is the number of threads, by default the
    /// number of CPUs available to this process; the result does not depend on it.
    #[pyo3(signature = (texts, *, add_special_tokens=true, special_tokens_in_text=None, threads=None))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        add_special_tokens: bool,
        special_tokens_in_text: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let options = options(add_special_tokens, special_tokens_in_text)?;
        let (texts, num_threads) = (strings(texts)?, num_threads(threads)?);
        // A token has at least one byte of text, except for tokens that are added around texts and
        // before words.
        let num_bytes: usize = (texts.iter()).map(|text| text.max_utf8_bytes() + 4).sum();
        let batch = watched(py, None, |monitor| {
            let mut tick = || monitor(&Progress::default());
            let ids = room_for_ids(num_bytes);
            (self.encoders).encode_batch(&texts, &options, num_threads, ids, &mut tick)
        })?;
        let ids = without_room(batch.ids);
        Ok((ids.into_pyarray(py), batch.offsets.into_pyarray(py)))
    }

    /// The number of tokens of each text, as an int64 array; its `sum()` is the total.
    ///
    /// Arguments as for `encode_batch`; the ids are not kept.
    #[pyo3(signature = (texts, *, add_special_tokens=true, special_tokens_in_text=None, threads=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        add_special_tokens: bool,
        special_tokens_in_text: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<Array<'py, i64>> {
        let options = options(add_special_tokens, special_tokens_in_text)?;
        let (texts, num_threads) = (strings(texts)?, num_threads(threads)?);
        let counts = watched(py, None, |monitor| {
            let mut tick = || monitor(&Progress::default());
            (self.encoders).count(&texts, &options, num_threads, &mut tick)
        })?;
        Ok(counts.into_pyarray(py))
    }

    /// The text of `ids` (an array, tensor or sequence of integers), by default with special
    /// tokens.
    #[pyo3(signature = (ids, *, skip_special_tokens=false))]
    fn decode(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<String> {
        let ids: Vec<u32> = integers("ids", ids)?;
        py.detach(|| self.encoders.decode(&ids, skip_special_tokens))
            .map_err(pack_error)
    }

    /// The bytes that each of `ids` adds to the text, to show where tokens begin and end.
    ///
    /// A token of a byte-level tokenizer may be a part of a character. The pieces joined are the
    /// text of `decode`, except that invalid UTF-8 is not replaced. They can also differ for a
    /// decoder that changes the text around tokens, such as by removing spaces before punctuation.
    fn pieces<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let ids: Vec<u32> = integers("ids", ids)?;
        let pieces = py.detach(|| self.inner.pieces(&ids, self.vocabulary()));
        let pieces = pieces.map_err(tokenizer_error)?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }

    /// How many of `ids` are of each kind: `"word"`, `"number"`, `"white_space"`, `"symbol"`, `"bytes"`
    /// (part of a character), `"special"` and `"empty"` (without text).
    fn count_kinds(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
    ) -> PyResult<BTreeMap<&'static str, u64>> {
        let ids: Vec<u32> = integers("ids", ids)?;
        let counts = py.detach(|| self.inner.count_kinds(&ids, self.vocabulary()));
        let counts = counts.map_err(tokenizer_error)?.into_iter();
        Ok(counts.map(|(kind, number)| (kind.name(), number)).collect())
    }

    /// The texts of many id lists. Text `i` has the ids `ids[offsets[i]:offsets[i + 1]]`, as
    /// returned by `encode_batch`.
    #[pyo3(signature = (ids, offsets, *, skip_special_tokens=false, threads=None))]
    fn decode_batch(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        threads: Option<usize>,
    ) -> PyResult<Vec<String>> {
        let (ids, offsets): (Vec<u32>, Vec<usize>) =
            (integers("ids", ids)?, integers("offsets", offsets)?);
        let num_threads = num_threads(threads)?;
        watched(py, None, |monitor| {
            let mut tick = || monitor(&Progress::default());
            (self.encoders).decode_batch(
                &ids,
                &offsets,
                skip_special_tokens,
                num_threads,
                &mut tick,
            )
        })
    }

    /// A callable for code that expects `tokenizer(text)["input_ids"]`.
    fn as_hf<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // Created in Python, because it returns Python dicts and lists.
        let module = slf.py().import("packtok.tokenizer.callable")?;
        module.call_method1("CallableTokenizer", (slf,))
    }

    /// The bytes of its tokenizer.json.
    fn to_json<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.json().as_bytes())
    }

    fn __reduce__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let arguments = (
            this.to_json(py),
            this.inner.name(),
            this.eos_token(),
            this.named.remarks.clone(),
            this.bos_token(),
            this.special_tokens_in_text(),
        );
        Ok((slf.get_type(), arguments).into_pyobject(py)?.into_any())
    }

    fn __repr__(&self) -> String {
        format!(
            "Tokenizer({:?}, vocab_size={})",
            self.inner.name(),
            self.inner.vocab_size()
        )
    }
}

fn options(add_special_tokens: bool, in_text: Option<&str>) -> PyResult<EncodeOptions> {
    Ok(EncodeOptions {
        add_special_tokens,
        special_tokens_in_text: match in_text {
            Some(in_text) => choice("special_tokens_in_text", in_text)?,
            None => SpecialTokensInText::OfFile,
        },
        ..EncodeOptions::default()
    })
}

fn num_threads(threads: Option<usize>) -> PyResult<usize> {
    match threads {
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        Some(1..=4096) => Ok(threads.unwrap_or(1)),
        Some(threads) => Err(PyValueError::new_err(format!(
            "threads is {threads}, expected 1 to 4096"
        ))),
    }
}
