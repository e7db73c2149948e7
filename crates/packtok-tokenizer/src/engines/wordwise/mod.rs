//! Files of any model whose words white space parts.

mod engine;
mod unigram;
mod wordpiece;

pub(super) use self::engine::{EncodeWord, Wordwise};
