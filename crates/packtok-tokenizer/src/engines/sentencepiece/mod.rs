//! SentencePiece's models: the ids of the `sentencepiece` library 0.2.3.
//!
//! ```text
//! .model  ──file──▶  tokenizer.json  ──model──▶  pieces, rules  ──▶  slow_path, as the library does it
//!                                                               └─▶  fast_path, for most files
//! ```
//!
//! - [`file`] turns a `.model` into a tokenizer.json of types that only packtok knows.
//! - [`model`] reads that, and knows what becomes of characters, of unknown ones, and of ids.
//! - [`slow_path`] does all that the library does, in its order, and in no hurry.
//! - [`fast_path`] gives the same ids: [`normalizer`] skips over what stays as it is, parts are encoder where no piece
//!   reaches across, and sums are compared no further back than they can matter.

mod bpe;
mod fast_path;
mod model;
mod normalizer;
mod piece;
mod rules;
mod slow_path;
mod spaces;
#[cfg(test)]
mod tests;
mod unigram;

pub(crate) use self::fast_path::{FastPath, Scratch};
pub(crate) use self::slow_path::SlowPath;
