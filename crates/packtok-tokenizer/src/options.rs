//! Options for encoding documents.

use serde::Deserialize;

/// The treatment of a special token's text inside a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpecialTokensInText {
    /// As in the library that the file is for ([`crate::Tokenizer::special_tokens_in_text`]).
    #[default]
    #[serde(skip)]
    OfFile,
    /// The text is encoded as the special token, as in Hugging Face's `tokenizers`.
    Parse,
    /// The text is encoded like any other text.
    Text,
    /// The document is refused.
    Fail,
}

/// The engine that encodes. All engines return the same ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fast engine if it covers the file, else the reference engine.
    #[default]
    Auto,
    /// The fast engine, or an error.
    Fast,
    /// The reference engine, which covers every file.
    Reference,
}

/// The end of a document at which truncation removes ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TruncationSide {
    /// The start: the last ids are kept.
    Left,
    /// The end: the first ids are kept.
    #[default]
    Right,
}

/// Options for encoding documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether the post-processor's special tokens are added to every document.
    pub add_special_tokens: bool,
    /// The treatment of special tokens in the text.
    pub special_tokens_in_text: SpecialTokensInText,
    /// Maximum number of tokens of a document. The tokens that the post-processor adds count, and
    /// are never removed.
    pub truncate_to: Option<usize>,
    /// Where the rest is cut off.
    pub truncation_side: TruncationSide,
    /// The engine that encodes.
    pub engine: EngineChoice,
    /// Maximum size of the fast engine's cache in bytes, for each encoder. The default is 48 MiB.
    pub cache_bytes: Option<usize>,
}
