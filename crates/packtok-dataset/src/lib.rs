//! From token files to batches: the tokens of an item, the order of items, and the arrays of a
//! batch.
//!
//! Data flows one way. [`files`] opens token files. [`items`] combines them into one stream,
//! divides the stream into items and writes many items into a batch. [`plans`] computes which
//! documents share a block and which side of a split they are on; [`planning`] finds or builds
//! such a plan. [`order`] determines the order of items. [`texts`] decodes documents, to search and profile them.
#![forbid(unsafe_code)]

mod error;
pub mod files;
pub mod items;
pub mod order;
pub mod planning;
pub mod plans;
pub mod texts;

pub use error::{Error, Result};
