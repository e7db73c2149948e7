//! Token files in every format that packtok reads, as one type: [`TokenFile`]; folders of samples
//! ([`mds`]); and the columns of Parquet and Arrow files (`table`, with the feature `tables`).
//!
//! Code that reads tokens for training uses [`TokenFile`] and is independent of the format. A format is a
//! folder here, whose files are read through [`TokenRead`]: those whose tokens lie back to back as [`FlatFile`].
//! [`TokenWrite`] is how a format is written.
#![forbid(unsafe_code)]

#[cfg(feature = "tables")]
pub mod arrow_rows;
mod boundaries;
mod copied;
pub mod datatrove;
pub mod dolma;
mod ends;
mod error;
mod first_bytes;
mod flat_file;
mod format;
mod largest_ids;
mod last_read;
pub mod litdata;
pub mod llm_c;
mod loss_mask;
#[cfg(feature = "tables")]
mod mask_columns;
pub mod mds;
pub mod megatron;
mod narrowed;
pub mod npy;
mod open_options;
#[cfg(feature = "tables")]
pub mod parquet_rows;
pub mod python_json;
pub mod raw;
mod sidecar;
#[cfg(feature = "tables")]
pub mod table;
#[cfg(test)]
mod test_support;
mod token_file;
mod token_read;
mod token_write;
mod writers;

pub use ends::{crc32c_of_lengths, write_ends};
pub use error::{ElementValue, Error, Result};
pub use flat_file::FlatFile;
pub use format::TokenFormat;
pub use largest_ids::LargestIds;
pub use loss_mask::LossMask;
pub use open_options::{Boundaries, OpenOptions};
pub use sidecar::{SIDECAR_FOLDER, sidecar_ends_path, sidecar_marker_path, sidecar_path};
pub use token_file::TokenFile;
pub use token_read::TokenRead;
pub use token_write::{OutputPaths, TokenWrite, TokensToWrite, without_ending};
