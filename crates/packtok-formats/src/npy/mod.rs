//! NPY files of tokenized documents: one array of integers, `[n][len_1 … len_n][d1] … [dn]`.
//!
//! CEPE's scripts and others save a corpus this way, as int64. `header.rs` defines the byte layout
//! of NPY 1.0, 2.0 and 3.0 and only accepts plain one-dimensional arrays: object arrays contain
//! pickles, which are never loaded. `read.rs` and `write.rs` define the layout of the documents.

mod header;
mod read;
mod write;

pub use header::{Element, MAGIC, NpyHeader};
pub use read::NpyFile;
pub use write::{DocumentsWriter, IdType, Written};
