//! Makes pbin files: corpora are read, texts found in their lines, tokenized and written in order.
//!
//! Data flows one way: [`corpus`] gives lines, [`field`] the text in a line, the engine its ids,
//! and [`pack`] the file; [`verify`] goes the same way to compare, [`count`] to count; [`texts`]
//! is for texts that are in memory. `packtok-sampling` makes batches of the files. Nothing here knows of YAML
//! or Python, nor of environment variables but those of the user's cache, and there are no defaults:
//! callers say everything.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod count;
mod error;
pub mod field;
mod inspect;
pub mod journal;
pub mod merge;
pub mod pack;
pub mod pipeline;
pub mod raw_index;
mod rejects;
pub mod scan;
pub mod shard;
mod suffix;
pub mod texts;
pub mod verify;

pub use error::{Error, Result};
pub use inspect::document_lengths_histogram;
pub use packtok_pbin::{self as pbin, chain};
