//! Order: the item at each position of each epoch, for one dataset or a mixture.

pub mod context_masks;
pub(crate) mod limits;
pub mod mixture;
#[expect(clippy::module_inception, reason = "the order of this module")]
pub mod order;
pub mod passes;
pub mod permutation;
