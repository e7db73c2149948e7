//! Conversions between formats of token files, without tokenizing again.
//!
//! Documents and ids do not change, including BOS and EOD. For a token file other than a pbin, a
//! marker next to the file records the meaning of its ids ([`marker`]); what the formats have no
//! room for of a pbin is kept beside the output (`rest.rs`), and so are the ends of documents.

mod flat;
mod folder_index;
mod kept;
mod loss_masks;
pub mod marker;
mod meaning;
mod npy;
mod outputs;
mod packed;
mod parts;
mod pbin;
pub(crate) mod rest;
mod rows;
mod run;
mod shards;
mod stated_dtype;

pub use kept::Kept;
pub(crate) use kept::{Losing, ORIGINS, Place, unknown_losses};
pub use meaning::Meaning;
pub use npy::{NpyWritten, write_npy};
pub use packed::{PackedOptions, PackedReport, write_packed};
pub(crate) use parts::{check_vocabulary, convert_width};
pub use run::{ConvertOptions, ConvertReport, convert};
pub(crate) use run::{check_extras, check_outputs};
pub use shards::Sharding;
