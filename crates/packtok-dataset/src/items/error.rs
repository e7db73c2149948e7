//! The errors of this module.

use std::path::{Path, PathBuf};

/// Why items or batches cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ItemsError {
    /// A block size is too small.
    #[error("block_size is {block_size}, expected at least 2")]
    BlockTooSmall {
        /// The requested block size.
        block_size: u64,
    },
    /// An overlap is not smaller than the block size.
    #[error("overlap {overlap} is not smaller than block_size {block_size}")]
    Overlap {
        /// The requested overlap.
        overlap: u64,
        /// The requested block size.
        block_size: u64,
    },
    /// There are too few tokens for a block.
    #[error("{}: block_size {block_size} exceeds the {tokens} available tokens", shown(path, *more))]
    TooFewTokens {
        /// The first file.
        path: PathBuf,
        /// Number of further files.
        more: usize,
        /// The requested block size.
        block_size: u64,
        /// Number of all tokens; if blocks stay within files, of the longest file.
        tokens: u64,
    },
    /// There are too few tokens for a row.
    #[error(
        "{}: context_length {context_length} needs {} tokens (the inputs and the last label), found {tokens}; lower context_length, or add data",
        shown(path, *more), u128::from(*context_length) + 1
    )]
    TooFewTokensForRow {
        /// The first file.
        path: PathBuf,
        /// Number of further files.
        more: usize,
        /// Inputs of a row.
        context_length: u64,
        /// Number of all tokens; if rows stay within files, of the longest file.
        tokens: u64,
    },
    /// A plan is for another number of tokens.
    #[error("{}: the plan covers {found} tokens, the dataset has {expected}; delete the file to rebuild it", path.display())]
    PlanTokens {
        /// The plan.
        path: PathBuf,
        /// Number of tokens of the plan.
        found: u64,
        /// Number of tokens of the stream.
        expected: u64,
    },
    /// A split is for other files.
    #[error("{}: not a split of these files; delete the file to rebuild it", path.display())]
    SplitDisagrees {
        /// The split.
        path: PathBuf,
    },
    /// Blocks within files were requested for a side of a split.
    #[error("by_file cannot be combined with a split; remove by_file")]
    ByFileOfSplit,
    /// An item number is out of range.
    #[error("item {item} is out of range, the dataset has {items}")]
    NoSuchItem {
        /// The requested item.
        item: i64,
        /// Number of items.
        items: u64,
    },
    /// An id exceeds the requested integer type.
    #[error("{}: id {id} in tokens {start}..{stop} does not fit {dtype}; request a wider type", path.display())]
    IdTooLarge {
        /// The file.
        path: PathBuf,
        /// First token of the piece that contains it.
        start: u64,
        /// Token after that piece.
        stop: u64,
        /// The id.
        id: u32,
        /// The requested type.
        dtype: &'static str,
    },
    /// A batch has too many tokens for 32-bit boundaries.
    #[error("a batch of {tokens} tokens is too long for the 32-bit cu_seqlens; make it smaller")]
    BatchTooLong {
        /// Tokens of the batch, padding included.
        tokens: u64,
    },
    /// The items have different lengths, so they do not form rows.
    #[error("whole documents have no common length; use packing \"document\" for batches")]
    NoRows,
    /// Sources have rows of different lengths.
    #[error(
        "one source has rows of {found} inputs, another of {first}; use the same context_length for both"
    )]
    RowsDiffer {
        /// Inputs in a row of the first source.
        first: u64,
        /// Inputs in a row of the other source.
        found: u64,
    },
}

/// A file and the number of files after it.
fn shown(path: &Path, more: usize) -> String {
    match more {
        0 => path.display().to_string(),
        more => format!("{} and {more} more", path.display()),
    }
}
