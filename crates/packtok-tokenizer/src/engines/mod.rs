//! What computes the ids of texts.

pub(crate) mod byte_bpe;
mod byte_pairs;
pub(crate) mod choose;
mod double_array;
pub(crate) mod fallback;
mod huge_table;
pub(crate) mod kind;
mod lane;
pub(crate) mod reference;
pub(crate) mod sentencepiece;
mod word_cache;
mod word_key;
mod wordwise;
