//! OLMo's and dolma's files: tokens in `NAME.npy`, which has no header, documents in `NAME.csv.gz`.
//!
//! A row of the compressed CSV file is a document: its first token, the token after its last, its ID,
//! the path of its text and its line, counted from one. There is no row of names. Sources: dolma's
//! `tokenizer/memmap_writer` and OLMo-core's `data/utils.py`.

mod index;
mod read;

pub use index::{DolmaRow, write_index};
pub use read::{DolmaPaths, open};
