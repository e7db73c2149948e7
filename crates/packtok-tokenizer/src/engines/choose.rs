//! The engines of packtok's own, as one: which of them covers a file, and its scratch.

use serde_json::Value;

use super::byte_bpe::{self, Fast};
use super::sentencepiece::{self, Quick};
use super::word_cache::Remembered;
use super::wordwise::{EncodeWord, Wordwise};
use crate::error::Cause;
use crate::load::{AddedToken, is_sentencepiece, model_type};

/// An engine of packtok's own, shared by all threads.
pub(crate) enum FastEngine {
    /// All by itself.
    Fast(Box<Fast>),
    /// Words that it has met, and other ones from the engine that knows all of the file or from a model of its own.
    Wordwise(Wordwise),
    /// SentencePiece's models.
    SentencePiece(Box<Quick>),
}

/// What one thread needs.
pub(crate) enum FastScratch {
    Fast(Box<byte_bpe::Scratch>),
    Wordwise(Box<Remembered>),
    SentencePiece(Box<sentencepiece::Scratch>),
}

impl FastEngine {
    /// The engine for a tokenizer.json; [`FastEngine::check`] is still to be asked.
    ///
    /// # Errors
    /// Why none covers it.
    pub(crate) fn load(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        if is_sentencepiece(json) {
            return Ok(Self::SentencePiece(Box::new(Quick::load(json)?)));
        }
        let not_fast = match Fast::load(json, added_tokens) {
            Ok(fast) => return Ok(Self::Fast(Box::new(fast))),
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
    pub(crate) fn words_for_others(&self) -> Option<&'static str> {
        match self {
            Self::Wordwise(wordwise) if wordwise.has_model() => {
                Some("words that may hold an added token")
            }
            Self::Wordwise(_) => Some("words that it has not met"),
            Self::Fast(_) | Self::SentencePiece(_) => None,
        }
    }

    /// Whether the time that a text takes grows with its length, whatever it is made of: no foreign code splits it.
    pub(crate) fn is_linear(&self) -> bool {
        match self {
            Self::Wordwise(wordwise) => wordwise.has_model(),
            Self::Fast(_) | Self::SentencePiece(_) => true,
        }
    }

    /// Tries what could not be read from the file.
    ///
    /// # Errors
    /// Why it does not cover the file after all.
    pub(crate) fn check(&self, encode_word: &mut EncodeWord<'_>) -> Result<(), String> {
        match self {
            Self::Fast(_) | Self::SentencePiece(_) => Ok(()),
            Self::Wordwise(wordwise) => wordwise.check(encode_word),
        }
    }

    /// With a cache of at most so many bytes.
    pub(crate) fn scratch(&self, cache_bytes: Option<usize>) -> FastScratch {
        match self {
            Self::Fast(_) => FastScratch::Fast(byte_bpe::Scratch::new(cache_bytes)),
            Self::Wordwise(_) => FastScratch::Wordwise(Box::new(Remembered::new(cache_bytes))),
            Self::SentencePiece(_) => {
                FastScratch::SentencePiece(sentencepiece::Scratch::new(cache_bytes))
            }
        }
    }

    /// Has a first text be encoded as fast as a later one.
    pub(crate) fn warm_up(&self, scratch: &mut FastScratch) {
        match (self, scratch) {
            (Self::Fast(fast), FastScratch::Fast(scratch)) => fast.warm_up(scratch),
            (_, FastScratch::Wordwise(remembered)) => remembered.take_memory(),
            (_, FastScratch::SentencePiece(scratch)) => scratch.take_memory(),
            // FastScratch of another engine, which nobody hands in.
            _ => {}
        }
    }

    /// Texts that hold any of these are not for it.
    pub(crate) fn foreign(&self) -> &[String] {
        match self {
            Self::Fast(fast) => fast.foreign(),
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
            (Self::Fast(fast), FastScratch::Fast(scratch)) => {
                Ok(fast.encode_into(text, special_tokens_are_text, scratch, ids))
            }
            (Self::Wordwise(wordwise), FastScratch::Wordwise(scratch)) => {
                wordwise.encode_into(text, scratch, ids, encode_word)
            }
            (Self::SentencePiece(quick), FastScratch::SentencePiece(scratch)) => {
                quick.encode_into(text, scratch, ids)
            }
            // FastScratch of another engine, which nobody hands in.
            _ => Ok(false),
        }
    }
}
