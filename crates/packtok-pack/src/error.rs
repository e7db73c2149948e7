//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use packtok_corpus::Location;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Appended to the message of a run that ended early and whose finished work is kept.
pub const KEPT: &str =
    "finished work is kept next to the output; run the same command again to resume";

/// The reason why a function of this crate failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Error {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// A run ended early, and its finished work is kept.
    #[error("{}; {KEPT}", ended_by(source))]
    Kept { source: Box<Error> },
    /// An unfinished packing run has the same output as a join.
    #[error(
        "{}: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again",
        path.display()
    )]
    JournalOfPacking {
        /// The folder of the unfinished run.
        path: PathBuf,
    },
    /// An option cannot be used with shards, because it depends on the part of the corpus before
    /// the shard.
    #[error("{option} cannot be used with shards: {reason}; remove it, or pack without shards")]
    NotForShards {
        option: &'static str,
        reason: &'static str,
    },
    /// There is no plan, so the number of shards is unknown.
    #[error(
        "{}: no plan found, so the number of shards is unknown; write a plan with packtok plan --shards N, or give the shard as k/N",
        path.display()
    )]
    NoPlan { path: PathBuf },
    #[error("{}: no plan found; give the folder that the shards were packed into", path.display())]
    NothingPlanned { path: PathBuf },
    #[error(
        "{}: the existing plan does not match this run: {what} is {found}, expected {expected}; pack into another folder, or remove the plan and its shards",
        path.display()
    )]
    PlanDiffers {
        path: PathBuf,
        what: String,
        found: String,
        expected: String,
    },
    #[error("{}:{line}: not a valid plan line; remove the plan and write it again", path.display())]
    PlanLine {
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        source: serde_json::Error,
    },
    /// A plan contradicts the totals in its first line.
    #[error(
        "{}: the plan is damaged: {what} is {found}, expected {expected}; remove the plan and write it again",
        path.display()
    )]
    PlanDamaged {
        path: PathBuf,
        what: &'static str,
        found: String,
        /// The value in its first line.
        expected: String,
    },
    /// A path is not UTF-8, so a plan cannot contain it.
    #[error("{}: the path is not UTF-8, so a plan cannot contain it; rename the file or its folders", path.display())]
    PathNotUtf8 { path: PathBuf },
    /// A path contains `..` after a symbolic link, so its location is ambiguous.
    #[error(
        "{}: the path follows a symbolic link and then .., so its location is ambiguous; give the path without ..",
        path.display()
    )]
    ThroughLink { path: PathBuf },
    /// A source is inside the shards' output folder.
    #[error(
        "{}: the source is inside the shards' output folder {}; choose another folder",
        path.display(),
        folder.display()
    )]
    SourceInOutput { path: PathBuf, folder: PathBuf },
    /// The length of a source differs from the plan.
    #[error(
        "{}: file has {found_bytes} bytes, the plan expects {planned_bytes}; restore the file, or plan again in another folder",
        path.display()
    )]
    SourceNotAsPlanned {
        path: PathBuf,
        planned_bytes: u64,
        found_bytes: u64,
    },
    #[error(
        "{}: the tokenizer differs from the plan's: its fingerprint is {found}, expected {expected}; pack into another folder",
        path.display()
    )]
    ShardTokenizerDiffers {
        path: PathBuf,
        found: String,
        expected: String,
    },
    #[error("{}: not a valid shard marker; delete it and pack the shard again", path.display())]
    DamagedMarker {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// A marker or its shard belongs to another run.
    #[error(
        "{}: {what} is {found}, expected {expected}; pack the shard again with --existing replace (existing: replace)",
        path.display()
    )]
    PartDiffers {
        path: PathBuf,
        what: String,
        found: String,
        expected: String,
    },
    #[error(
        "{}: shards are missing: {shards} of {count}; pack them, then join again",
        folder.display()
    )]
    ShardsMissing {
        folder: PathBuf,
        /// The numbers of the shards, as `3, 7-9`.
        shards: String,
        count: u64,
    },
    /// The parts of a source in the shards leave a gap or overlap.
    #[error(
        "{}: source {label:?} is covered up to byte {expected}, but the next part starts at byte {found}; pack the shard again with --existing replace (existing: replace)",
        path.display()
    )]
    SourceNotCovered {
        /// The marker of the next part, or the plan if there is none.
        path: PathBuf,
        label: String,
        /// Start of the next part.
        found: u64,
        /// End of the previous part.
        expected: u64,
    },
    #[error("{}:{line}: not a valid rejects line; pack the shard again with --existing replace (existing: replace)", path.display())]
    RejectLine {
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        source: serde_json::Error,
    },
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    #[error(transparent)]
    Corpus(packtok_corpus::Error),
    /// The caller requested to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// An error of threads, or the output belongs to another run.
    #[error(transparent)]
    Jobs(packtok_jobs::Error),
    #[error("--eod: settings.eod_token is missing")]
    NoEodToken,
    /// The number of filters differs from the number of inputs.
    #[error("input_fields has {found} filters for {expected} inputs; give one for each")]
    InputFields { found: usize, expected: usize },
    /// The padding length exceeds the longest possible document.
    #[error(
        "--max-length: tokenizer.config.max_length is {length}; documents can be padded to at most {limit} ids; lower it, or remove --padding"
    )]
    PaddingTooLong { length: u64, limit: u64 },
    /// The padding id is outside the vocabulary of the tokenizer.
    #[error("the id of padding is {id}, but {tokenizer} has {vocab_size} ids; give its tokenizer")]
    PaddingId {
        id: u32,
        tokenizer: String,
        /// Highest id + 1.
        vocab_size: u64,
    },
    #[error(
        "--token-width: settings.token_width is uint16, but {tokenizer} has {vocab_size} ids, which need uint32; set it to uint32 or auto"
    )]
    WidthTooNarrow { tokenizer: String, vocab_size: u64 },
    /// A special token is not a single token of the tokenizer.
    #[error(
        "{option} {token:?} is not one token of {tokenizer}; its special tokens are {}",
        listed(special_tokens)
    )]
    NotOneToken {
        /// The flag and the config key of the option.
        option: &'static str,
        token: String,
        tokenizer: String,
        special_tokens: Vec<String>,
    },
    #[error(
        "{location}: {}{reason}; {}",
        offset_bytes.map_or_else(String::new, |byte| format!("byte {byte}: ")),
        reason.remedy()
    )]
    BadDocument {
        location: packtok_corpus::Location,
        /// Offset of its first byte in the uncompressed source; `None` for tables of row groups.
        offset_bytes: Option<u64>,
        reason: Box<packtok_corpus::Reason>,
    },
    #[error("{}: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace", path.display())]
    OutputExists { path: PathBuf },
    /// More documents were rejected than are allowed.
    #[error(
        "{}: {fault}{first}; see {}; fix the corpus or the options, {}",
        path.display(),
        rejects.display(),
        fault.remedy()
    )]
    TooManyRejects {
        path: PathBuf,
        fault: crate::pack::RejectFault,
        /// Position and reason of the first rejected line, as the end of a sentence.
        first: String,
        /// The files that list the rejected lines.
        rejects: PathBuf,
    },
    /// An unfinished run with the same output has a different configuration.
    #[error(
        "{}: the unfinished run differs from this one: {what} is {found}, expected {expected}; finish it with its own options and inputs, or start over with --restart (restart: true)",
        path.display()
    )]
    JournalDiffers {
        /// The folder of the unfinished run.
        path: PathBuf,
        what: String,
        found: String,
        expected: String,
    },
    /// The output is a folder, a device or similar, which a file must not replace.
    #[error("{}: the output is a {found}, not a file; choose another path", path.display())]
    OutputNotAFile {
        path: PathBuf,
        /// The kind of the path, as in `folder`.
        found: &'static str,
    },
    #[error("{}: file is both input and output; choose another output", path.display())]
    OutputIsInput { path: PathBuf },
    /// The existing output has no trailer, so its origin is unknown.
    #[error(
        "{}: the existing output has no trailer, so its origin cannot be verified; set --existing (existing) to replace",
        path.display()
    )]
    ExistingUnknown { path: PathBuf },
    /// The existing output differs from what this run would write.
    #[error(
        "{}: the existing output differs from what this run would write: {what} is {found}, expected {expected}; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        path: PathBuf,
        what: String,
        found: String,
        expected: String,
    },
    #[error(
        "{}: a raw index belongs to one file, but there are {num_sources} input files; pack them one at a time, or without --index-path (index_path)",
        path.display()
    )]
    IndexForMany { path: PathBuf, num_sources: usize },
    #[error(
        "{}: nothing was indexed: none of the {rejected} non-blank lines is valid JSON{first}; see {}",
        path.display(),
        rejects.display()
    )]
    NothingIndexed {
        path: PathBuf,
        rejected: u64,
        /// Position and reason of the first rejected line, as the end of a sentence.
        first: String,
        /// The file that lists the rejected lines.
        rejects: PathBuf,
    },
    /// One of several texts or id lists was rejected.
    #[error("{argument}[{item}]")]
    TextItem {
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
        source: Box<packtok_tokenizer::Error>,
    },
    /// The engine panicked on one of several texts or id lists.
    #[error(
        "{argument}[{item}]: packtok panicked on this item; this is a bug, please report it with the item"
    )]
    TextItemPanicked {
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
    },
    #[error("ids[{position}] is {found}, expected an id below {vocab_size}")]
    NoSuchId {
        /// Index of the id among all ids, from 0.
        position: usize,
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    #[error(
        "offsets[{position}] is {found}, less than the preceding {before}; offsets must not decrease"
    )]
    OffsetsFall {
        /// Index of the offset that is too low, from 0.
        position: usize,
        /// The offset that is too low.
        found: usize,
        /// The preceding offset.
        before: usize,
    },
    /// Offsets of id lists exceed the number of ids.
    #[error("offsets end at {found}, but there are {num_ids} ids")]
    OffsetsBeyond { found: usize, num_ids: usize },
    #[error(transparent)]
    EnginesDiffer(Box<EnginesDiffer>),
    /// The file's token width differs from the tokenizer's.
    #[error(
        "{}: tokens are {found_bytes} bytes wide, but this tokenizer needs {expected_bytes}; use the tokenizer that packed the file",
        path.display()
    )]
    WidthDiffers {
        path: PathBuf,
        /// Width of the tokens in the file.
        found_bytes: u64,
        expected_bytes: u64,
    },
    /// A document of the file differs from the corpus.
    #[error(
        "{}: document {document} differs from {location} at token {token}: found {}, expected {}",
        path.display(),
        describe_id(*found),
        describe_id(*expected)
    )]
    DocumentDiffers {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the first differing token, from 0.
        token: u64,
        /// The id in the file; `None` past the end of the document.
        found: Option<u32>,
        /// The id according to the corpus; `None` past the end of the document.
        expected: Option<u32>,
        location: Location,
    },
    #[error(
        "{}: file has {found} documents, but the corpus has one more at {location}",
        path.display()
    )]
    CorpusLonger {
        path: PathBuf,
        found: u64,
        /// The record of the first missing document.
        location: Location,
    },
    #[error("{}: file has {found} documents, the corpus has {expected}", path.display())]
    CorpusShorter {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    /// The file does not record the origins of its documents.
    #[error(
        "{}: does not record the origins of its documents; pack it with packtok pack --origins, or compare it with packtok verify --corpus CONFIG",
        path.display()
    )]
    NoOrigins { path: PathBuf },
    /// The origins of the documents are not in ascending order.
    #[error(
        "{}: document {document} came from a place before that of the previous one, as if packed by an index; compare the file with packtok verify --corpus CONFIG",
        path.display()
    )]
    OriginsUnordered {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
    },
    #[error(
        "{}: its source {source_path} is of a source plug-in; compare the file with packtok verify --corpus CONFIG --source SOURCE",
        path.display()
    )]
    OriginsOfPlugin { path: PathBuf, source_path: String },
    /// A recorded path of a source is not a relative path below a folder.
    #[error(
        "{}: its source {source_path:?} is not a path below a folder, so it is not read; the file is damaged or hostile",
        path.display()
    )]
    SourceOutside { path: PathBuf, source_path: String },
    #[error(
        "{}: has {found} bytes, but had {expected} when it was packed; give the folder of the same corpus",
        path.display()
    )]
    SourceLength {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    /// There is no document at the origin of a document.
    #[error(
        "{}: document {document} came from {record}, but no document starts there; the corpus has changed or the file is wrong",
        path.display()
    )]
    NoRecord {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// The source and the place in it.
        record: String,
    },
    /// A document of the file differs from the record it came from.
    #[error(
        "{}: document {document} differs from {record} at token {token}: found {}, expected {}",
        path.display(),
        describe_id(*found),
        describe_id(*expected)
    )]
    RecordDiffers {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the first differing token, from 0.
        token: u64,
        /// The id in the file; `None` past the end of the document.
        found: Option<u32>,
        /// The id according to the record; `None` past the end of the document.
        expected: Option<u32>,
        /// The source and the place in it.
        record: String,
    },
    #[error(
        "{}: document {document} has id {found} at token {token}, outside the vocabulary of {vocab_size}",
        path.display()
    )]
    IdBeyondVocab {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the token in it, from 0.
        token: u64,
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    #[error(
        "{}: document {document} ends with {}, expected EOD {eod_id}",
        path.display(),
        describe_id(*found)
    )]
    NoEodAtEnd {
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// The last id of the document; `None` if the document has no token.
        found: Option<u32>,
        eod_id: u32,
    },
    #[error(
        "{}: packed with tokenizer {found}, but the given tokenizer is {expected}; use the tokenizer that packed the file",
        path.display()
    )]
    TokenizerDiffers {
        path: PathBuf,
        found: String,
        /// Fingerprint of the tokenizer that the caller passed.
        expected: String,
    },
    /// An error in a token file of another format than pbin.
    #[error(transparent)]
    Formats(Box<packtok_formats::Error>),
}

