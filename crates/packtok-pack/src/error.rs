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
pub enum Error {
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
    /// A run ended early, and its finished work is kept.
    #[error("{}; {KEPT}", ended_by(source))]
    Kept {
        /// The reason why the run ended.
        source: Box<Error>,
    },
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
        /// The name of the differing value.
        what: String,
        /// The value in the plan.
        found: String,
        /// The value in this run.
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
    /// A plan contradicts the totals in its first line.
    #[error(
        "{}: the plan is damaged: {what} is {found}, expected {expected}; remove the plan and write it again",
        path.display()
    )]
    PlanDamaged {
        /// The plan.
        path: PathBuf,
        /// The name of the wrong value.
        what: &'static str,
        /// The value found.
        found: String,
        /// The value in its first line.
        expected: String,
    },
    /// A path is not UTF-8, so a plan cannot contain it.
    #[error("{}: the path is not UTF-8, so a plan cannot contain it; rename the file or its folders", path.display())]
    PathNotUtf8 {
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
        /// Length of the source when the plan was made.
        planned_bytes: u64,
        /// Current length of the source.
        found_bytes: u64,
    },
    /// The folder contains another tokenizer.
    #[error(
        "{}: the tokenizer differs from the plan's: its fingerprint is {found}, expected {expected}; pack into another folder",
        path.display()
    )]
    ShardTokenizerDiffers {
        /// The tokenizer's file.
        path: PathBuf,
        /// Fingerprint of the tokenizer.
        found: String,
        /// The plan's.
        expected: String,
    },
    /// A marker is invalid.
    #[error("{}: not a valid shard marker; delete it and pack the shard again", path.display())]
    DamagedMarker {
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
        /// The name of the differing value.
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
    ShardsMissing {
        /// The folder of the shards.
        folder: PathBuf,
        /// The numbers of the shards, as `3, 7-9`.
        shards: String,
        /// Number of shards.
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
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of the tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    /// An error of the corpus.
    #[error(transparent)]
    Corpus(packtok_corpus::Error),
    /// The caller requested to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// An error of threads, or the output belongs to another run.
    #[error(transparent)]
    Jobs(packtok_jobs::Error),
    /// No EOD token is set.
    #[error("--eod: settings.eod_token is missing")]
    NoEodToken,
    /// The number of filters differs from the number of inputs.
    #[error("input_fields has {found} filters for {expected} inputs; give one for each")]
    InputFields {
        /// Number of filters.
        found: usize,
        /// Number of inputs.
        expected: usize,
    },
    /// The padding length exceeds the longest possible document.
    #[error(
        "--max-length: tokenizer.config.max_length is {length}; documents can be padded to at most {limit} ids; lower it, or remove --padding"
    )]
    PaddingTooLong {
        /// The length.
        length: u64,
        /// The largest possible length.
        limit: u64,
    },
    /// The padding id is outside the vocabulary of the tokenizer.
    #[error("the id of padding is {id}, but {tokenizer} has {vocab_size} ids; give its tokenizer")]
    PaddingId {
        /// The id.
        id: u32,
        /// Name of the tokenizer.
        tokenizer: String,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A special token is not a single token of the tokenizer.
    #[error(
        "{option} {token:?} is not one token of {tokenizer}; its special tokens are {}",
        listed(special_tokens)
    )]
    NotOneToken {
        /// The flag and the config key of the option.
        option: &'static str,
        /// The token.
        token: String,
        /// Name of the tokenizer.
        tokenizer: String,
        /// The tokenizer's special tokens.
        special_tokens: Vec<String>,
    },
    /// A record cannot be packed.
    #[error(
        "{location}: {}{reason}; {}",
        offset_bytes.map_or_else(String::new, |byte| format!("byte {byte}: ")),
        reason.remedy()
    )]
    BadDocument {
        /// The record.
        location: packtok_corpus::Location,
        /// Offset of its first byte in the uncompressed source; `None` for tables of row groups.
        offset_bytes: Option<u64>,
        /// The reason.
        reason: Box<packtok_corpus::Reason>,
    },
    /// The output already exists.
    #[error("{}: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace", path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// More documents were rejected than are allowed.
    #[error(
        "{}: {fault}{first}; see {}; fix the corpus or the options, {}",
        path.display(),
        rejects.display(),
        fault.remedy()
    )]
    TooManyRejects {
        /// The output.
        path: PathBuf,
        /// The exceeded limit.
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
        /// The name of the differing value.
        what: String,
        /// The value in the unfinished run.
        found: String,
        /// The value in this run.
        expected: String,
    },
    /// The output is a folder, a device or similar, which a file must not replace.
    #[error("{}: the output is a {found}, not a file; choose another path", path.display())]
    OutputNotAFile {
        /// The output.
        path: PathBuf,
        /// The kind of the path, as in `folder`.
        found: &'static str,
    },
    /// The output is also a source.
    #[error("{}: file is both input and output; choose another output", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The existing output has no trailer, so its origin is unknown.
    #[error(
        "{}: the existing output has no trailer, so its origin cannot be verified; set --existing (existing) to replace",
        path.display()
    )]
    ExistingUnknown {
        /// The output.
        path: PathBuf,
    },
    /// The existing output differs from what this run would write.
    #[error(
        "{}: the existing output differs from what this run would write: {what} is {found}, expected {expected}; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// The name of the differing value.
        what: String,
        /// The value in the output.
        found: String,
        /// The value in this run.
        expected: String,
    },
    /// A raw index is set for more than one source.
    #[error(
        "{}: a raw index belongs to one file, but there are {num_sources} input files; pack them one at a time, or without --index-path (index_path)",
        path.display()
    )]
    IndexForMany {
        /// The index.
        path: PathBuf,
        /// Number of sources.
        num_sources: usize,
    },
    /// All lines of a file were rejected.
    #[error(
        "{}: nothing was indexed: none of the {rejected} non-blank lines is valid JSON{first}; see {}",
        path.display(),
        rejects.display()
    )]
    NothingIndexed {
        /// The source.
        path: PathBuf,
        /// Number of rejected lines.
        rejected: u64,
        /// Position and reason of the first rejected line, as the end of a sentence.
        first: String,
        /// The file that lists the rejected lines.
        rejects: PathBuf,
    },
    /// One of several texts or id lists was rejected.
    #[error("{argument}[{item}]")]
    TextItem {
        /// Name of the argument.
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
        /// The error of the tokenizer.
        source: Box<packtok_tokenizer::Error>,
    },
    /// The engine panicked on one of several texts or id lists.
    #[error(
        "{argument}[{item}]: packtok panicked on this item; this is a bug, please report it with the item"
    )]
    TextItemPanicked {
        /// Name of the argument.
        argument: &'static str,
        /// Index in the argument, from 0.
        item: usize,
    },
    /// An id to decode is not in the vocabulary.
    #[error("ids[{position}] is {found}, expected an id below {vocab_size}")]
    NoSuchId {
        /// Index of the id among all ids, from 0.
        position: usize,
        /// The id.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// Offsets of id lists decrease.
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
    OffsetsBeyond {
        /// The last offset.
        found: usize,
        /// Number of ids.
        num_ids: usize,
    },
    /// Two engines give different ids for a text.
    #[error(transparent)]
    EnginesDiffer(Box<EnginesDiffer>),
    /// The file's token width differs from the tokenizer's.
    #[error(
        "{}: tokens are {found_bytes} bytes wide, but this tokenizer needs {expected_bytes}; use the tokenizer that packed the file",
        path.display()
    )]
    WidthDiffers {
        /// The pbin.
        path: PathBuf,
        /// Width of the tokens in the file.
        found_bytes: u64,
        /// Width that the tokenizer needs.
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
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the first differing token, from 0.
        token: u64,
        /// The id in the file; `None` past the end of the document.
        found: Option<u32>,
        /// The id according to the corpus; `None` past the end of the document.
        expected: Option<u32>,
        /// The record of the corpus.
        location: Location,
    },
    /// The corpus has more documents than the file.
    #[error(
        "{}: file has {found} documents, but the corpus has one more at {location}",
        path.display()
    )]
    CorpusLonger {
        /// The pbin.
        path: PathBuf,
        /// Number of documents in the file.
        found: u64,
        /// The record of the first missing document.
        location: Location,
    },
    /// The file has more documents than the corpus.
    #[error("{}: file has {found} documents, the corpus has {expected}", path.display())]
    CorpusShorter {
        /// The pbin.
        path: PathBuf,
        /// Number of documents in the file.
        found: u64,
        /// The documents of the corpus.
        expected: u64,
    },
    /// The file does not record the origins of its documents.
    #[error(
        "{}: does not record the origins of its documents; pack it with packtok pack --origins, or compare it with packtok verify --corpus CONFIG",
        path.display()
    )]
    NoOrigins {
        /// The pbin.
        path: PathBuf,
    },
    /// The origins of the documents are not in ascending order.
    #[error(
        "{}: document {document} came from a place before that of the previous one, as if packed by an index; compare the file with packtok verify --corpus CONFIG",
        path.display()
    )]
    OriginsUnordered {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
    },
    /// The documents came from a source plug-in.
    #[error(
        "{}: its source {source_path} is of a source plug-in; compare the file with packtok verify --corpus CONFIG --source SOURCE",
        path.display()
    )]
    OriginsOfPlugin {
        /// The pbin.
        path: PathBuf,
        /// The source.
        source_path: String,
    },
    /// A recorded path of a source is not a relative path below a folder.
    #[error(
        "{}: its source {source_path:?} is not a path below a folder, so it is not read; the file is damaged or hostile",
        path.display()
    )]
    SourceOutside {
        /// The pbin.
        path: PathBuf,
        /// The source.
        source_path: String,
    },
    /// A source changed after packing.
    #[error(
        "{}: has {found} bytes, but had {expected} when it was packed; give the folder of the same corpus",
        path.display()
    )]
    SourceLength {
        /// The source.
        path: PathBuf,
        /// Current length of the source.
        found: u64,
        /// Length of the source that the file records.
        expected: u64,
    },
    /// There is no document at the origin of a document.
    #[error(
        "{}: document {document} came from {record}, but no document starts there; the corpus has changed or the file is wrong",
        path.display()
    )]
    NoRecord {
        /// The pbin.
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
        /// The pbin.
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
    /// An id is not in the vocabulary.
    #[error(
        "{}: document {document} has id {found} at token {token}, outside the vocabulary of {vocab_size}",
        path.display()
    )]
    IdBeyondVocab {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the token in it, from 0.
        token: u64,
        /// The id.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A document does not end with EOD.
    #[error(
        "{}: document {document} ends with {}, expected EOD {eod_id}",
        path.display(),
        describe_id(*found)
    )]
    NoEodAtEnd {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// The last id of the document; `None` if the document has no token.
        found: Option<u32>,
        /// The expected id.
        eod_id: u32,
    },
    /// The file was packed with another tokenizer.
    #[error(
        "{}: packed with tokenizer {found}, but the given tokenizer is {expected}; use the tokenizer that packed the file",
        path.display()
    )]
    TokenizerDiffers {
        /// The pbin.
        path: PathBuf,
        /// Fingerprint in the file.
        found: String,
        /// Fingerprint of the tokenizer that the caller passed.
        expected: String,
    },
    /// An error in a token file of another format than pbin.
    #[error(transparent)]
    Formats(packtok_formats::Error),
}

impl From<packtok_corpus::Error> for Error {
    fn from(error: packtok_corpus::Error) -> Self {
        match error {
            packtok_corpus::Error::Io { path, source } => Self::Io { path, source },
            #[cfg(feature = "remote")]
            packtok_corpus::Error::Store(error) => Self::Store(error),
            packtok_corpus::Error::Jobs(error) => error.into(),
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
            error => Self::Formats(error),
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
pub struct EnginesDiffer {
    /// The tokenizer.
    pub tokenizer: String,
    /// The record of the corpus.
    pub location: Location,
    /// Index of the first differing token, from 0.
    pub token: u64,
    /// The engine of the tokenizer.
    pub engine: &'static str,
    /// The id of `engine`; `None` past the end of its ids.
    pub found: Option<u32>,
    /// The engine it is compared with.
    pub oracle: &'static str,
    /// The id of `oracle`; `None` past the end of its ids.
    pub expected: Option<u32>,
    /// The text at that position.
    pub text: String,
}

/// Formats an id for a message.
fn describe_id(id: Option<u32>) -> String {
    id.map_or_else(
        || "the end of the document".to_owned(),
        |id| format!("id {id}"),
    )
}
