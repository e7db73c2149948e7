//! SentencePiece models, with the ids of the `sentencepiece` library 0.2.3.
//!
//! ```text
//! .model  ──load──▶  tokenizer.json  ──model──▶  pieces, rules  ──▶  slow_path, step by step as in the library
//!                                                              └─▶  fast_path, for most files
//! ```
//!
//! - `model` holds the content of the file: pieces (`piece`), rules for characters (`rules`), and
//!   the rules for decoding ids.
//! - `slow_path` follows the library step by step, with hash tables.
//! - `fast_path` returns the same ids. `normalizer` copies unchanged characters in runs.
//!   `merge_rules` turns BPE models into rules for `byte_bpe`; for those that rules do not cover,
//!   `bpe` encodes parts that no piece crosses and caches them. `unigram` keeps only the sums that
//!   can still matter.

mod bpe;
mod fast_path;
mod merge_rules;
mod model;
mod normalization_rules;
mod normalizer;
mod piece;
mod slow_path;
mod spaces;
#[cfg(test)]
mod tests;
mod unigram;

pub(crate) use self::fast_path::{FastPath, Scratch};
pub(crate) use self::slow_path::SlowPath;
