//! NPY files of tokens: one array of integers.
//!
//! CEPE's scripts and others save a corpus as `[n][len_1 … len_n][d1] … [dn]`, mostly as int64:
//! `read.rs` and `write.rs`. Others save only the tokens, as uint16 or uint32: `array.rs`.
//! `header.rs` defines the byte layout of NPY 1.0, 2.0 and 3.0 and only accepts plain
//! one-dimensional arrays: object arrays contain pickles, which are never loaded.

mod array;
mod header;
mod read;
mod write;

pub(crate) use array::{Npy, open_array};
pub use header::{Element, MAGIC, NpyHeader};
pub use read::NpyFile;
pub use write::{DocumentsWriter, IdType, Written};
