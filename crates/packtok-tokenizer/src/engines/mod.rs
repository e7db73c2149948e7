//! What computes the ids of texts.

pub(crate) mod byte_bpe;
mod byte_pairs;
pub(crate) mod choose;
mod double_array;
mod huge_table;
mod lane;
pub(crate) mod reference;
pub(crate) mod sentencepiece;
mod word_cache;
mod word_key;
mod wordwise;
