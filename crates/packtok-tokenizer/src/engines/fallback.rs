//! The engine that covers the complete file. Fast engines fall back to this engine and are
//! compared with it.

use std::sync::Arc;

use super::kind::EngineKind;
use super::reference::Reference;
use super::sentencepiece::SlowPath;
use crate::cause::Cause;

/// The `tokenizers` crate, or the slow path of SentencePiece.
#[derive(Clone)]
pub(crate) enum Fallback {
    Reference(Reference),
    SentencePiece(Arc<SlowPath>),
}

impl Fallback {
    /// Loads the text of a tokenizer.json.
    ///
    /// # Errors
    /// The engine refuses the file.
    pub(crate) fn load(json: &str, is_sentencepiece: bool) -> Result<Self, Cause> {
        if is_sentencepiece {
            let engine = SlowPath::load(&serde_json::from_str(json)?)?;
            return Ok(Self::SentencePiece(Arc::new(engine)));
        }
        Ok(Self::Reference(Reference::load(json)?))
    }

    pub(crate) fn kind(&self) -> EngineKind {
        match self {
            Self::Reference(_) => EngineKind::Reference,
            Self::SentencePiece(_) => EngineKind::SentencePiece,
        }
    }

    /// Appends the ids of `text`, without the special tokens that a post-processor adds.
    ///
    /// # Errors
    /// The engine refuses the text.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        match self {
            Self::Reference(engine) => engine.encode_into(text, special_tokens_are_text, ids),
            Self::SentencePiece(engine) => Ok(engine.encode_into(text, ids)?),
        }
    }
}