impl From<packtok_corpus::Error> for Error {
    fn from(error: packtok_corpus::Error) -> Self {
        match error {
            packtok_corpus::Error::Io { path, source } => Self::Io { path, source },
            #[cfg(feature = "remote")]
            packtok_corpus::Error::Store(error) => Self::Store(error),
            packtok_corpus::Error::Jobs(error) => error.into(),
            packtok_corpus::Error::Pbin(error) => Self::Pbin(error),
            error => Self::Corpus(error),
        }
    }
}

impl From<packtok_jobs::Error> for Error {
    fn from(error: packtok_jobs::Error) -> Self {
        match error {
            packtok_jobs::Error::Io { path, source } => Self::io(&path, source),
            packtok_jobs::Error::Cancelled => Self::Cancelled,
            error => Self::Jobs(error),
        }
    }
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        match error {
            packtok_formats::Error::Pbin(error) => Self::Pbin(error),
            error => Self::Formats(error.into()),
        }
    }
}

/// The reason why a run ended that keeps its finished work.
fn ended_by(error: &Error) -> String {
    match error {
        // The message of `Cancelled` states that nothing was written, which does not hold here.
        Error::Cancelled => "interrupted".to_owned(),
        error => error.to_string(),
    }
}

impl Error {
    /// Adds the path to the error of a panic.
    pub(crate) fn with_names(self, sources: &[packtok_corpus::Source]) -> Self {
        match self {
            Self::Corpus(error) => {
                Self::Corpus(packtok_corpus::pipeline::name_panic(error, sources))
            }
            error => error,
        }
    }

