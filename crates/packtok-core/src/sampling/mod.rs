//! From pbins to batches: which tokens an item has, in which order items come, and what is written for them.
//!
//! Data flows one way: [`files`] opens pbins, [`stream`] makes one run of tokens of them, [`blocks`] and
//! [`items`] say which of these an item has, and [`batch`] writes many items at once.

pub mod batch;
pub mod blocks;
mod error;
pub mod files;
mod ids;
pub mod items;
pub mod manifest;
pub mod mixture;
pub mod order;
pub mod passes;
pub mod permutation;
pub mod stream;

pub use error::{Error, Result};
pub use ids::{Id, IdsMut};
