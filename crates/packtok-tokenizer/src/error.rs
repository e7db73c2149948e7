//! Every way in which loading a tokenizer or encoding a document can fail.

use std::path::PathBuf;

/// A cause that a tokenizer library gave.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Errors of loading a tokenizer and of encoding with it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{}: cannot read the tokenizer", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The file is not text.
    #[error("{name}: not a tokenizer.json, tekken.json or SentencePiece .model")]
    NotUtf8 {
        /// The tokenizer's name.
        name: String,
        /// Where it is not.
        source: std::str::Utf8Error,
    },
    /// The file is not JSON.
    #[error("{name}: not a tokenizer.json: the file is not valid JSON")]
    NotJson {
        /// The tokenizer's name.
        name: String,
        /// Where the JSON breaks.
        source: serde_json::Error,
    },
    /// The JSON lacks something that every tokenizer.json has.
    #[error("{name}: not a tokenizer.json: {key} is {found}, expected {expected}")]
    Shape {
        /// The tokenizer's name.
        name: String,
        /// Path of the key inside the JSON.
        key: &'static str,
        /// What stands there.
        found: &'static str,
        /// What should.
        expected: &'static str,
    },
    /// A tekken.json is not as it must be.
    #[error("{name}: not a tekken.json: {reason}")]
    Tekken {
        /// The tokenizer's name.
        name: String,
        /// What of it, and what was expected.
        reason: String,
    },
    /// A `.model` file is not as it must be.
    #[error("{name}: not a SentencePiece model: {reason}")]
    SentencePiece {
        /// The tokenizer's name.
        name: String,
        /// What of it, and what was expected.
        reason: String,
    },
    /// A list of ranks is not as it must be, or is not enough.
    #[error(
        "{name}: not a tiktoken rank file that packtok supports: {reason}; use the tokenizer.json of the same model"
    )]
    Ranks {
        /// The tokenizer's name.
        name: String,
        /// What of it, and what was expected.
        reason: String,
    },
    /// The file asks for something that would make ids depend on chance.
    #[error(
        "{name}: model.dropout is {dropout}, so ids would differ from run to run; set it to null in tokenizer.json"
    )]
    Dropout {
        /// The tokenizer's name.
        name: String,
        /// The probability in the file.
        dropout: f64,
    },
    /// No engine could load the file.
    #[error("{name}: the tokenizer cannot be loaded")]
    Unloadable {
        /// The tokenizer's name.
        name: String,
        /// The engine's answer.
        source: Cause,
    },
    /// An added token has another id in the reference engine than the one read from the file.
    #[error(
        "{name}: added token {token:?} has id {expected} in packtok, but {} in the tokenizers library; please report this file",
        found.map_or_else(|| "none".to_owned(), |id| id.to_string())
    )]
    Disagreement {
        /// The tokenizer's name.
        name: String,
        /// The added token.
        token: String,
        /// As read from the file.
        expected: u32,
        /// As given by the engine.
        found: Option<u32>,
    },
    /// Two added tokens are found by the same text.
    #[error(
        "{name}: the added tokens {first:?} and {second:?} are equal after normalization, so ids would be nondeterministic; remove one of them from tokenizer.json"
    )]
    SameAddedTokens {
        /// The tokenizer's name.
        name: String,
        /// The one that comes first in the file.
        first: String,
        /// The other.
        second: String,
    },
    /// An added token is found by the empty text, and others are looked for with it.
    #[error(
        "{name}: the added token {token:?} is empty after normalization, so searching for added tokens may never end; remove it from tokenizer.json, or set its \"normalized\" to false"
    )]
    EmptyAddedToken {
        /// The tokenizer's name.
        name: String,
        /// The token.
        token: String,
    },
    /// A built-in name that does not exist.
    #[error("{name:?} is not a built-in tokenizer, expected one of {}", known.join(", "))]
    UnknownBuiltin {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: &'static [&'static str],
    },
    /// Truncation leaves no room for the special tokens that are added.
    #[error(
        "max_length {max_length} is below the {num_special} special tokens that the tokenizer adds to every document; raise max_length or set add_special_tokens to false"
    )]
    TruncationTooShort {
        /// The limit asked for.
        max_length: usize,
        /// Tokens that the post-processor adds.
        num_special: usize,
    },
    /// The fast engine was asked for and does not cover the file.
    #[error(
        "{name}: the fast engine does not cover this tokenizer, because {reason}; set engine to auto"
    )]
    NotFast {
        /// The tokenizer's name.
        name: String,
        /// What it does not cover.
        reason: String,
    },
    /// Ids of two bytes were asked for, and the tokenizer has greater ones.
    #[error(
        "{name}: vocabulary of {vocab_size} ids does not fit 2-byte ids, which hold 65536; use 4-byte ids"
    )]
    WideIds {
        /// The tokenizer's name.
        name: String,
        /// One more than its greatest id.
        vocab_size: u64,
    },
    /// Special-token text in a document, where that was forbidden.
    #[error("the text contains the special token {token:?}")]
    SpecialTokenInText {
        /// The token's text.
        token: String,
    },
    /// The engine refused a text.
    #[error("the tokenizer cannot encode this text")]
    Encode {
        /// The engine's answer.
        source: Cause,
    },
    /// The engine refused ids.
    #[error("the tokenizer cannot decode these ids")]
    Decode {
        /// The engine's answer.
        source: Cause,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
