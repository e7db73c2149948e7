//! The errors of encoding.

use crate::cause::Cause;

/// The reason why a text cannot be encoded or an encoder cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Truncation leaves no room for the special tokens.
    #[error(
        "max_length {max_length} is below the {num_special} special tokens that the tokenizer adds to every document; raise max_length or set add_special_tokens to false"
    )]
    TruncationTooShort {
        /// The requested limit.
        max_length: usize,
        /// Number of tokens that the post-processor adds.
        num_special: usize,
    },
    /// The fast engine was requested but does not support the file.
    #[error(
        "{name}: the fast engine does not cover this tokenizer, because {reason}; set engine to auto"
    )]
    NotFast {
        /// The tokenizer's name.
        name: String,
        /// The unsupported feature.
        reason: String,
    },
    /// Ids of two bytes were requested, but the vocabulary is larger.
    #[error(
        "{name}: vocabulary of {vocab_size} ids does not fit 2-byte ids, which hold 65536; use 4-byte ids"
    )]
    WideIds {
        /// The tokenizer's name.
        name: String,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A document contains the text of a special token, which is forbidden.
    #[error("the text contains the special token {token:?}")]
    SpecialTokenInText {
        /// The token's text.
        token: String,
    },
    /// A component of the tokenizer makes too much of a text.
    #[error("{name}: the tokenizer is not usable")]
    Excess {
        /// The tokenizer's name.
        name: String,
        /// The component and the limit.
        source: Cause,
    },
    /// A library of the engine has no memory.
    #[error("{name}: the engine of the tokenizer has no memory")]
    OutOfMemory {
        /// The tokenizer's name.
        name: String,
    },
    /// The engine rejected a text.
    #[error("the tokenizer cannot encode this text")]
    Engine {
        /// The error of the engine.
        source: Cause,
    },
}
