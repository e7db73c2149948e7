//! The engine for files of any model in which white space separates the words.

mod added_texts;
mod char_bpe;
mod coverage;
mod engine;
mod find;
mod inert_chars;
mod marked_words;
mod model;
mod scratch;
mod separate;
mod suffixed_bpe;
mod unigram;
mod word_normalizer;
mod wordpiece;

pub(super) use self::engine::{EncodeWord, Wordwise};
pub(super) use self::scratch::Caches;
