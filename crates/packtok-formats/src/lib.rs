//! Token files in every format that packtok reads, as one type: [`TokenFile`]; folders of samples
//! ([`mds`]); and the columns of Parquet and Arrow files (`table`, with the feature `tables`).
//!
//! Code that reads tokens for training uses [`TokenFile`] and is independent of the format. Each
//! format is a variant; a new format is a module here and an arm in each method.
#![forbid(unsafe_code)]

pub mod datatrove;
mod error;
mod flat_file;
mod largest_ids;
pub mod mds;
pub mod megatron;
mod narrowed;
pub mod npy;
pub mod python_json;
pub mod raw;
#[cfg(feature = "tables")]
pub mod table;
mod token_file;

pub use error::{ElementValue, Error, Result};
pub use flat_file::{FlatFile, FlatFormat};
pub use largest_ids::LargestIds;
pub use token_file::TokenFile;
