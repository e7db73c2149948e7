//! Makes pbin files: corpora are read, texts found in their lines, tokenized and written in order; and
//! samples them: items, their order and batches.
//!
//! Data flows one way: [`corpus`] gives lines, [`field`] the text in a line, the engine its ids,
//! and [`pack`] the file; [`verify`] goes the same way to compare. [`sampling`] starts from files. Nothing here knows of YAML,
//! environment variables or Python, and there are no defaults: callers say everything.
#![forbid(unsafe_code)]

pub mod corpus;
mod error;
pub mod field;
mod inspect;
pub mod merge;
pub mod pack;
pub mod raw_index;
mod rejects;
pub mod sampling;
pub mod shard;
mod splitmix;
pub mod verify;

pub use error::{Error, Result, chain};
pub use inspect::document_lengths_histogram;
pub use packtok_pbin as pbin;
