//! Conversions between formats of token files, without tokenizing again.
//!
//! [`FORMATS`] is the table of the formats: the names that `packtok convert --to` and `--format`
//! accept. Documents and ids do not change, including BOS and EOD. For a token file other than a
//! pbin, a marker next to the file records the meaning of its ids ([`marker`]); of a pbin, what
//! Megatron's and datatrove's formats have no room for is kept beside the output (`rest.rs`).

mod flat;
mod formats;
pub mod marker;
mod npy;
mod paths;
mod pbin;
mod rest;
mod run;
mod steps;

pub use formats::{FORMATS, Meaning, TokenFormat};
pub use npy::{NpyWritten, write_npy};
pub use run::{ConvertOptions, ConvertReport, convert};
