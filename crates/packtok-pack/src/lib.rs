//! From corpora to pbin files: tokenizing, packing, verifying.
//!
//! Data flows one way: `packtok-corpus` reads lines and extracts the text of each, the engine
//! encodes it, and [`pack`] writes the file. [`verify`] follows the same path to compare and
//! [`count`] to count; [`texts`] processes texts in memory. `packtok-dataset` makes batches of the
//! files. This crate does not depend on YAML or Python, reads no environment variables except
//! those for the user's cache, and has no defaults: callers specify everything.
#![forbid(unsafe_code)]

pub mod corpus_texts;
pub mod count;
mod error;
mod inspect;
pub mod merge;
pub mod pack;
pub mod raw_index;
pub mod scan;
pub mod shard;
pub mod texts;
pub mod verify;

pub use error::{Error, KEPT, Result};
pub use inspect::{document_lengths, document_lengths_histogram};
pub use packtok_pbin::{self as pbin, chain};
