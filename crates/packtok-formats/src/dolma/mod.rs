//! OLMo's and dolma's files: tokens in `NAME.npy`, which has no header, documents in `NAME.csv.gz`.
//!
//! A row of the compressed CSV file is a document: its first token, the token after its last, its ID,
//! the path of its text and its line, counted from one; the last three may be missing. There is no row of
//! names. A loss mask is a file of its own, a byte for each token: 1 if it counts. Sources: dolma's
//! `tokenizer/memmap_writer`, OLMo-core's `data/utils.py`, and open-instruct's
//! `convert_sft_data_for_olmocore.py`, which names masks.

mod index;
mod read;
mod write;

pub use index::{DolmaRow, write_index};
pub use read::{DolmaPaths, loss_mask_path, open};
pub(crate) use write::Dolma;
