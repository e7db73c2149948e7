//! From pbins to batches: which tokens an item has, in which order items come, and what is written for them.
//!
//! Data flows one way: [`files`] opens pbins, [`stream`] makes one run of tokens of them, [`blocks`] and
//! plans ([`plan`], made by [`best_fit`] and [`megatron`]) say which of these belong together, [`items`] which
//! of them an item has, and [`batch`] writes many items at once.

pub mod batch;
pub mod best_fit;
pub mod blocks;
pub mod cache;
mod error;
#[cfg(feature = "remote")]
mod fetched;
pub mod files;
mod ids;
pub mod items;
pub mod manifest;
pub mod megatron;
pub mod mixture;
pub mod opened;
pub mod order;
pub mod passes;
pub mod permutation;
pub mod plan;
pub mod plan_file;
pub mod planned;
pub mod split;
mod starts;
pub mod stream;

pub use error::SamplingError;
pub use ids::{Id, IdsMut};
