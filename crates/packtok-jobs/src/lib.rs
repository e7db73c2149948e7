//! Infrastructure of long tasks: workers whose results arrive in order, progress and cancellation,
//! the journal from which a killed task resumes, and the division of work into shards.
//!
//! This crate is independent of the work of a task: results and errors are type parameters.
#![forbid(unsafe_code)]

mod error;
mod files;
mod hex;
pub mod journal;
pub mod limits;
mod progress;
mod results;
mod shard;
pub mod splitmix;
mod tasks;

pub use error::{Error, Result};
pub use files::{remove_if_there, with_suffix};
pub use hex::hex;
pub use progress::{Monitor, Progress, report_progress};
pub use results::{Consume, Flow, OrderedResults, Working, lock};
pub use shard::Shard;
pub use tasks::run_tasks;
