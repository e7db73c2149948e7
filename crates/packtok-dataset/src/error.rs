//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a dataset, a plan or a batch cannot be built or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Error {
    #[error("no pbin given; give at least one")]
    NoFiles,
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    WidthDiffers {
        path: PathBuf,
        /// Width of its tokens in bytes.
        found: u64,
        first: PathBuf,
        /// Width of the tokens in the first file, in bytes.
        expected: u64,
    },
    #[error(
        "{}: {what} is {found}, expected {expected}; the file was replaced since it was listed or first opened",
        path.display()
    )]
    FileReplaced {
        path: PathBuf,
        what: &'static str,
        /// The actual number; 0 for a missing checksum.
        found: u64,
        expected: u64,
    },
    /// The files of a manifest changed since it was recorded.
    #[error(
        "{}: the fingerprint of the listed files is {found}, expected {expected}; the manifest was replaced since it was first opened",
        path.display()
    )]
    ManifestReplaced {
        path: PathBuf,
        found: String,
        /// Fingerprint of the files listed before.
        expected: String,
    },
    #[error("{}:{line}: not a valid manifest entry", path.display())]
    ManifestLine {
        path: PathBuf,
        /// 1-based number of the line.
        line: usize,
        source: serde_json::Error,
    },
    /// The numbers of an entry are impossible for a pbin.
    #[error("{}: {tokens} tokens of {token_bytes} bytes do not fit in {file_bytes} bytes; the manifest entry is wrong", path.display())]
    ImpossibleEntry {
        path: PathBuf,
        tokens: u64,
        /// Bytes of one token in the entry.
        token_bytes: u64,
        /// Bytes of the file in the entry.
        file_bytes: u64,
    },
    /// A path is not UTF-8, so JSON cannot represent it.
    #[error("{}: the path is not UTF-8, so a manifest cannot contain it", path.display())]
    PathNotUtf8 { path: PathBuf },
    /// The number of tokens or documents exceeds 64 bits.
    #[error("{}: with this file the total exceeds 2^64 tokens or documents; its manifest entry is wrong", path.display())]
    TooMany {
        /// The file at which the count overflows.
        path: PathBuf,
    },
    /// The size limit of the cache for object stores is not a number.
    #[error("PACKTOK_CACHE_BYTES is {found:?}, expected a number of bytes")]
    CacheBytes { found: String },
    #[error(
        "{}: the open files need more than the {bytes} bytes that this cache of object-store files may hold; raise PACKTOK_CACHE_BYTES",
        folder.display()
    )]
    CacheFull { folder: PathBuf, bytes: u64 },
    /// A file has no checksums to verify its data with.
    #[error("{}: file has no checksums to verify; pack it again, or remove verify", path.display())]
    NoChecksums { path: PathBuf },
    /// A column that says how tokens count in the loss is no loss mask.
    #[error(
        "{}: column {name} is no loss mask (expected 0, 1 or booleans; in labels the ids or -100; in attention_mask only 1), and training does not apply it; to train without it, convert the file and accept the loss of {name}",
        path.display()
    )]
    LossColumn {
        path: PathBuf,
        /// The name of the column.
        name: String,
    },
    #[error("block_size is {block_size}, expected at least 2")]
    BlockTooSmall { block_size: u64 },
    /// The overlap is not smaller than the block size.
    #[error("overlap {overlap} is not smaller than block_size {block_size}")]
    Overlap { overlap: u64, block_size: u64 },
    #[error("{}: block_size {block_size} exceeds the {tokens} available tokens", file_and_more(path, *more))]
    TooFewTokens {
        path: PathBuf,
        /// Number of further files.
        more: usize,
        block_size: u64,
        /// Number of all tokens; if blocks stay within files, of the longest file.
        tokens: u64,
    },
    #[error(
        "{}: context_length {context_length} needs {} tokens (the inputs and the last label), found {tokens}; lower context_length, or add data",
        file_and_more(path, *more), u128::from(*context_length) + 1
    )]
    TooFewTokensForRow {
        path: PathBuf,
        /// Number of further files.
        more: usize,
        context_length: u64,
        /// Number of all tokens; if rows stay within files, of the longest file.
        tokens: u64,
    },
    #[error("{}: the plan covers {found} tokens, the dataset has {expected}; delete the file to rebuild it", path.display())]
    PlanTokens {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error("{}: not a split of these files; delete the file to rebuild it", path.display())]
    SplitDisagrees { path: PathBuf },
    /// Blocks within files were requested for a side of a split.
    #[error("by_file cannot be combined with a split; remove by_file")]
    ByFileOfSplit,
    #[error("item {item} is out of range, the dataset has {items}")]
    NoSuchItem { item: i64, items: u64 },
    #[error("{}: id {id} in tokens {start}..{stop} does not fit {dtype}; request a wider type", path.display())]
    IdTooLarge {
        path: PathBuf,
        /// First token of the piece that contains it.
        start: u64,
        /// Token after that piece.
        stop: u64,
        id: u32,
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
    #[error(
        "one source has rows of {found} inputs, another of {first}; use the same context_length for both"
    )]
    RowsDiffer { first: u64, found: u64 },
    #[error("the mixture has no source; give at least one")]
    MixtureWithoutSources,
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
    MixtureWeightsTooLarge { sum: u128 },
    /// A split of a stream that is a side of a split already.
    #[error("one side of a split cannot be split again; split the whole dataset with another rule")]
    SplitOfSplit,
    #[error("the held-out fraction is {found}, expected 0 to 1")]
    Fraction { found: f64 },
    /// There are fewer documents than are to be held out.
    #[error("cannot hold out {expected} documents, the data has {found}")]
    TooFewDocuments { expected: u64, found: u64 },
    #[error(
        "{name} is {found}, expected 1 to {}",
        crate::plans::layout::MAX_BLOCK_TOKENS
    )]
    BlockTokens {
        /// Name of the caller's option.
        name: &'static str,
        found: u64,
    },
    #[error("{}: no block {block}, the plan has {num_blocks}", path.display())]
    NoSuchBlock {
        path: PathBuf,
        block: u64,
        num_blocks: u64,
    },
    #[error(
        "the validation side starts at document {document}, but the data has {num_documents} documents"
    )]
    NoSuchSplit {
        /// The first document of the validation side.
        document: u64,
        num_documents: u64,
    },
    #[error(
        "cannot write {name} to any folder; set cache_dir to a writable folder{}",
        reasons(refusals)
    )]
    NoWritableFolder {
        name: String,
        /// The error of each folder, with its causes.
        refusals: Vec<String>,
    },
    #[error("{}: {fault}; delete the file to rebuild it", path.display())]
    PlanFile {
        path: PathBuf,
        fault: crate::plans::layout::PlanFault,
    },
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// The caller requested to stop.
    #[error(transparent)]
    Jobs(#[from] packtok_jobs::Error),
    /// The tokenizer cannot decode the ids of a document.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    #[error("there is no tokenizer to decode the documents; give one")]
    NoTokenizer,
    #[error("the text to search for has {bytes} bytes, expected 1 to {limit}")]
    Pattern { bytes: usize, limit: usize },
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of a token file of another format, or of a folder of samples.
    #[error(transparent)]
    Formats(Box<packtok_formats::Error>),
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        match error {
            packtok_formats::Error::Pbin(error) => Self::Pbin(error),
            error => Self::Formats(error.into()),
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
