//! The errors of this module.

use std::path::PathBuf;

/// Why a shard cannot be packed, or shards cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// An unfinished packing run has the same output as a join.
    #[error(
        "{}: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again",
        path.display()
    )]
    JournalOfPacking {
        /// The folder of the unfinished run.
        path: PathBuf,
    },
    /// An option cannot be used with shards, because it depends on the preceding part of the
    /// corpus.
    #[error("{option} cannot be used with shards: {reason}; remove it, or pack without shards")]
    NotForShards {
        /// The option.
        option: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// There is no plan, so the number of shards is unknown.
    #[error(
        "{}: no plan found, so the number of shards is unknown; write a plan with packtok plan --shards N, or give the shard as k/N",
        path.display()
    )]
    NoPlan {
        /// The path where the plan is expected.
        path: PathBuf,
    },
    /// There is no plan to join.
    #[error("{}: no plan found; give the folder that the shards were packed into", path.display())]
    NothingPlanned {
        /// The path where the plan is expected.
        path: PathBuf,
    },
    /// The existing plan is for a different run.
    #[error(
        "{}: the existing plan does not match this run: {what} is {found}, expected {expected}; pack into another folder, or remove the plan and its shards",
        path.display()
    )]
    PlanDiffers {
        /// The plan.
        path: PathBuf,
        /// What differs.
        what: String,
        /// Its value in the plan.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// A line of a plan is invalid.
    #[error("{}:{line}: not a valid plan line; remove the plan and write it again", path.display())]
    PlanLine {
        /// The plan.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A plan does not match its first line.
    #[error(
        "{}: the plan is damaged: {what} is {found}, expected {expected}; remove the plan and write it again",
        path.display()
    )]
    PlanDamaged {
        /// The plan.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
        /// The value found.
        found: String,
        /// The value in its first line.
        expected: String,
    },
    /// A path is not UTF-8, so a plan cannot contain it.
    #[error("{}: the path is not UTF-8, so a plan cannot contain it; rename the file or its folders", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A path contains `..` after a symbolic link, so its location is ambiguous.
    #[error(
        "{}: the path follows a symbolic link and then .., so its location is ambiguous; give the path without ..",
        path.display()
    )]
    ThroughLink {
        /// The path.
        path: PathBuf,
    },
    /// A source is inside the shards' output folder.
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
    /// The length of a source differs from the plan.
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
    /// The folder contains another tokenizer.
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
    /// A marker is invalid.
    #[error("{}: not a valid shard marker; delete it and pack the shard again", path.display())]
    Marker {
        /// The marker.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A marker or its shard belongs to another run.
    #[error(
        "{}: {what} is {found}, expected {expected}; pack the shard again with --existing replace (existing: replace)",
        path.display()
    )]
    PartDiffers {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// Some shards are missing.
    #[error(
        "{}: shards are missing: {shards} of {count}; pack them, then join again",
        folder.display()
    )]
    Missing {
        /// The folder of the shards.
        folder: PathBuf,
        /// Their numbers, as `3, 7-9`.
        shards: String,
        /// Number of shards.
        count: u64,
    },
    /// The parts of a source in the shards leave a gap or overlap.
    #[error(
        "{}: source {label:?} is covered up to byte {expected}, but the next part starts at byte {found}; pack the shard again with --existing replace (existing: replace)",
        path.display()
    )]
    NotCovered {
        /// The marker of the next part, or the plan if there is none.
        path: PathBuf,
        /// The source.
        label: String,
        /// Start of the next part.
        found: u64,
        /// End of the previous part.
        expected: u64,
    },
    /// A line of a rejects file is invalid.
    #[error("{}:{line}: not a valid rejects line; pack the shard again with --existing replace (existing: replace)", path.display())]
    RejectLine {
        /// The rejects file.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// The error of the parser.
        source: serde_json::Error,
    },
}
