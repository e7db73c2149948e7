//! The errors of loading a tokenizer.

use std::path::PathBuf;

use crate::cause::Cause;

/// The reason why a tokenizer cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum LoadError {
    #[error("{}: cannot read the tokenizer", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{name}: not a tokenizer.json, tekken.json or SentencePiece .model")]
    NotUtf8 {
        name: String,
        /// Position of the first invalid byte.
        source: std::str::Utf8Error,
    },
    #[error("{name}: not a tokenizer.json: the file is not valid JSON")]
    NotJson {
        name: String,
        /// Position and kind of the syntax error.
        source: serde_json::Error,
    },
    /// The JSON lacks something that every tokenizer.json has, or has it in the wrong form.
    #[error("{name}: not a tokenizer.json: {key} is {found}, expected {expected}")]
    Shape {
        name: String,
        /// Path of the key in the JSON.
        key: &'static str,
        found: &'static str,
        expected: &'static str,
    },
    #[error("{name}: not a tekken.json: {reason}")]
    Tekken {
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// A `.model` file is invalid.
    #[error("{name}: not a SentencePiece model: {reason}")]
    SentencePiece {
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// A token that takes white space with it is to be added to a SentencePiece model.
    #[error(
        "{name}: {token:?} is declared with lstrip or rstrip, which a SentencePiece model cannot have; use the tokenizer.json of the same model"
    )]
    StripsInModel { name: String, token: String },
    /// A list of ranks is invalid or incomplete.
    #[error(
        "{name}: not a tiktoken rank file that packtok supports: {reason}; use the tokenizer.json of the same model"
    )]
    Ranks {
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// The model has dropout, so ids would be random.
    #[error(
        "{name}: model.dropout is {dropout}, so ids would differ from run to run; set it to null in tokenizer.json"
    )]
    Dropout { name: String, dropout: f64 },
    #[error("{name}: the tokenizer cannot be loaded")]
    Unloadable { name: String, source: Cause },
    /// The reference engine assigns an added token a different id than packtok.
    #[error(
        "{name}: added token {token:?} has id {expected} in packtok, but {} in the tokenizers library; please report this file",
        found.map_or_else(|| "none".to_owned(), |id| id.to_string())
    )]
    Disagreement {
        name: String,
        token: String,
        /// The id according to packtok.
        expected: u32,
        /// The id according to the engine.
        found: Option<u32>,
    },
    #[error(
        "{name}: the added tokens {first:?} and {second:?} are equal after normalization, so ids would be nondeterministic; remove one of them from tokenizer.json"
    )]
    SameAddedTokens {
        name: String,
        first: String,
        second: String,
    },
    /// An added token matches the empty text, and there are other added tokens.
    #[error(
        "{name}: the added token {token:?} is empty after normalization, so searching for added tokens may never end; remove it from tokenizer.json, or set its \"normalized\" to false"
    )]
    EmptyAddedToken { name: String, token: String },
    #[error("{name:?} is not a built-in tokenizer, expected one of {}", known.join(", "))]
    UnknownBuiltin {
        name: String,
        known: &'static [&'static str],
    },
}
