//! The errors of encoding.

use crate::cause::Cause;

/// The reason why a text cannot be encoded or an encoder cannot be created.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum EncodeError {
    /// Truncation leaves no room for the special tokens.
    #[error(
        "max_length {max_length} is below the {num_special} special tokens that the tokenizer adds to every document; raise max_length or set add_special_tokens to false"
    )]
    TruncationTooShort {
        max_length: usize,
        /// Number of tokens that the post-processor adds.
        num_special: usize,
    },
    /// The fast engine was requested but does not support the file.
    #[error(
        "{name}: the fast engine does not cover this tokenizer, because {reason}; set engine to auto"
    )]
    NotFast { name: String, reason: String },
    /// Ids of two bytes were requested, but the vocabulary is larger.
    #[error(
        "{name}: vocabulary of {vocab_size} ids does not fit 2-byte ids, which hold 65536; use 4-byte ids"
    )]
    WideIds {
        name: String,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A document contains the text of a special token, which is forbidden.
    #[error("the text contains the special token {token:?}")]
    SpecialTokenInText { token: String },
    /// A text given as code points has no UTF-8. In practice, the code point is a surrogate.
    #[error(
        "the text contains a lone surrogate, U+{code_point:04X} at index {position}, which UTF-8 cannot represent"
    )]
    NotACharacter { position: usize, code_point: u32 },
    /// A component of the tokenizer makes too much of a text.
    #[error("{name}: the tokenizer is not usable")]
    Excess {
        name: String,
        /// The component and the limit.
        source: Cause,
    },
    #[error("{name}: the engine of the tokenizer has no memory")]
    OutOfMemory { name: String },
    #[error("the tokenizer cannot encode this text")]
    Engine { source: Cause },
}
