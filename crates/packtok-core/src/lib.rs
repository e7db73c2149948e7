//! Makes pbin files: corpora are read, texts found in their lines, tokenized and written in order; and
//! samples them: items, their order and batches.
//!
//! Data flows one way: [`corpus`] gives lines, [`field`] the text in a line, the engine its ids,
//! and [`pack`] the file; [`verify`] goes the same way to compare, [`count`] to count; [`texts`]
//! is for texts that are in memory. [`sampling`] starts from files. Nothing here knows of YAML
//! or Python, nor of environment variables but those of the user's cache, and there are no defaults:
//! callers say everything.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod count;
mod error;
pub mod field;
mod inspect;
mod journal;
pub mod merge;
pub mod pack;
pub mod raw_index;
mod rejects;
pub mod sampling;
pub mod scan;
pub mod shard;
mod splitmix;
pub mod texts;
mod user_cache;
pub mod verify;

pub use error::{Error, Result, chain};
pub use inspect::document_lengths_histogram;
pub use packtok_pbin as pbin;
pub use user_cache::user_cache;
