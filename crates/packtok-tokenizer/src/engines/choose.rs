//! The engines of packtok's own, as one: which of them covers a file, and its scratch.

use serde_json::Value;

use super::byte_bpe::{self, ByteBpe};
use super::sentencepiece::{self, FastPath};
use super::word_cache::CachedEncoder;
use super::wordwise::{EncodeWord, Wordwise};
use crate::error::Cause;
use crate::load::{AddedToken, is_sentencepiece, model_type};

/// An engine of packtok's own, shared by all threads.
pub(crate) enum FastEngine {
    /// All by itself.
    ByteBpe(Box<ByteBpe>),
    /// Words that it has met, and other ones from the engine that knows all of the file or from a model of its own.
    Wordwise(Wordwise),
    /// SentencePiece's models.
    SentencePiece(Box<FastPath>),
}

/// What one thread needs.
pub(crate) enum FastScratch {
    ByteBpe(Box<byte_bpe::Scratch>),
    Wordwise(Box<CachedEncoder>),
    SentencePiece(Box<sentencepiece::Scratch>),
}

impl FastEngine {
    /// The engine for a tokenizer.json; [`FastEngine::check`] is still to be asked.
    ///
    /// # Errors
    /// Why none covers it.
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

    /// Whether it needs the engine that knows all of the file for most texts.
    pub(crate) fn needs_fallback(&self) -> bool {
        matches!(self, Self::Wordwise(_))
    }

    /// Where it takes texts word by word: which words are for the engine that knows all of the file, a phrase.
    pub(crate) fn fallback_words(&self) -> Option<&'static str> {
        match self {
            Self::Wordwise(wordwise) if wordwise.has_model() => {
                Some("words that may hold an added token")
            }
            Self::Wordwise(_) => Some("words that it has not met"),
            Self::ByteBpe(_) | Self::SentencePiece(_) => None,
        }
    }

    /// Whether the time that a text takes grows with its length, whatever it is made of: no fallback_tokens code splits it.
    pub(crate) fn is_linear(&self) -> bool {
        match self {
            Self::Wordwise(wordwise) => wordwise.has_model(),
            Self::ByteBpe(_) | Self::SentencePiece(_) => true,
        }
    }

    /// Tries what could not be read from the file.
    ///
    /// # Errors
    /// Why it does not cover the file after all.
    pub(crate) fn check(&self, encode_word: &mut EncodeWord<'_>) -> Result<(), String> {
        match self {
            Self::ByteBpe(_) | Self::SentencePiece(_) => Ok(()),
            Self::Wordwise(wordwise) => wordwise.check(encode_word),
        }
    }

    /// With a cache of at most so many bytes.
    pub(crate) fn scratch(&self, cache_bytes: Option<usize>) -> FastScratch {
        match self {
            Self::ByteBpe(_) => FastScratch::ByteBpe(byte_bpe::Scratch::new(cache_bytes)),
            Self::Wordwise(_) => FastScratch::Wordwise(Box::new(CachedEncoder::new(cache_bytes))),
            Self::SentencePiece(_) => {
                FastScratch::SentencePiece(sentencepiece::Scratch::new(cache_bytes))
            }
        }
    }

    /// Has a first text be encoded as fast as a later one.
    pub(crate) fn warm_up(&self, scratch: &mut FastScratch) {
        match (self, scratch) {
            (Self::ByteBpe(fast), FastScratch::ByteBpe(scratch)) => fast.warm_up(scratch),
            (_, FastScratch::Wordwise(encoder)) => encoder.preallocate(),
            (_, FastScratch::SentencePiece(scratch)) => scratch.preallocate(),
            // FastScratch of another engine, which nobody hands in.
            _ => {}
        }
    }

    /// Texts that hold any of these are not for it.
    pub(crate) fn fallback_tokens(&self) -> &[String] {
        match self {
            Self::ByteBpe(fast) => fast.fallback_tokens(),
            Self::Wordwise(_) | Self::SentencePiece(_) => &[],
        }
    }

    /// Appends the ids of a text; false, and nothing appended, if it is one for the engine that knows all of the
    /// file, which also encodes single words.
    ///
    /// # Errors
    /// Those of `encode_word`.
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
            (Self::Wordwise(wordwise), FastScratch::Wordwise(scratch)) => {
                wordwise.encode_into(text, scratch, ids, encode_word)
            }
            (Self::SentencePiece(fast_path), FastScratch::SentencePiece(scratch)) => {
                fast_path.encode_into(text, scratch, ids)
            }
            // FastScratch of another engine, which nobody hands in.
            _ => Ok(false),
        }
    }
}
