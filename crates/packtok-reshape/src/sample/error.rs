//! The errors of this module.

use std::path::PathBuf;

use packtok_formats::mds::MdsError;

/// The reason why samples cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A number is out of range.
    #[error("{option}: is {found}; expected {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// The value of the option.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The requested shard of the retrieval corpus does not exist.
    #[error("SHARD: is {found}; expected 0 to {}", shards.saturating_sub(1))]
    NoSuchShard {
        /// The shard.
        found: u64,
        /// Number of shards.
        shards: u64,
    },
    /// A domain without files.
    #[error("domain {domain:?} has no token files; give it files or the proportion 0")]
    NoFiles {
        /// The domain.
        domain: String,
    },
    /// There are fewer samples than requested.
    #[error(
        "{side} side of domain {domain:?}: {requested} samples requested, {available} available ({documents} documents, {too_short} of them too short); request fewer, add data, or set --allow-short (allow_short)"
    )]
    Short {
        /// The side.
        side: &'static str,
        /// The domain.
        domain: String,
        /// Number of requested samples.
        requested: u64,
        /// Number of samples that the data have.
        available: u64,
        /// Documents of the side.
        documents: u64,
        /// Documents without a sample.
        too_short: u64,
    },
    /// A finished output of another plan, or of another program.
    #[error(
        "{}: has samples of another plan or program; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    OtherPlan {
        /// The folder.
        path: PathBuf,
    },
    /// A finished output.
    #[error("{}: exists; set --existing (existing) to skip or replace, or choose another output", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Parts are missing when they are joined.
    #[error("{}: {missing} of {total} parts are not written; run the missing shards, then set --join (join)", path.display())]
    PartsMissing {
        /// The output folder.
        path: PathBuf,
        /// Number of missing parts.
        missing: usize,
        /// Number of parts.
        total: usize,
    },
    /// The file of a part that was written vanished.
    #[error("{}: is missing; run its shard again, then set --join (join)", path.display())]
    PartVanished {
        /// The file.
        path: PathBuf,
    },
    /// The size of a written part differs from the size in its marker.
    #[error("{}: has {found} bytes, its marker says {expected}; delete {}, then run its shard again", path.display(), marker.display())]
    PartDamaged {
        /// The file.
        path: PathBuf,
        /// Current size of the file.
        found: u64,
        /// The size in the marker.
        expected: u64,
        /// The marker.
        marker: PathBuf,
    },
    /// A token file changed after the plan was made.
    #[error("{}: changed while samples were taken from it; run the command again", path.display())]
    Changed {
        /// The token file.
        path: PathBuf,
    },
    /// The requested part does not exist.
    #[error("--shard: no shard {index} of {count}; shards are numbered from 0")]
    NoSuchPart {
        /// The shard.
        index: u64,
        /// Number of shards.
        count: u64,
    },
    /// An id exceeds the type of the column.
    #[error("{}: token {token} has id {id}, which {dtype} cannot hold; set --dtype (dtype) to {remedy}", path.display())]
    IdTooLarge {
        /// The token file.
        path: PathBuf,
        /// Position of the token in the file.
        token: u64,
        /// The id.
        id: u32,
        /// The type of the column.
        dtype: &'static str,
        /// A type that can hold it.
        remedy: &'static str,
    },
    /// The retrieval corpus needs texts.
    #[error(
        "the retrieval corpus has texts, for which a tokenizer is needed; set --tokenizer (tokenizer), or --retrieval-shards (retrieval_shards) to 0"
    )]
    NoTokenizer,
    /// Token ids cannot be decoded.
    #[error("{}: the tokens from {token} on cannot be decoded", path.display())]
    Decode {
        /// The token file.
        path: PathBuf,
        /// The first of the tokens.
        token: u64,
        /// The error of the tokenizer.
        source: Box<packtok_tokenizer::Error>,
    },
    /// An error of a folder of samples.
    #[error(transparent)]
    Mds(#[from] MdsError),
}
