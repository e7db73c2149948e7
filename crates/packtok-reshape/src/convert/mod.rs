//! Conversions between formats of token files, without tokenizing again.
//!
//! [`FORMATS`] is the table of the formats: the names that `packtok convert --to` and `--format` take.
//! Documents and ids stay as they are, BOS and EOD included. A file of tokens other than a pbin has its
//! meaning in a marker next to it ([`marker`]).

mod error;
mod formats;
pub mod marker;
mod npy;
mod pbin;
mod run;

pub use error::ConvertError;
pub use formats::{FORMATS, Meaning, TokenFormat};
pub use npy::{NpyWritten, write_npy};
pub use run::{ConvertOptions, ConvertReport, convert};
