//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use packtok_formats::mds::MdsError;
use packtok_formats::npy::NpyError;
use packtok_formats::raw::RawError;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a dataset, a plan or a batch cannot be built or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list of files is empty.
    #[error("no pbin given; give at least one")]
    NoFiles,
    /// Files have different token widths.
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    WidthDiffers {
        /// The file.
        path: PathBuf,
        /// Width of its tokens in bytes.
        found: u64,
        /// The first file.
        first: PathBuf,
        /// Width of the tokens in the first file, in bytes.
        expected: u64,
    },
    /// A file changed since it was listed.
    #[error(
        "{}: {what} is {found}, expected {expected}; the file was replaced since it was listed or first opened",
        path.display()
    )]
    FileReplaced {
        /// The file.
        path: PathBuf,
        /// The name of the differing number.
        what: &'static str,
        /// The actual number; 0 for a missing checksum.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The files of a manifest changed since it was recorded.
    #[error(
        "{}: the fingerprint of the listed files is {found}, expected {expected}; the manifest was replaced since it was first opened",
        path.display()
    )]
    ManifestReplaced {
        /// The manifest.
        path: PathBuf,
        /// Fingerprint of the files listed now.
        found: String,
        /// Fingerprint of the files listed before.
        expected: String,
    },
    /// A line of a manifest is invalid.
    #[error("{}:{line}: not a valid manifest entry", path.display())]
    ManifestLine {
        /// The manifest.
        path: PathBuf,
        /// 1-based number of the line.
        line: usize,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// The numbers of an entry are impossible for a pbin.
    #[error("{}: {tokens} tokens of {token_bytes} bytes do not fit in {file_bytes} bytes; the manifest entry is wrong", path.display())]
    ImpossibleEntry {
        /// The file.
        path: PathBuf,
        /// Number of tokens in the entry.
        tokens: u64,
        /// Bytes of one token in the entry.
        token_bytes: u64,
        /// Bytes of the file in the entry.
        file_bytes: u64,
    },
    /// A path is not UTF-8, so JSON cannot represent it.
    #[error("{}: the path is not UTF-8, so a manifest cannot contain it", path.display())]
    PathNotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The number of tokens or documents exceeds 64 bits.
    #[error("{}: with this file the total exceeds 2^64 tokens or documents; its manifest entry is wrong", path.display())]
    TooMany {
        /// The file at which the count overflows.
        path: PathBuf,
    },
    /// The size limit of the cache for object stores is not a number.
    #[error("PACKTOK_CACHE_BYTES is {found:?}, expected a number of bytes")]
    CacheBytes {
        /// The invalid value.
        found: String,
    },
    /// The cache for object stores is full.
    #[error(
        "{}: the open files need more than the {bytes} bytes that this cache of object-store files may hold; raise PACKTOK_CACHE_BYTES",
        folder.display()
    )]
    CacheFull {
        /// The cache folder.
        folder: PathBuf,
        /// The size limit.
        bytes: u64,
    },
    /// A file has no checksums to verify its data with.
    #[error("{}: file has no checksums to verify; pack it again, or remove verify", path.display())]
    NoChecksums {
        /// The file.
        path: PathBuf,
    },
    /// A block size is too small.
    #[error("block_size is {block_size}, expected at least 2")]
    BlockTooSmall {
        /// The requested block size.
        block_size: u64,
    },
    /// The overlap is not smaller than the block size.
    #[error("overlap {overlap} is not smaller than block_size {block_size}")]
    Overlap {
        /// The requested overlap.
        overlap: u64,
        /// The requested block size.
        block_size: u64,
    },
    /// There are too few tokens for a block.
    #[error("{}: block_size {block_size} exceeds the {tokens} available tokens", file_and_more(path, *more))]
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
        file_and_more(path, *more), u128::from(*context_length) + 1
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
    /// The items have different lengths, so they cannot form rows.
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
    /// A mixture has no sources.
    #[error("the mixture has no source; give at least one")]
    MixtureWithoutSources,
    /// A weight is zero.
    #[error("the weight of source {source_index} is 0; remove the source")]
    MixtureWeightZero {
        /// Position of the source among the weights.
        source_index: usize,
    },
    /// The sum of the weights is too large for exact arithmetic.
    #[error(
        "the weights add up to {sum}, more than {}; divide them by a common factor",
        crate::order::limits::MAX_TOTAL_WEIGHT
    )]
    MixtureWeightsTooLarge {
        /// The sum.
        sum: u128,
    },
    /// A split of a stream that is a side of a split already.
    #[error("one side of a split cannot be split again; split the whole dataset with another rule")]
    SplitOfSplit,
    /// A fraction is outside 0 to 1.
    #[error("the held-out fraction is {found}, expected 0 to 1")]
    Fraction {
        /// The requested fraction.
        found: f64,
    },
    /// There are fewer documents than are to be held out.
    #[error("cannot hold out {expected} documents, the data has {found}")]
    TooFewDocuments {
        /// Number of documents to hold out.
        expected: u64,
        /// Number of documents.
        found: u64,
    },
    /// A block size exceeds the limits of planners.
    #[error(
        "{name} is {found}, expected 1 to {}",
        crate::plans::layout::MAX_BLOCK_TOKENS
    )]
    BlockTokens {
        /// Name of the caller's option.
        name: &'static str,
        /// The requested length.
        found: u64,
    },
    /// A block number is out of range.
    #[error("{}: no block {block}, the plan has {num_blocks}", path.display())]
    NoSuchBlock {
        /// The plan.
        path: PathBuf,
        /// The requested block.
        block: u64,
        /// Number of blocks.
        num_blocks: u64,
    },
    /// A split starts after the last document.
    #[error(
        "the validation side starts at document {document}, but the data has {num_documents} documents"
    )]
    NoSuchSplit {
        /// The first document of the validation side.
        document: u64,
        /// Number of documents.
        num_documents: u64,
    },
    /// A plan file cannot be written to any folder.
    #[error(
        "cannot write {name} to any folder; set cache_dir to a writable folder{}",
        reasons(refusals)
    )]
    NoWritableFolder {
        /// Name of the file.
        name: String,
        /// The error of each folder, with its causes.
        refusals: Vec<String>,
    },
    /// A plan file is invalid.
    #[error("{}: {fault}; delete the file to rebuild it", path.display())]
    PlanFile {
        /// The plan file.
        path: PathBuf,
        /// The fault of the file.
        fault: crate::plans::layout::PlanFault,
    },
    /// An I/O operation failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An object store returned an error.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// The caller requested to stop.
    #[error(transparent)]
    Jobs(#[from] packtok_jobs::Error),
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of a file of raw tokens.
    #[error(transparent)]
    Raw(Box<RawError>),
    /// An error of an NPY file.
    #[error(transparent)]
    Npy(Box<NpyError>),
    /// An error of an MDS folder.
    #[error(transparent)]
    Mds(Box<MdsError>),
}

impl From<RawError> for Error {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Map(error) => Self::Pbin(error),
            error => Self::Raw(error.into()),
        }
    }
}

impl From<MdsError> for Error {
    fn from(error: MdsError) -> Self {
        match error {
            MdsError::File(error) => Self::Pbin(error),
            error => Self::Mds(error.into()),
        }
    }
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        match error {
            packtok_formats::Error::Pbin(error) => Self::Pbin(error),
            packtok_formats::Error::Raw(error) => error.into(),
            packtok_formats::Error::Npy(error) => Self::Npy(error),
            packtok_formats::Error::Mds(error) => Self::Mds(error),
        }
    }
}

impl Error {
    /// Builds an [`Error::Io`] for `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        // The error passed through a reader; restore the original.
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

/// A file and the number of files after it.
fn file_and_more(path: &Path, more: usize) -> String {
    match more {
        0 => path.display().to_string(),
        more => format!("{} and {more} more", path.display()),
    }
}

/// All refusals, for the end of a message.
fn reasons(refusals: &[String]) -> String {
    let texts = refusals.iter().enumerate();
    texts
        .map(|(i, refusal)| [": ", "; "][i.min(1)].to_owned() + refusal)
        .collect()
}
