//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a stream cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A state has bytes that no stream of this recipe writes.
    #[error("the state is damaged or of another recipe; load a state that this recipe saved")]
    DamagedState,
    /// An epoch has no sample, and would be repeated without end.
    #[error(
        "an epoch has no sample, so repeating it would never end; give files with samples, or set repeat=False"
    )]
    EmptyEpoch,
    /// A token file has a loss mask, which batches of a stream would not have.
    #[error(
        "{}: has a loss mask, which streams do not apply; read the file with TokenDataset",
        path.display()
    )]
    LossMask {
        /// The file.
        path: PathBuf,
    },
    /// Code of this library panicked.
    #[error("a worker panicked; this is a bug, please report it")]
    Panicked,
    /// A sample has no column of tokens with this name.
    #[error(
        "{}a sample has no tokens in column {column:?}; tokenize it first, or name another column",
        prefix(at)
    )]
    NoTokens {
        /// File and position of the sample, if it is from a file.
        at: Option<String>,
        /// The column.
        column: String,
    },
    /// The column of a sample contains a value that is not tokens.
    #[error("{}column {column:?} of a sample {reason}", prefix(at))]
    UnfitColumn {
        /// File and position of the sample, if it is from a file.
        at: Option<String>,
        /// The column.
        column: String,
        /// The actual content, as a predicate, and the expected content.
        reason: String,
    },
    /// A sample that is not from a file has no text.
    #[error(
        "a sample has no text in column {column:?}{}; name the column that has the text",
        which_is(found)
    )]
    NoText {
        /// The column.
        column: String,
        /// The type of the column's actual content, if the column exists.
        found: Option<&'static str>,
    },
    /// Two columns of a document have different lengths.
    #[error(
        "{}columns {first:?} and {second:?} of a sample have different numbers of tokens, expected equal ones",
        prefix(at)
    )]
    UnequalColumns {
        /// File and position of the sample, if it is from a file.
        at: Option<String>,
        /// The first column.
        first: String,
        /// The second column.
        second: String,
    },
    /// A file has no raw index.
    #[error("{}: there is no index {}; write it with `packtok index {}`", path.display(), index.display(), path.display())]
    NoRawIndex {
        /// The file.
        path: PathBuf,
        /// The index.
        index: PathBuf,
    },
    /// A raw index belongs to another version of the file.
    #[error("{}: its index is of another version of the file; write it again with `packtok index {}`", path.display(), path.display())]
    StaleRawIndex {
        /// The file.
        path: PathBuf,
    },
    /// Fields are requested of a sample that has no rows of tokens.
    #[error(
        "labels and other fields are requested of a sample that a function returned; make rows after the function, or pad before it"
    )]
    NoRow,
    /// Special tokens are added to a row with fields.
    #[error(
        "BOS and EOS are added to rows that have fields; add them to documents, before the rows are made"
    )]
    EndsOfRow,
    /// A file has another length than when the dataset was made.
    #[error(
        "{}: the file has {found_bytes} bytes, expected {expected_bytes} as when the dataset was made; make the dataset again",
        path.display()
    )]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Length of the file when the dataset was made.
        expected_bytes: u64,
        /// Current length of the file.
        found_bytes: u64,
    },
    /// A sample is longer than it should become.
    #[error(
        "{}column {column:?} has {len} tokens, expected at most chunk_length {length}",
        prefix(at)
    )]
    TooLong {
        /// File and position of the sample, if it is from a file.
        at: Option<String>,
        /// The column.
        column: String,
        /// Number of tokens in the column.
        len: usize,
        /// The maximum number of tokens.
        length: usize,
    },
    /// A document has no text, or the tokenizer refuses it.
    #[error("{at}: {reason}; fix it, or set on_bad_document to skip")]
    BadDocument {
        /// File and position of the document.
        at: String,
        /// The reason.
        reason: String,
    },
    /// A specification is not valid JSON, or has an unknown operator or argument.
    #[error(transparent)]
    Spec(serde_json::Error),
    /// A step of a specification reads from the wrong steps.
    #[error(
        "step {number} of the stream reads from a wrong number of steps, or from one that is not before it"
    )]
    StepInputs {
        /// The number of the step.
        number: usize,
    },
    /// Streams are interleaved with another number of weights.
    #[error("there are {num_weights} weights for {num_streams} streams; give one for each")]
    Weights {
        /// Number of weights.
        num_weights: usize,
        /// Number of streams.
        num_streams: usize,
    },
    /// An operator with a buffer follows `distribute`.
    #[error("{op} cannot follow distribute, because ranks would have other buffers; put it before")]
    AfterDistribute {
        /// The operator.
        op: String,
    },
    /// An operator that drops samples follows `distribute`.
    #[error(
        "{op} cannot follow distribute, because ranks would have different numbers of rows; put it before"
    )]
    DropsAfterDistribute {
        /// The operator.
        op: String,
    },
    /// A parallel function follows `distribute`.
    #[error("a parallel function cannot follow distribute; put it before, or use map")]
    ParallelAfterDistribute,
    /// A cache follows `distribute`.
    #[error("cache cannot follow distribute; put it before")]
    CacheAfterDistribute,
    /// Streams are combined, and one of them is divided among ranks.
    #[error("a dataset is divided among ranks already; combine the datasets, then distribute")]
    DividedAlready,
    /// An operator with a buffer follows a function whose outputs are in states.
    #[error(
        "{op} cannot follow a function with keep_outputs, because its buffer is computed again when a state is loaded; put it before the function"
    )]
    AfterOutputs {
        /// The operator.
        op: String,
    },
    /// A cache of a stream that has no end.
    #[error("the stream has no end, so its cache would grow without limit; use take first")]
    EndlessCache,
    /// A batch has no size, or two.
    #[error("give either batch_size or global_batch_size")]
    BatchSizes,
    /// Ranks cannot share a batch equally.
    #[error("global_batch_size is {size}, expected a multiple of the {num_ranks} ranks")]
    UnevenBatch {
        /// Samples of a batch of all ranks.
        size: u64,
        /// Number of ranks.
        num_ranks: u64,
    },
    /// A state lacks a lane that this rank reads.
    #[error(
        "the state lacks lane {lane}, which this rank reads; merge the states of all ranks with merge_states"
    )]
    LaneMissing {
        /// The lane.
        lane: u64,
    },
    /// A state is between the rows of two ranks.
    #[error(
        "the state is after {num_rows} rows, which {num_ranks} ranks cannot share equally; use a global batch size that every number of ranks divides"
    )]
    RowsOfRanks {
        /// Rows before the state.
        num_rows: u64,
        /// Number of ranks.
        num_ranks: u64,
    },
    /// A lane has nothing to read.
    #[error(
        "{data}: lane {lane} of {num_lanes} has no document: the data allow at most {possible} lanes{}; lower lanes, or give more or larger files",
        if *has_whole { ", because compressed files, and those of other formats than JSON lines, Parquet and Arrow, are not cut" } else { "" }
    )]
    EmptyLane {
        /// The files, in words.
        data: String,
        /// The lane.
        lane: u64,
        /// Number of lanes.
        num_lanes: u64,
        /// The largest number of lanes that all have something to read.
        possible: u64,
        /// Whether some file cannot be cut.
        has_whole: bool,
    },
    /// The caller's code failed.
    #[error("{message}")]
    Caller {
        /// The number under which the caller keeps the cause.
        number: u64,
        /// The message of the cause.
        message: String,
    },
    /// An error of the files, or of their documents.
    #[error(transparent)]
    Corpus(#[from] packtok_corpus::Error),
    /// An error of a raw index.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of rows, orders and mixtures.
    #[error(transparent)]
    Dataset(Box<packtok_dataset::Error>),
    /// An error of the tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    /// An error of threads.
    #[error(transparent)]
    Jobs(#[from] packtok_jobs::Error),
    /// The stream failed before.
    #[error("the stream ended with an error before: {0}; start it again from its last state")]
    Failed(String),
}

impl From<packtok_dataset::Error> for Error {
    fn from(error: packtok_dataset::Error) -> Self {
        Self::Dataset(Box::new(error))
    }
}

impl Error {
    /// An error of a file.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        packtok_corpus::Error::io(path, source).into()
    }
}

/// The place of a sample before a message about it.
fn prefix(at: &Option<String>) -> String {
    at.as_ref().map_or_else(String::new, |at| format!("{at}: "))
}

fn which_is(found: &Option<&'static str>) -> String {
    found.map_or_else(String::new, |type_name| format!(", which is {type_name}"))
}
