//! Packing in parts: a corpus is divided into shards, each packed by a process of its own, and joined.
//!
//! [`Plan`] says, once for all, what the corpus is and into how many shards it is divided
//! ([`division`]); [`pack_shard`] packs one of them and leaves a [`Marker`] when it is whole; [`join`]
//! makes of all shards the very file that one run would have written. All of them lie in one folder.

mod cut;
mod division;
mod error;
pub mod folder;
mod join;
mod join_journal;
mod marker;
mod pack;
mod plan;
mod plan_file;
mod rejects;

pub use division::Shard;
pub use error::ShardError;
pub use join::{JoinOptions, JoinReport, join, list};
pub use marker::{Marker, Place, SourcePart};
pub use pack::{Choice, pack_shard, report_of_marker};
pub use plan::{Plan, PlanReport, plan};
