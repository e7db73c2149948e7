//! Files of any model whose words white space parts.

mod added_texts;
mod coverage;
mod engine;
mod model;
mod scratch;
mod unigram;
mod wordpiece;

pub(super) use self::engine::{EncodeWord, Wordwise};
