//! Everything that can go wrong between token files and batches, with the data to say so.

use std::io;
use std::path::{Path, PathBuf};

use packtok_pbin::chain;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why files cannot serve the items asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no file.
    #[error("no pbin given; give at least one")]
    NoFiles,
    /// Files of different token widths.
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    WidthDiffers {
        /// The file.
        path: PathBuf,
        /// Its width.
        found: u64,
        /// The first file.
        first: PathBuf,
        /// That file's width.
        expected: u64,
    },
    /// A file that is not the one that was seen before.
    #[error(
        "{}: {what} is {found}, expected {expected}; the file was replaced since it was listed or first opened",
        path.display()
    )]
    FileReplaced {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// As the file has it; 0 stands for a checksum that is not there.
        found: u64,
        /// As it was.
        expected: u64,
    },
    /// A manifest that is not the one that was seen before.
    #[error(
        "{}: the fingerprint of the listed files is {found}, expected {expected}; the manifest was replaced since it was first opened",
        path.display()
    )]
    ManifestReplaced {
        /// The manifest.
        path: PathBuf,
        /// Fingerprint of the files it lists now.
        found: String,
        /// Fingerprint of the files it listed.
        expected: String,
    },
    /// A line of a manifest that cannot be understood.
    #[error("{}:{line}: not a valid manifest entry", path.display())]
    ManifestLine {
        /// The manifest.
        path: PathBuf,
        /// 1-based number of the line.
        line: usize,
        /// What the JSON parser said.
        source: serde_json::Error,
    },
    /// An entry whose numbers cannot be a pbin's.
    #[error("{}: {tokens} tokens of {token_bytes} bytes do not fit in {file_bytes} bytes; the manifest entry is wrong", path.display())]
    ImpossibleEntry {
        /// The file.
        path: PathBuf,
        /// Tokens by the entry.
        tokens: u64,
        /// Bytes of one token by the entry.
        token_bytes: u64,
        /// Bytes of the file by the entry.
        file_bytes: u64,
    },
    /// A path that JSON cannot hold.
    #[error("{}: the path is not UTF-8, so a manifest cannot contain it", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// Files with more tokens or documents than 64 bits count.
    #[error("{}: with this file the total exceeds 2^64 tokens or documents; its manifest entry is wrong", path.display())]
    TooMany {
        /// The file at which the count overflows.
        path: PathBuf,
    },
    /// The room for files of object stores is not a number.
    #[error("PACKTOK_CACHE_BYTES is {found:?}, expected a number of bytes")]
    CacheBytes {
        /// What it is.
        found: String,
    },
    /// There is no room for more of the files of object stores.
    #[error(
        "{}: the open files need more than the {bytes} bytes that this cache of object-store files may hold; raise PACKTOK_CACHE_BYTES",
        folder.display()
    )]
    CacheFull {
        /// Where they are.
        folder: PathBuf,
        /// What they may take.
        bytes: u64,
    },
    /// A file that has nothing to verify its data by.
    #[error("{}: file has no checksums to verify; pack it again, or remove verify", path.display())]
    NoChecksums {
        /// The file.
        path: PathBuf,
    },
    /// A block too short to be one.
    #[error("block_size is {block_size}, expected at least 2")]
    BlockTooSmall {
        /// The block size asked for.
        block_size: u64,
    },
    /// Blocks that would not get on.
    #[error("overlap {overlap} is not smaller than block_size {block_size}")]
    Overlap {
        /// The overlap asked for.
        overlap: u64,
        /// The block size asked for.
        block_size: u64,
    },
    /// Not a single block.
    #[error("{}: block_size {block_size} exceeds the {tokens} available tokens", shown(path, *more))]
    TooFewTokens {
        /// The first file.
        path: PathBuf,
        /// Number of further files.
        more: usize,
        /// The block size asked for.
        block_size: u64,
        /// Tokens in all; where blocks stay within files, in the longest.
        tokens: u64,
    },
    /// Not a single row.
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
        /// Tokens in all; where rows stay within files, in the longest.
        tokens: u64,
    },
    /// A plan for another number of tokens.
    #[error("{}: the plan covers {found} tokens, the dataset has {expected}; delete the file to rebuild it", path.display())]
    PlanTokens {
        /// The plan.
        path: PathBuf,
        /// Tokens that it plans.
        found: u64,
        /// Tokens there are.
        expected: u64,
    },
    /// A split of other files.
    #[error("{}: not a split of these files; delete the file to rebuild it", path.display())]
    SplitDisagrees {
        /// The split.
        path: PathBuf,
    },
    /// A split of what was split already.
    #[error("one side of a split cannot be split again; split the whole dataset with another rule")]
    SplitOfSplit,
    /// A share that is none.
    #[error("the held-out fraction is {found}, expected 0 to 1")]
    Fraction {
        /// The share asked for.
        found: f64,
    },
    /// More documents to hold out than there are.
    #[error("cannot hold out {expected} documents, the data has {found}")]
    TooFewDocuments {
        /// Documents to hold out.
        expected: u64,
        /// Documents there are.
        found: u64,
    },
    /// Blocks within files whose documents are only in part there.
    #[error("by_file cannot be combined with a split; remove by_file")]
    ByFileOfSplit,
    /// An item past the end.
    #[error("item {item} is out of range, the dataset has {items}")]
    NoSuchItem {
        /// The item asked for.
        item: i64,
        /// Items there are.
        items: u64,
    },
    /// An id that the type asked for cannot hold.
    #[error("{}: id {id} in tokens {start}..{stop} does not fit {dtype}; request a wider type", path.display())]
    IdTooLarge {
        /// The file.
        path: PathBuf,
        /// First token of the piece it is in.
        start: u64,
        /// Token after that piece.
        stop: u64,
        /// The id.
        id: u32,
        /// The type asked for.
        dtype: &'static str,
    },
    /// A batch that 32-bit boundaries cannot count.
    #[error("a batch of {tokens} tokens is too long for the 32-bit cu_seqlens; make it smaller")]
    BatchTooLong {
        /// Tokens of the batch, padding included.
        tokens: u64,
    },
    /// Items that have no row form.
    #[error("whole documents have no common length; use packing \"document\" for batches")]
    NoRows,
    /// Sources whose items cannot be rows of one batch.
    #[error(
        "one source has rows of {found} inputs, another of {first}; use the same context_length for both"
    )]
    RowsDiffer {
        /// Inputs in a row of the first source.
        first: u64,
        /// Inputs in a row of the other.
        found: u64,
    },
    /// A mixture of nothing.
    #[error("the mixture has no source; give at least one")]
    MixtureWithoutSources,
    /// A source that would never come.
    #[error("the weight of source {source_index} is 0; remove the source")]
    MixtureWeightZero {
        /// Position of the source among the weights.
        source_index: usize,
    },
    /// Weights that cannot be added and multiplied exactly.
    #[error(
        "the weights add up to {sum}, more than {}; divide them by a common factor",
        crate::order::limits::MAX_TOTAL_WEIGHT
    )]
    MixtureWeightsTooLarge {
        /// What they add up to.
        sum: u128,
    },
    /// A block longer than planners can do.
    #[error(
        "{name} is {found}, expected 1 to {}",
        crate::plans::layout::MAX_BLOCK_TOKENS
    )]
    BlockTokens {
        /// What the caller's option is called.
        name: &'static str,
        /// The length asked for.
        found: u64,
    },
    /// A block number past the end.
    #[error("{}: no block {block}, the plan has {num_blocks}", path.display())]
    NoSuchBlock {
        /// The plan.
        path: PathBuf,
        /// Number asked for.
        block: u64,
        /// Blocks there are.
        num_blocks: u64,
    },
    /// A split beyond the last document.
    #[error(
        "the validation side starts at document {document}, but the data has {num_documents} documents"
    )]
    NoSuchSplit {
        /// The first document of the validation side.
        document: u64,
        /// Documents there are.
        num_documents: u64,
    },
    /// No folder takes a plan file.
    #[error(
        "cannot write {name} to any folder; give a writable folder{}",
        reasons(refusals)
    )]
    NoWritableFolder {
        /// Name of the file.
        name: String,
        /// Why each folder takes nothing.
        refusals: Vec<Error>,
    },
    /// A plan file that cannot be used.
    #[error("{}: {fault}; delete the file to rebuild it", path.display())]
    PlanFile {
        /// The plan file.
        path: PathBuf,
        /// What is wrong with it.
        fault: crate::plans::layout::PlanFault,
    },
    /// The operating system refused something; its reason is the source.
    #[error("{}", path.display())]
    Io {
        /// File or folder concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// An object store refused something.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// The caller asked to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// The file format's own errors.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
}

/// A file and how many follow it.
fn shown(path: &std::path::Path, more: usize) -> String {
    match more {
        0 => path.display().to_string(),
        more => format!("{} and {more} more", path.display()),
    }
}

/// Each error with its causes, for the end of a message.
fn reasons(errors: &[Error]) -> String {
    let texts = errors.iter().enumerate();
    texts
        .map(|(i, error)| [": ", "; "][i.min(1)].to_owned() + &chain(error))
        .collect()
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        // One that passed through a reader's hands.
        #[cfg(feature = "remote")]
        let source = match source.downcast() {
            Ok(error) => return Self::Store(error),
            Err(source) => source,
        };
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
