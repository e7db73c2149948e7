//! The name of the engine that serves a tokenizer.

/// The engine that serves a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// packtok's engines: the fastest, for the tokenizers of current models.
    Fast,
    /// `tokenizers` 0.23: slower, for every file.
    Reference,
    /// The SentencePiece library's algorithms, step by step.
    SentencePiece,
}

impl EngineKind {
    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "packtok",
            Self::Reference => "tokenizers 0.23.2",
            Self::SentencePiece => "packtok's reference SentencePiece",
        }
    }
}
