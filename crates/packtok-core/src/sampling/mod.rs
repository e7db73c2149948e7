//! From pbins to batches: which tokens are in which block, in which order, and how they become arrays.

pub mod best_fit;
pub mod cache;
pub mod megatron;
pub mod plan;
pub mod plan_file;
pub mod split;
