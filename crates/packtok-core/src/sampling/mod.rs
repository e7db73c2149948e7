//! From pbin files to batches: which tokens an item holds, in which order items come, and their arrays.

pub mod mixture;
