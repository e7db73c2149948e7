//! Packing in shards: a corpus is divided, each shard is packed by a separate process, and the
//! shards are joined.
//!
//! A [`ShardPlan`] fixes the corpus and the number of shards ([`Shard`](packtok_jobs::Shard)). [`pack_shard`] packs one
//! shard and writes a [`Marker`] when it is complete. [`join`](fn@join) combines all shards into exactly the
//! file that one run would have written. All files are in one folder.

pub mod folder;
mod join;
mod join_journal;
mod marker;
mod pack;
mod plan;
mod plan_file;
mod rejects;
pub use join::{JoinOptions, JoinReport, join, list};
pub use marker::{CorpusOffset, Marker, SourcePart};
pub use pack::{Choice, pack_shard, report_of_marker};
pub use plan::{PlanReport, ShardPlan, plan};