    /// As [`packtok_corpus::Error::io`].
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        packtok_corpus::Error::io(path, source).into()
    }
}

/// Number of tokens that a message lists.
const NUM_LISTED: usize = 10;

fn listed(tokens: &[String]) -> String {
    let first = tokens.iter().take(NUM_LISTED);
    let quoted: Vec<String> = first.map(|token| format!("{token:?}")).collect();
    match (quoted.is_empty(), tokens.len().saturating_sub(NUM_LISTED)) {
        (true, _) => "none".to_owned(),
        (false, 0) => quoted.join(", "),
        (false, more) => format!("{} and {more} more", quoted.join(", ")),
    }
}

/// Two engines give different ids for a text.
#[derive(Debug, thiserror::Error)]
#[error(
    "{tokenizer}: {location}: token {token} is {} with {engine}, and {} with {oracle}, near {text:?}; please report it with this text",
    describe_id(*found),
    describe_id(*expected)
)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub struct EnginesDiffer {
    pub tokenizer: String,
    pub location: Location,
    /// Index of the first differing token, from 0.
    pub token: u64,
    pub engine: &'static str,
    /// The id of `engine`; `None` past the end of its ids.
    pub found: Option<u32>,
    pub oracle: &'static str,
    /// The id of `oracle`; `None` past the end of its ids.
    pub expected: Option<u32>,
    pub text: String,
}

/// Formats an id for a message.
fn describe_id(id: Option<u32>) -> String {
    id.map_or_else(
        || "the end of the document".to_owned(),
        |id| format!("id {id}"),
    )
}
