//! Parquet files whose rows are tokenized documents, as Hugging Face's datasets are saved.
//!
//! The column `input_ids` has the ids, as lists of int32 or int64. Trainers (TRL, axolotl,
//! LLaMA-Factory, MaxText) take such files without tokenizing.

mod read;
mod write;

pub use read::open;
pub(crate) use read::{RowsError, rows_error, starts_with_magic};
pub use write::RowsWriter;

/// The column of the ids.
pub const IDS_COLUMN: &str = "input_ids";
