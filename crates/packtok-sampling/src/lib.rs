//! Token files to batches: which tokens an item has, in which order items come, and what is written for them.
//!
//! Data flows one way: [`files`] opens token files; [`items`] makes one stream of them, divides it into items
//! and writes many items at once as a batch; [`plans`] computes which documents share a block, and which side
//! of a split they are on, and [`planning`] finds or makes such a plan; [`order`] says which item comes when.
#![forbid(unsafe_code)]

mod error;
pub mod files;
pub mod items;
pub mod order;
pub mod planning;
pub mod plans;
mod progress;

pub use error::{Error, Result};
pub use progress::{Monitor, Progress};
