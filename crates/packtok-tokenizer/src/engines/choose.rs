//! Selects the fast engine that covers a file.

use serde_json::Value;

use super::byte_bpe::{self, ByteBpe};
use super::sentencepiece::{self, FastPath};
use super::wordwise::{self, EncodeWord, Wordwise};
use crate::cause::Cause;
use crate::load::{AddedToken, is_sentencepiece, model_type};

/// The fast engine of a file. All threads share it.
pub(crate) enum FastEngine {
    /// Encodes everything except texts with certain added tokens.
    ByteBpe(Box<ByteBpe>),
    /// Caches the ids of words. A model of its own or the fallback engine encodes new words.
    Wordwise(Wordwise),
    /// SentencePiece's models.
    SentencePiece(Box<FastPath>),
}

/// Scratch memory of one thread for its engine.
pub(crate) enum FastScratch {
    ByteBpe(Box<byte_bpe::Scratch>),
    Wordwise(Box<wordwise::Caches>),
    SentencePiece(Box<sentencepiece::Scratch>),
}

impl FastEngine {
    /// The engine for a tokenizer.json. [`FastEngine::check`] must be called before the engine is
    /// used.
    ///
    /// # Errors
    /// The reason why no fast engine covers the file.
    pub(crate) fn load(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        if is_sentencepiece(json) {
            return Ok(Self::SentencePiece(Box::new(FastPath::load(json)?)));
        }
        let not_fast = match ByteBpe::load(json, added_tokens) {
            Ok(fast) => return Ok(Self::ByteBpe(Box::new(fast))),
            Err(reason) => reason,
        };
        let wordwise = Wordwise::read(json, added_tokens).map(Self::Wordwise);
        wordwise.map_err(|reason| match model_type(&json["model"]) {
            "BPE" => not_fast,
            _ => reason,
        })
    }

    /// Whether most texts also need the fallback engine.
    pub(crate) fn needs_fallback(&self) -> bool {
        matches!(self, Self::Wordwise(_))
    }

    /// The words that fall back, as a phrase; `None` if the engine does not encode word by word.
    pub(crate) fn fallback_words(&self) -> Option<&'static str> {
        match self {
            Self::Wordwise(wordwise) if wordwise.has_model() => {
                Some("words that may contain an added token")
            }
            Self::Wordwise(_) => Some("words not seen before"),
            Self::ByteBpe(_) | Self::SentencePiece(_) => None,
        }
    }

    /// Whether encoding takes time linear in the length of any text. False if a third-party
    /// regular expression splits the text.
    pub(crate) fn is_linear(&self) -> bool {
        match self {
            Self::ByteBpe(fast) => fast.is_linear(),
            Self::Wordwise(wordwise) => wordwise.has_model(),
            Self::SentencePiece(_) => true,
        }
    }

    /// Checks, by encoding test words, properties that the file does not state.
    ///
    /// # Errors
    /// The reason why the engine does not cover the file.
    pub(crate) fn check(&self, encode_word: &mut EncodeWord<'_>) -> Result<(), String> {
        match self {
            Self::ByteBpe(_) | Self::SentencePiece(_) => Ok(()),
            Self::Wordwise(wordwise) => wordwise.check(encode_word),
        }
    }

    /// Scratch memory with a cache of at most this many bytes.
    pub(crate) fn scratch(&self, cache_bytes: Option<usize>) -> FastScratch {
        match self {
            Self::ByteBpe(_) => FastScratch::ByteBpe(byte_bpe::Scratch::new(cache_bytes)),
            Self::Wordwise(_) => {
                FastScratch::Wordwise(Box::new(wordwise::Caches::new(cache_bytes)))
            }
            Self::SentencePiece(_) => {
                FastScratch::SentencePiece(sentencepiece::Scratch::new(cache_bytes))
            }
        }
    }

    /// Texts that contain any of these fall back.
    pub(crate) fn fallback_tokens(&self) -> &[String] {
        match self {
            Self::ByteBpe(fast) => fast.fallback_tokens(),
            Self::Wordwise(_) | Self::SentencePiece(_) => &[],
        }
    }

    /// Texts that contain any of these bytes fall back.
    pub(crate) fn fallback_bytes(&self) -> &[u8] {
        match self {
            Self::ByteBpe(fast) => fast.fallback_bytes(),
            Self::Wordwise(_) | Self::SentencePiece(_) => &[],
        }
    }

    /// Appends the ids of a text. Returns `false`, with nothing appended, if the text must fall
    /// back to the engine of `encode_word`. `encode_word` also encodes single words.
    ///
    /// # Errors
    /// The errors of `encode_word`.
    #[inline]
    pub(crate) fn encode_into(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        scratch: &mut FastScratch,
        ids: &mut Vec<u32>,
        encode_word: &mut EncodeWord<'_>,
    ) -> Result<bool, Cause> {
        match (self, scratch) {
            (Self::ByteBpe(fast), FastScratch::ByteBpe(scratch)) => {
                Ok(fast.encode_into(text, special_tokens_are_text, scratch, ids))
            }
            (Self::Wordwise(wordwise), FastScratch::Wordwise(caches)) => {
                wordwise.encode_into(text, caches, ids, encode_word)
            }
            (Self::SentencePiece(fast_path), FastScratch::SentencePiece(scratch)) => {
                fast_path.encode_into(text, scratch, ids)
            }
            // The scratch of another engine; callers never pass it.
            _ => Ok(false),
        }
    }
}
