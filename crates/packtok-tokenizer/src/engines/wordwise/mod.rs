//! The engine for files of any model in which white space separates the words.

mod added_texts;
mod coverage;
mod engine;
mod model;
mod scratch;
mod unigram;
mod wordpiece;

pub(super) use self::engine::{EncodeWord, Wordwise};
