//! From pbins to batches: which tokens make an item, which items make a batch, and in what order.

pub mod order;
pub mod permutation;
