//! The errors of loading a tokenizer.

use std::path::PathBuf;

use crate::cause::Cause;

/// The reason why a tokenizer cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: cannot read the tokenizer", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is not UTF-8.
    #[error("{name}: not a tokenizer.json, tekken.json or SentencePiece .model")]
    NotUtf8 {
        /// The tokenizer's name.
        name: String,
        /// Position of the first invalid byte.
        source: std::str::Utf8Error,
    },
    /// The file is not JSON.
    #[error("{name}: not a tokenizer.json: the file is not valid JSON")]
    NotJson {
        /// The tokenizer's name.
        name: String,
        /// Position and kind of the syntax error.
        source: serde_json::Error,
    },
    /// The JSON lacks something that every tokenizer.json has, or has it in the wrong form.
    #[error("{name}: not a tokenizer.json: {key} is {found}, expected {expected}")]
    Shape {
        /// The tokenizer's name.
        name: String,
        /// Path of the key in the JSON.
        key: &'static str,
        /// The value found.
        found: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// A tekken.json is invalid.
    #[error("{name}: not a tekken.json: {reason}")]
    Tekken {
        /// The tokenizer's name.
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// A `.model` file is invalid.
    #[error("{name}: not a SentencePiece model: {reason}")]
    SentencePiece {
        /// The tokenizer's name.
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// A token that takes white space with it is to be added to a SentencePiece model.
    #[error(
        "{name}: {token:?} is declared with lstrip or rstrip, which a SentencePiece model cannot have; use the tokenizer.json of the same model"
    )]
    StripsInModel {
        /// The tokenizer's name.
        name: String,
        /// The token.
        token: String,
    },
    /// A list of ranks is invalid or incomplete.
    #[error(
        "{name}: not a tiktoken rank file that packtok supports: {reason}; use the tokenizer.json of the same model"
    )]
    Ranks {
        /// The tokenizer's name.
        name: String,
        /// The fault, and the expected content.
        reason: String,
    },
    /// The model has dropout, so ids would be random.
    #[error(
        "{name}: model.dropout is {dropout}, so ids would differ from run to run; set it to null in tokenizer.json"
    )]
    Dropout {
        /// The tokenizer's name.
        name: String,
        /// The probability in the file.
        dropout: f64,
    },
    /// The reference engine cannot load the file.
    #[error("{name}: the tokenizer cannot be loaded")]
    Unloadable {
        /// The tokenizer's name.
        name: String,
        /// The error of the engine.
        source: Cause,
    },
    /// The reference engine assigns an added token a different id than packtok.
    #[error(
        "{name}: added token {token:?} has id {expected} in packtok, but {} in the tokenizers library; please report this file",
        found.map_or_else(|| "none".to_owned(), |id| id.to_string())
    )]
    Disagreement {
        /// The tokenizer's name.
        name: String,
        /// The added token.
        token: String,
        /// The id according to packtok.
        expected: u32,
        /// The id according to the engine.
        found: Option<u32>,
    },
    /// Two added tokens match the same text.
    #[error(
        "{name}: the added tokens {first:?} and {second:?} are equal after normalization, so ids would be nondeterministic; remove one of them from tokenizer.json"
    )]
    SameAddedTokens {
        /// The tokenizer's name.
        name: String,
        /// The token that comes first in the file.
        first: String,
        /// The token that comes later in the file.
        second: String,
    },
    /// An added token matches the empty text, and there are other added tokens.
    #[error(
        "{name}: the added token {token:?} is empty after normalization, so searching for added tokens may never end; remove it from tokenizer.json, or set its \"normalized\" to false"
    )]
    EmptyAddedToken {
        /// The tokenizer's name.
        name: String,
        /// The token.
        token: String,
    },
    /// The built-in name does not exist.
    #[error("{name:?} is not a built-in tokenizer, expected one of {}", known.join(", "))]
    UnknownBuiltin {
        /// The requested name.
        name: String,
        /// The existing names.
        known: &'static [&'static str],
    },
}
