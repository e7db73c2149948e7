//! `Tokenizer`: what ids mean, for Python.

use std::path::PathBuf;

use packtok_bpe::{BUILTIN_NAMES, EncodeOptions, Tokenizer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::tokenizer_error;

/// A loaded tokenizer; gives the ids that Hugging Face `tokenizers` gives.
///
/// Made by `Tokenizer.from_file` or `Tokenizer.builtin`. Immutable and safe to share.
#[pyclass(frozen, name = "Tokenizer", module = "packtok")]
pub(crate) struct PyTokenizer {
    pub(crate) inner: Tokenizer,
}

#[pymethods]
impl PyTokenizer {
    /// Loads a tokenizer.json file, shown to users as `name` (default: the path).
    #[staticmethod]
    #[pyo3(signature = (path, *, name=None))]
    fn from_file(py: Python<'_>, path: PathBuf, name: Option<String>) -> PyResult<Self> {
        py.detach(|| Tokenizer::from_file(&path, name.as_deref()))
            .map(|inner| Self { inner })
            .map_err(tokenizer_error)
    }

    /// Loads a tokenizer that needs neither file nor network; see `builtin_names`.
    #[staticmethod]
    fn builtin(py: Python<'_>, name: String) -> PyResult<Self> {
        py.detach(|| Tokenizer::builtin(&name))
            .map(|inner| Self { inner })
            .map_err(tokenizer_error)
    }

    /// Names that `builtin` accepts.
    #[staticmethod]
    fn builtin_names() -> Vec<&'static str> {
        BUILTIN_NAMES.to_vec()
    }

    /// The name it was loaded under.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// `sha256:` and the hash of the parsed tokenizer.json; layout and key order do not count.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }

    /// Highest id + 1, added tokens included.
    #[getter]
    fn vocab_size(&self) -> u64 {
        self.inner.vocab_size()
    }

    /// Name and version of the engine that serves it.
    #[getter]
    fn engine(&self) -> &'static str {
        self.inner.engine().name()
    }

    /// What users should know of its exactness, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes().to_vec()
    }

    /// Special tokens and their ids.
    #[getter]
    fn special_tokens(&self) -> Vec<(String, u32)> {
        let tokens = self.inner.special_tokens();
        tokens
            .map(|token| (token.content.clone(), token.id))
            .collect()
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
        py.detach(|| self.inner.token_to_id(token))
    }

    /// The name of an id in tokenizer.json, or None.
    fn id_to_token(&self, py: Python<'_>, id: u32) -> Option<String> {
        py.detach(|| self.inner.id_to_token(id))
    }

    /// The ids of `text`, the post-processor's special tokens included unless told otherwise.
    #[pyo3(signature = (text, *, add_special_tokens=true))]
    fn encode(&self, py: Python<'_>, text: &str, add_special_tokens: bool) -> PyResult<Vec<u32>> {
        let options = EncodeOptions {
            add_special_tokens,
            ..EncodeOptions::default()
        };
        py.detach(|| self.inner.encode(text, &options))
            .map_err(tokenizer_error)
    }

    /// The text of `ids`, special tokens included.
    fn decode(&self, py: Python<'_>, ids: Vec<u32>) -> PyResult<String> {
        py.detach(|| self.inner.decode(&ids))
            .map_err(tokenizer_error)
    }

    /// The bytes of its tokenizer.json.
    fn to_json<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.json().as_bytes())
    }

    fn __repr__(&self) -> String {
        format!(
            "Tokenizer({:?}, vocab_size={})",
            self.inner.name(),
            self.inner.vocab_size()
        )
    }
}
