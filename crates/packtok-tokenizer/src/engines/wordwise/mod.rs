//! The engine for files of any model whose words are separated by white space.

mod added_texts;
mod coverage;
mod engine;
mod model;
mod scratch;
mod unigram;
mod wordpiece;

pub(super) use self::engine::{EncodeWord, Wordwise};
