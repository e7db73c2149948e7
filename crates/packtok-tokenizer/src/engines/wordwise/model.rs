//! The models that this engine implements for words between white space.

use serde_json::Value;

use super::scratch::Scratch;
use super::suffixed_bpe::SuffixedBpe;
use super::unigram::UnigramOfSeparateWords;
use super::wordpiece::WordPiece;
use crate::load::AddedToken;

/// A model that encodes words.
pub(super) enum Model {
    WordPiece(WordPiece),
    Unigram(Box<UnigramOfSeparateWords>),
    SuffixedBpe(Box<SuffixedBpe>),
}

impl Model {
    /// The model of a tokenizer.json; `None` if the engine does not cover the configuration.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        let word_piece = WordPiece::read(json, added_tokens).map(Self::WordPiece);
        let unigram = || UnigramOfSeparateWords::read(json, added_tokens);
        let suffixed_bpe = || SuffixedBpe::read(json, added_tokens);
        word_piece
            .or_else(|| Some(Self::Unigram(Box::new(unigram()?))))
            .or_else(|| Some(Self::SuffixedBpe(Box::new(suffixed_bpe()?))))
    }

    /// Appends the ids of a word. Returns `false`, with nothing appended, if the word falls back
    /// to the reference engine.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        match self {
            Self::WordPiece(model) => model.append(word, scratch, ids),
            Self::Unigram(model) => model.append(word, scratch, ids),
            Self::SuffixedBpe(model) => model.append(word, scratch, ids),
        }
    }
}
