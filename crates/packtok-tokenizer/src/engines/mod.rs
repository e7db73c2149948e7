//! The engines, which compute the ids of texts.
//!
//! - `byte_bpe`, `wordwise` and `sentencepiece` are the fast engines; `choose` selects one for a
//!   file.
//! - `reference` covers every tokenizer.json, and the slow path of `sentencepiece` every
//!   SentencePiece model. `fallback` selects one of the two for a file.
//! - `simd` (vector instructions), `word_cache`, `word_key`, `huge_table`, `double_array` and
//!   `byte_pairs` are shared by the fast engines.

pub(crate) mod byte_bpe;
mod byte_pairs;
pub(crate) mod choose;
mod double_array;
pub(crate) mod excess;
pub(crate) mod fallback;
mod huge_table;
pub(crate) mod kind;
pub(crate) mod reference;
pub(crate) mod sentencepiece;
mod simd;
mod word_cache;
mod word_key;
mod wordwise;
