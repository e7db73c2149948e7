//! Everything that can go wrong while files are made, with the data to say so.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why reading, extracting or packing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something; its reason is the source.
    #[error("{}", path.display())]
    Io {
        /// File or folder concerned.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The options of a run do not fit its tokenizer.
    #[error(transparent)]
    Spec(#[from] crate::pack::SpecError),
    /// The list of inputs is empty.
    #[error("no input given; give at least one file, folder or glob")]
    NoInput,
    /// An input is neither a file nor a folder.
    #[error("{}: is a {found}, not a file; give a regular file, a folder or a glob", path.display())]
    NotAFile {
        /// The input.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A folder holds no corpus file.
    #[error(
        "{}: the folder contains no *.jsonl, *.jsonl.gz or *.jsonl.zst file; give the files or a glob",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A glob matches no file.
    #[error("{pattern:?}: no file matches; globs skip hidden files, give those by name")]
    NothingMatches {
        /// The glob.
        pattern: String,
    },
    /// A glob cannot be understood.
    #[error("{pattern:?}: not a valid glob; write [[] for a literal bracket")]
    BadGlob {
        /// The glob.
        pattern: String,
        /// Where and why.
        source: glob::PatternError,
    },
    /// An input is a URL, and this build knows no object stores.
    #[error(
        "an input is a URL, but packtok was built without object-store support; build it with the feature remote"
    )]
    NoStores,
    /// An object store refused something.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// A file is named twice, perhaps through a link.
    #[error(
        "{}: same file as the earlier input {}; give each file once",
        path.display(),
        first.display()
    )]
    DuplicateInput {
        /// The file as named the second time.
        path: PathBuf,
        /// The file as named the first time.
        first: PathBuf,
    },
    /// A source has another length than it had at the start.
    #[error(
        "{}: file changed while it was read: found {found_bytes} bytes, expected {expected_bytes}; run again when no process writes to it",
        path.display()
    )]
    SourceChanged {
        /// The source.
        path: PathBuf,
        /// Its length at the start.
        expected_bytes: u64,
        /// Its length now.
        found_bytes: u64,
    },
    /// Compressed data cannot be decompressed.
    #[error(
        "{}: compressed data is corrupt, truncated or followed by other data near byte {position_bytes} of the file; download the file again or repair it",
        path.display()
    )]
    DamagedCompression {
        /// The source.
        path: PathBuf,
        /// How much of the file the decompressor had taken in.
        position_bytes: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// A zstd frame asks for more memory than is allowed.
    #[error(
        "{}: a zstd frame needs a window larger than 2^{window_log_max} bytes; raise zstd_window_log (at most 31)",
        path.display()
    )]
    ZstdWindow {
        /// The source.
        path: PathBuf,
        /// The limit in force.
        window_log_max: u32,
    },
    /// An index was given for, or asked of, a compressed file.
    #[error(
        "{}: file is compressed, but a raw index needs an uncompressed file; decompress it, or pack it without an index",
        path.display()
    )]
    IndexedCompressed {
        /// The source.
        path: PathBuf,
    },
    /// An entry of an index does not lie in the file.
    #[error(
        "{}: index entry {entry} covers {len_bytes} bytes from byte {offset_bytes}, but the file \
         has {file_bytes} bytes; rebuild the index from this file",
        path.display()
    )]
    IndexEntryOutside {
        /// The source.
        path: PathBuf,
        /// Position of the entry in the index, from 0.
        entry: usize,
        /// Where it starts.
        offset_bytes: u64,
        /// Its length.
        len_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// A jq pattern cannot be compiled.
    #[error("jq pattern {pattern:?}: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: crate::field::PatternError,
    },
    /// A file is something else than JSON lines.
    #[error("{}: is {format}, not JSON lines; {}", path.display(), format.remedy())]
    NotJsonLines {
        /// The source.
        path: PathBuf,
        /// What it is.
        format: crate::corpus::Format,
    },
    /// A line cannot be packed.
    #[error(
        "{}:{line}: byte {offset_bytes}: {reason}; {}",
        path.display(),
        reason.remedy()
    )]
    Document {
        /// The source.
        path: PathBuf,
        /// 1-based number of the line.
        line: u64,
        /// Place of its first byte in the uncompressed source.
        offset_bytes: u64,
        /// What is wrong with it.
        reason: Box<crate::pack::Reason>,
    },
    /// The output is there already.
    #[error("{}: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace", path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// A run ended before its time, and what it has done is kept.
    #[error(
        "{}; finished work is kept next to the output; run the same command again to resume",
        ended_by(source)
    )]
    Kept {
        /// Why it ended.
        source: Box<Error>,
    },
    /// More documents were rejected than are allowed.
    #[error(
        "{}: {fault}{first}; see {}; fix the corpus or the options, {}",
        path.display(),
        rejects.display(),
        fault.remedy()
    )]
    TooManyRejects {
        /// The output that was not made.
        path: PathBuf,
        /// In what way there are too many.
        fault: crate::pack::RejectFault,
        /// Where the first is and what is wrong with it, as the end of a sentence.
        first: String,
        /// The file, or files, that name them.
        rejects: PathBuf,
    },
    /// An index of a file of which every line was left out.
    #[error(
        "{}: nothing was indexed: none of the {rejected} non-blank lines is valid JSON{first}; see {}",
        path.display(),
        rejects.display()
    )]
    NothingIndexed {
        /// The source.
        path: PathBuf,
        /// Lines left out.
        rejected: u64,
        /// Where the first is and what is wrong with it, as the end of a sentence.
        first: String,
        /// The file that names them.
        rejects: PathBuf,
    },
    /// Packing has begun under the name that shards are to be joined under.
    #[error(
        "{}: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again",
        path.display()
    )]
    JournalOfPacking {
        /// The folder of the unfinished run.
        path: PathBuf,
    },
    /// Another process is making the output.
    #[error("{}: {holder} is writing this output; wait for it to finish, or stop it and run this command again", path.display())]
    OutputHeld {
        /// The output.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// Another process has taken the output, for this one was not seen to be alive.
    #[error(
        "{}: another process took over this output because this one appeared dead; let it finish",
        path.display()
    )]
    OutputTaken {
        /// The output.
        path: PathBuf,
    },
    /// An earlier run over the same output was another one.
    #[error(
        "{}: the unfinished run differs from this one: {what} is {found}, expected {expected}; finish it with its own options and inputs, or start over with --restart",
        path.display()
    )]
    JournalDiffers {
        /// The folder of the unfinished run.
        path: PathBuf,
        /// What differs.
        what: String,
        /// How the earlier run had it.
        found: String,
        /// How this run has it.
        expected: String,
    },
    /// The output is a folder, a device or the like, which a file must not replace.
    #[error("{}: the output is a {found}, not a file; choose another path", path.display())]
    OutputNotAFile {
        /// The output.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The output would be written over a source.
    #[error("{}: file is both input and output; choose another output", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The existing output does not say what it was made from.
    #[error(
        "{}: the existing output has no trailer, so its origin cannot be verified; set existing to replace",
        path.display()
    )]
    ExistingUnknown {
        /// The output.
        path: PathBuf,
    },
    /// The existing output was made from something else.
    #[error(
        "{}: the existing output differs from what this run would write: {what} is {found}, expected {expected}; set existing to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As the output has it.
        found: String,
        /// As this run would have it.
        expected: String,
    },
    /// An index was given for more than one source.
    #[error(
        "{}: a raw index belongs to one file, but there are {num_sources} input files; pack them one at a time, or without index_path",
        path.display()
    )]
    IndexForMany {
        /// The index.
        path: PathBuf,
        /// Number of sources.
        num_sources: usize,
    },
    /// The threads could not be started.
    #[error("cannot start the worker threads; lower num_cpus")]
    Threads {
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
    /// A worker panicked; its source is known by its number only.
    #[error("a worker panicked in source {source_index} at byte {offset_bytes}")]
    Panicked {
        /// Position of the source among the sources.
        source_index: usize,
        /// Place of the line in the uncompressed source.
        offset_bytes: u64,
    },
    /// A worker ended before its work did.
    #[error("a worker thread died; this is a bug, please report it")]
    WorkerDied,
    /// A worker panicked.
    #[error(
        "{}: byte {offset_bytes}: packtok panicked on this document; this is a bug, please report it with this line",
        path.display()
    )]
    EnginePanicked {
        /// The source.
        path: PathBuf,
        /// Place of the line in the uncompressed source.
        offset_bytes: u64,
    },
    /// One of many texts, or of many lists of ids, is refused.
    #[error("{argument}[{item}]")]
    Item {
        /// Name of the argument that has it.
        argument: &'static str,
        /// Its position there, from 0.
        item: usize,
        /// What the tokenizer said.
        source: Box<packtok_tokenizer::Error>,
    },
    /// The engine panicked with one of many texts, or lists of ids.
    #[error(
        "{argument}[{item}]: packtok panicked on this item; this is a bug, please report it with the item"
    )]
    ItemPanicked {
        /// Name of the argument that has it.
        argument: &'static str,
        /// Its position there, from 0.
        item: usize,
    },
    /// An id that no token has, to be decoded.
    #[error("ids[{position}] is {found}, expected an id below {vocab_size}")]
    NoSuchId {
        /// Its position among all ids, from 0.
        position: usize,
        /// The id.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// Offsets of lists of ids are out of order.
    #[error(
        "offsets[{position}] is {found}, less than the preceding {before}; offsets must not decrease"
    )]
    OffsetsFall {
        /// Position of the one that is too low, from 0.
        position: usize,
        /// What it is.
        found: usize,
        /// The one before it.
        before: usize,
    },
    /// Offsets of lists of ids go beyond the ids.
    #[error("offsets end at {found}, but there are {num_ids} ids")]
    OffsetsBeyond {
        /// The last offset.
        found: usize,
        /// Number of ids.
        num_ids: usize,
    },
    /// Two engines give a text other ids.
    #[error(transparent)]
    EnginesDiffer(Box<crate::verify::EnginesDiffer>),
    /// The caller asked to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// The file has another token width than the tokenizer asks for.
    #[error(
        "{}: tokens are {found_bytes} bytes wide, but this tokenizer needs {expected_bytes}; use the tokenizer that packed the file",
        path.display()
    )]
    WidthDiffers {
        /// The pbin.
        path: PathBuf,
        /// Its width.
        found_bytes: u64,
        /// The tokenizer's.
        expected_bytes: u64,
    },
    /// A document of the file is not what the corpus gives.
    #[error(
        "{}: document {document} differs from {}:{line} at token {token}: found {}, expected {}",
        path.display(),
        source_path.display(),
        shown_id(*found),
        shown_id(*expected)
    )]
    DocumentDiffers {
        /// The pbin.
        path: PathBuf,
        /// The document, from 0.
        document: u64,
        /// Position of the first differing token in it, from 0.
        token: u64,
        /// The id there; `None` past its end.
        found: Option<u32>,
        /// The id that the corpus gives; `None` past its end.
        expected: Option<u32>,
        /// The source.
        source_path: PathBuf,
        /// 1-based number of the line.
        line: u64,
    },
    /// The corpus gives more documents than the file has.
    #[error(
        "{}: file has {found} documents, but the corpus has one more at {}:{line}",
        path.display(),
        source_path.display()
    )]
    CorpusLonger {
        /// The pbin.
        path: PathBuf,
        /// Its documents.
        found: u64,
        /// The source.
        source_path: PathBuf,
        /// 1-based number of the line of the first document that is not in the file.
        line: u64,
    },
    /// The file has more documents than the corpus gives.
    #[error("{}: file has {found} documents, the corpus has {expected}", path.display())]
    CorpusShorter {
        /// The pbin.
        path: PathBuf,
        /// Its documents.
        found: u64,
        /// The documents of the corpus.
        expected: u64,
    },
    /// An id that the tokenizer does not have.
    #[error(
        "{}: document {document} has id {found} at token {token}, outside the vocabulary of {vocab_size}",
        path.display()
    )]
    IdBeyondVocab {
        /// The pbin.
        path: PathBuf,
        /// The document, from 0.
        document: u64,
        /// Position of the token in it, from 0.
        token: u64,
        /// The id there.
        found: u32,
        /// Highest id + 1.
        vocab_size: u64,
    },
    /// A document that EOD does not close.
    #[error(
        "{}: document {document} ends with {}, expected EOD {eod_id}",
        path.display(),
        shown_id(*found)
    )]
    NoEod {
        /// The pbin.
        path: PathBuf,
        /// The document, from 0.
        document: u64,
        /// Its last id; `None` if it has no token.
        found: Option<u32>,
        /// The id that has to stand there.
        eod_id: u32,
    },
    /// The file was made with another tokenizer.
    #[error(
        "{}: packed with tokenizer {found}, but the given tokenizer is {expected}; use the tokenizer that packed the file",
        path.display()
    )]
    TokenizerDiffers {
        /// The pbin.
        path: PathBuf,
        /// Fingerprint in the file.
        found: String,
        /// Fingerprint of the tokenizer given.
        expected: String,
    },
    /// What is wrong with shards, their plan or their markers.
    #[error(transparent)]
    Shard(#[from] crate::shard::ShardError),
    /// The file format's own errors.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// The tokenizer's own errors.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
}

/// What ended a run that keeps its finished work.
fn ended_by(error: &Error) -> String {
    match error {
        // Its own text says that nothing was written, which is wrong here.
        Error::Cancelled => "interrupted".to_owned(),
        error => error.to_string(),
    }
}

/// An id for a message.
pub(crate) fn shown_id(id: Option<u32>) -> String {
    id.map_or_else(
        || "the end of the document".to_owned(),
        |id| format!("id {id}"),
    )
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
