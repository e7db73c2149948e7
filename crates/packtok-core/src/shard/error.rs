//! Everything that can go wrong with shards, with the data to say so.

use std::path::PathBuf;

/// Why a shard cannot be packed, or shards cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// Packing has begun under the name that shards are to be joined under.
    #[error(
        "{}: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again",
        path.display()
    )]
    JournalOfPacking {
        /// The folder of the unfinished run.
        path: PathBuf,
    },
    /// A corpus in no parts.
    #[error("the number of shards is 0, expected at least 1")]
    NoShards,
    /// A number that no shard has.
    #[error("no shard {index} of {count}; shards are numbered 0 to {}", count - 1)]
    NoSuchShard {
        /// The number asked for, from 0.
        index: u64,
        /// How many shards there are.
        count: u64,
    },
    /// An option that is not known to hold before all of the corpus has been read in order.
    #[error("{option} cannot be used with shards: {reason}; remove it, or pack without shards")]
    NotForShards {
        /// The option.
        option: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// There is no plan, and nothing says how many shards there are.
    #[error(
        "{}: no plan found, so the number of shards is unknown; write a plan with packtok plan --shards N, or give the shard as k/N",
        path.display()
    )]
    NoPlan {
        /// Where the plan would be.
        path: PathBuf,
    },
    /// There is nothing to join.
    #[error("{}: no plan found; give the folder that the shards were packed into", path.display())]
    NothingPlanned {
        /// Where the plan would be.
        path: PathBuf,
    },
    /// The plan that is there was made for something else.
    #[error(
        "{}: the existing plan does not match this run: {what} is {found}, expected {expected}; pack into another folder, or remove the plan and its shards",
        path.display()
    )]
    PlanDiffers {
        /// The plan.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As the plan has it.
        found: String,
        /// As this run would have it.
        expected: String,
    },
    /// A line of a plan is not what plans are made of.
    #[error("{}:{line}: not a valid plan line; remove the plan and write it again", path.display())]
    PlanLine {
        /// The plan.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A plan does not hold what its first line says.
    #[error(
        "{}: the plan is damaged: {what} is {found}, expected {expected}; remove the plan and write it again",
        path.display()
    )]
    PlanDamaged {
        /// The plan.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
        /// As it is.
        found: String,
        /// As its first line says.
        expected: String,
    },
    /// A path that no line of text can hold.
    #[error("{}: the path is not UTF-8, so a plan cannot contain it; rename the file or its folders", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A path whose name says nothing of where it leads.
    #[error(
        "{}: the path follows a symbolic link and then .., so its location is ambiguous; give the path without ..",
        path.display()
    )]
    ThroughLink {
        /// The path.
        path: PathBuf,
    },
    /// A source lies where the shards are to be written.
    #[error(
        "{}: the source is inside the shards' output folder {}; choose another folder",
        path.display(),
        folder.display()
    )]
    SourceInOutput {
        /// The source.
        path: PathBuf,
        /// The folder of the shards.
        folder: PathBuf,
    },
    /// A source has another length than the plan says.
    #[error(
        "{}: file has {found_bytes} bytes, the plan expects {planned_bytes}; restore the file, or plan again in another folder",
        path.display()
    )]
    SourceNotAsPlanned {
        /// The source.
        path: PathBuf,
        /// Its length when the plan was made.
        planned_bytes: u64,
        /// Its length now.
        found_bytes: u64,
    },
    /// The folder has another tokenizer.
    #[error(
        "{}: the tokenizer differs from the plan's: its fingerprint is {found}, expected {expected}; pack into another folder",
        path.display()
    )]
    TokenizerDiffers {
        /// The tokenizer's file.
        path: PathBuf,
        /// Its fingerprint.
        found: String,
        /// The plan's.
        expected: String,
    },
    /// A marker that cannot be read.
    #[error("{}: not a valid shard marker; delete it and pack the shard again", path.display())]
    Marker {
        /// The marker.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A marker, or the shard that it is of, belongs to something else.
    #[error(
        "{}: {what} is {found}, expected {expected}; pack the shard again with existing set to replace",
        path.display()
    )]
    PartDiffers {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As the file has it.
        found: String,
        /// As it should be.
        expected: String,
    },
    /// Shards are missing.
    #[error(
        "{}: shards are missing: {shards} of {count}; pack them, then join again",
        folder.display()
    )]
    Missing {
        /// The folder of the shards.
        folder: PathBuf,
        /// Their numbers, as `3, 7-9`.
        shards: String,
        /// How many shards there are.
        count: u64,
    },
    /// The shards' parts of a source do not make it whole.
    #[error(
        "{}: source {label:?} is covered up to byte {expected}, but the next part starts at byte {found}; pack the shard again with existing set to replace",
        path.display()
    )]
    NotCovered {
        /// The marker that comes next, or the plan if none does.
        path: PathBuf,
        /// The source.
        label: String,
        /// Where the next part of it starts.
        found: u64,
        /// Where the part before it stopped.
        expected: u64,
    },
    /// A line of a rejects file cannot be read.
    #[error("{}:{line}: not a valid rejects line; pack the shard again with existing set to replace", path.display())]
    RejectLine {
        /// The rejects file.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// What the parser said.
        source: serde_json::Error,
    },
}
