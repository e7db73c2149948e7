//! Items: one stream of all documents, divided into items and written as batches.

pub mod batch;
pub mod blocks;
mod chunks;
mod ids;
#[expect(clippy::module_inception, reason = "the items of this module")]
pub mod items;
mod loss;
mod mask;
mod packed;
pub mod token_rows;
pub mod token_stream;
pub use ids::{Id, IdsMut};
pub use loss::LossMarkers;
pub use mask::fill_mask;
pub use packed::PackedRow;
