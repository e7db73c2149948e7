//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use crate::import::pickled::PickleFault;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why token files cannot be reshaped.
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
    /// An error of reading a corpus, of a journal, or of ending early.
    #[error(transparent)]
    Pack(Box<packtok_pack::Error>),
    /// An error of plans, splits and sets of files.
    #[error(transparent)]
    Dataset(Box<packtok_dataset::Error>),
    /// An error of a token file of another format, or of a folder of samples.
    #[error(transparent)]
    Formats(Box<packtok_formats::Error>),
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// The existing output has other bytes than this run would write.
    #[error(
        "{}: the existing output differs from what this run would write, from byte {offset} on; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    ExistingBytesDiffer {
        /// The output.
        path: PathBuf,
        /// Offset of the first difference.
        offset: u64,
    },
    /// The positions of the order would not fit in four bytes.
    #[error(
        "there are {documents} documents to shuffle, expected fewer than 4294967295; shuffle in chunks: packtok data create_shuffled_dataset_chunk or create_shuffled_jsonl_chunk"
    )]
    TooManyDocuments {
        /// Number of documents.
        documents: u64,
    },
    /// There are no chunks.
    #[error("--num-chunks: is 0, expected at least 1")]
    NoChunks,
    /// The chunk does not exist.
    #[error("--chunk-id: is {chunk_id}, expected 0 to {}, since --num-chunks is {num_chunks}", num_chunks - 1)]
    NoSuchChunk {
        /// The chunk.
        chunk_id: u64,
        /// The number of chunks.
        num_chunks: u64,
    },
    /// No file has a document for this chunk.
    #[error(
        "chunk {chunk_id} of {num_chunks} has no documents, since the longest of {num_files} files has {longest}; set --num-chunks to at most {}",
        longest.max(&1)
    )]
    EmptyChunk {
        /// The chunk.
        chunk_id: u64,
        /// The number of chunks.
        num_chunks: u64,
        /// Number of files.
        num_files: usize,
        /// Documents of the longest file.
        longest: u64,
    },
    /// A file of a list does not exist.
    #[error("{}: line {line}: {} does not exist; correct the line, or --input-data-root-path", list.display(), path.display())]
    ListedMissing {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The file.
        path: PathBuf,
    },
    /// A line of a list names no file.
    #[error("{}: line {line}: {text:?} names no file", list.display())]
    ListedNoFile {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The line.
        text: String,
    },
    /// A list is not text.
    #[error("{}: line {line} is not UTF-8; expected one path on each line", list.display())]
    ListNotUtf8 {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// A list names no files.
    #[error("{}: lists no files; expected one path on each line", list.display())]
    ListEmpty {
        /// The list.
        list: PathBuf,
    },
    /// An input is compressed.
    #[error("{}: is compressed with {compression}; decompress it first: its lines cannot be read in any order", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The compression.
        compression: &'static str,
    },
    /// An input is a folder, a device or similar.
    #[error("{}: is not a file; expected a JSONL file", path.display())]
    NotAFile {
        /// The input.
        path: PathBuf,
    },
    /// An input changed between two passes.
    #[error("{}: the file changed while it was read; run the command again when nothing writes to it", path.display())]
    InputChanged {
        /// The file.
        path: PathBuf,
    },
    /// An existing JSONL file cannot be compared with the result, because the order is random.
    #[error(
        "{}: cannot be proven to be the result of this run without a seed; give one, or set --existing (existing) to replace",
        path.display()
    )]
    Unprovable {
        /// The output.
        path: PathBuf,
    },
    /// A number is out of range.
    #[error("{option}: is {found}; expected {expected}")]
    OptionOutOfRange {
        /// The option.
        option: &'static str,
        /// The value of the option.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The requested shard of the retrieval corpus does not exist.
    #[error("SHARD: is {found}; expected 0 to {}", shards.saturating_sub(1))]
    NoSuchRetrievalShard {
        /// The shard.
        found: u64,
        /// Number of shards.
        shards: u64,
    },
    /// A domain without files.
    #[error("domain {domain:?} has no token files; give it files or the proportion 0")]
    DomainWithoutFiles {
        /// The domain.
        domain: String,
    },
    /// There are fewer samples than requested.
    #[error(
        "{side} side of domain {domain:?}: {requested} samples requested, {available} available ({documents} documents, {too_short} of them too short); request fewer, add data, or set --allow-short (allow_short)"
    )]
    TooFewSamples {
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
    SamplesOfOtherPlan {
        /// The folder.
        path: PathBuf,
    },
    /// A finished output.
    #[error("{}: exists; set --existing (existing) to skip or replace, or choose another output", path.display())]
    SamplesExist {
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
    TokenFileChanged {
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
    /// An id exceeds the type of ids that a format has.
    #[error(
        "{}: token {token} of document {document} is {id}, which {dtype} cannot hold; choose another format",
        path.display()
    )]
    IdBeyondType {
        /// The token file.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Position in the document.
        token: u64,
        /// The id.
        id: u32,
        /// The type of the ids.
        dtype: &'static str,
    },
    /// packtok reads the format and does not write it.
    #[error("--to (to): is {format}, which packtok only reads; choose another format")]
    OnlyRead {
        /// The format.
        format: &'static str,
    },
    /// The bytes of an input are not those of the output.
    #[error("{}: the bytes of {found} are not those of {format}, so that a link cannot be the output; leave out --link (link)", path.display())]
    NotLinkable {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: &'static str,
        /// The format of the output.
        format: &'static str,
    },
    /// The output has no room for documents without tokens.
    #[error(
        "{}: document {document} has no tokens, and {format} has no room for that; leave such documents out with packtok reshape --filter \"length > 0\"",
        path.display()
    )]
    EmptyDocument {
        /// The file.
        path: PathBuf,
        /// The number of the document.
        document: u64,
        /// The format of the output.
        format: &'static str,
    },
    /// The declared tokenizer is not that of the ids.
    #[error(
        "{}: {tokenizer} is not the tokenizer of the ids: of {sampled} tokens in a sample, {returned} come back when their text is tokenized again; set --tokenizer (tokenizer) to another one, or leave it out if it is unknown",
        path.display()
    )]
    TokenizerDoesNotFit {
        /// The file.
        path: PathBuf,
        /// The name of the tokenizer.
        tokenizer: String,
        /// Tokens that come back.
        returned: u64,
        /// Tokens of the sample.
        sampled: u64,
    },
    /// The output cannot hold something that the input records.
    #[error(
        "{}: records {name}, which {format} cannot hold; set --accept-loss {name} (accept_loss) to accept that",
        path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// The name of what is lost.
        name: String,
        /// The format of the output.
        format: &'static str,
    },
    /// A dataset has other tokens than the pbin that it was made from.
    #[error(
        "{}: has other tokens than the pbin that it was made from; delete {} to write a pbin without what it keeps",
        path.display(), rest.display()
    )]
    RestDiffers {
        /// The dataset.
        path: PathBuf,
        /// The rest of the pbin.
        rest: PathBuf,
        /// The fault of the pbin that they give together.
        #[source]
        source: Option<Box<packtok_pbin::Error>>,
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
    /// An entry of a list of documents is none of the known kinds.
    #[error(
        "{place}: {text:?} names no document; expected its number, SOURCE:PLACE as packtok cat shows its origin, or sha256: and the hash of its text"
    )]
    UnknownEntry {
        /// The list and the line.
        place: String,
        /// The entry.
        text: String,
    },
    /// There is no such document.
    #[error(
        "--remove (remove): there is no document {number}; the inputs have {documents}, numbered from 0"
    )]
    NoSuchDocument {
        /// The number.
        number: u64,
        /// Number of documents.
        documents: u64,
    },
    /// Hashes of texts need a tokenizer.
    #[error(
        "--remove (remove): hashes of texts need the tokenizer of the ids, which is not beside the files; set --tokenizer (tokenizer)"
    )]
    NoTokenizerForHashes,
    /// A document that was to be left out is in the output.
    #[error(
        "document {document} of the output was to be removed; nothing was written: this is a fault of packtok, please report it"
    )]
    RemovedDocumentLeft {
        /// Number of the document in the output.
        document: u64,
    },
    /// The retrieval corpus needs texts.
    #[error(
        "the retrieval corpus has texts, for which a tokenizer is needed; set --tokenizer (tokenizer), or --retrieval-shards (retrieval_shards) to 0"
    )]
    NoTokenizer,
    /// Token ids cannot be decoded.
    #[error("{}: the tokens from {token} on cannot be decoded", path.display())]
    Undecodable {
        /// The token file.
        path: PathBuf,
        /// The first of the tokens.
        token: u64,
        /// The error of the tokenizer.
        source: Box<packtok_tokenizer::Error>,
    },
    /// Neither a folder nor its subfolders contain an index.
    #[error("{}: no folder with an index.json was found", path.display())]
    NoMdsFolders {
        /// The folder.
        path: PathBuf,
    },
    /// The output exists.
    #[error("{}: the output exists; choose another folder", path.display())]
    ImportExists {
        /// The output.
        path: PathBuf,
    },
    /// The output is within the input.
    #[error("{}: the output is within the input; choose another folder", path.display())]
    OutputWithinInput {
        /// The output.
        path: PathBuf,
    },
    /// Another process writes the output.
    #[error("{}: another process is writing this output; let it finish", path.display())]
    OutputBusy {
        /// The output.
        path: PathBuf,
    },
    /// A pickle contains an object other than number arrays or lists of them.
    #[error("{}: sample {sample}, column {column:?}", path.display())]
    UnsupportedPickle {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The fault of the pickle.
        #[source]
        source: PickleFault,
    },
    /// A value has another type than the values of other samples.
    #[error("{}: sample {sample}, column {column:?}: the value is {found}, in sample 0 it is {expected}", path.display())]
    KindDiffers {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The kind of the value.
        found: String,
        /// The kind in the first sample.
        expected: String,
    },
    /// An id does not fit the requested type.
    #[error("{}: sample {sample}, column {column:?}: id {found} does not fit {dtype}; choose another type with --dtype (dtype)", path.display())]
    ImportedIdTooLarge {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The id.
        found: i128,
        /// The type.
        dtype: &'static str,
    },
    /// A list contains an array with more than one dimension.
    #[error("{}: sample {sample}, column {column:?}: the list has an array with shape {shape:?}, expected one dimension", path.display())]
    RowOfManyDimensions {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A value has no elements; MDS cannot store it.
    #[error("{}: sample {sample}, column {column:?}: the value is empty, which MDS cannot store", path.display())]
    EmptyValue {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
    },
    /// Two columns would have the same name.
    #[error("{}: column {column:?} exists, and the lengths of a list would have the same name", path.display())]
    ColumnExists {
        /// The folder.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// The ids of a file contradict the type that the caller states.
    #[error(
        "{}: read as {stated}, ids reach {largest}; read as {fitting}, they reach {largest_fitting}, which fits the {vocab_size} ids of the tokenizer; set --input-dtype (input_dtype) to {fitting}",
        path.display()
    )]
    DtypeContradicted {
        /// The file.
        path: PathBuf,
        /// The stated type.
        stated: &'static str,
        /// The largest id in it.
        largest: u32,
        /// The vocabulary size.
        vocab_size: u64,
        /// The type that the file has.
        fitting: &'static str,
        /// The largest id in that.
        largest_fitting: u32,
    },
    /// Inputs differ in what their ids mean.
    #[error(
        "{}: the {what} is {found}; expected {expected}, that of {}; convert the files separately",
        paths[0].display(), paths[1].display()
    )]
    OtherMeaning {
        /// The file, and the first file.
        paths: Box<[PathBuf; 2]>,
        /// What differs.
        what: &'static str,
        /// The value of the file.
        found: String,
        /// The value of the first file.
        expected: String,
    },
    /// Several files cannot become one of this format.
    #[error(
        "several files do not become one {format} file; convert each, and join pbins with packtok merge"
    )]
    SeveralInputs {
        /// The name of the format.
        format: &'static str,
    },
    /// Beside the shards of a conversion is one that is not of it.
    #[error("{}: a shard of another conversion, which a trainer would read with the new ones; delete it, or choose another --output (output)", path.display())]
    OtherShard {
        /// The shard.
        path: PathBuf,
    },
    /// The output is the input.
    #[error("{}: the output is the input itself; choose another --output (output)", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The existing output has other documents.
    #[error(
        "{}: the existing file differs from the input in document {document}; set --existing (existing) to replace, or choose another --output (output)",
        path.display()
    )]
    ExistingDocumentDiffers {
        /// The output.
        path: PathBuf,
        /// The first document that differs.
        document: u64,
    },
    /// The existing output has ids of another type than this call writes.
    #[error(
        "{}: has ids of {found}, but this call writes {expected}; set --dtype (dtype), set --existing (existing) to replace, or choose another --output (output)",
        path.display()
    )]
    ExistingDtype {
        /// The output.
        path: PathBuf,
        /// The type in the file.
        found: &'static str,
        /// The type that would be written.
        expected: &'static str,
    },
    /// A part of an output is missing.
    #[error(
        "{}: is missing; write all parts with --shard (shard) first",
        path.display()
    )]
    PartMissing {
        /// The file.
        path: PathBuf,
    },
    /// A part of an output has other documents than this call would write into it.
    #[error(
        "{}: has {} documents and {} tokens, expected {} and {}; give the options that wrote the parts",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    OtherPart {
        /// The file.
        path: PathBuf,
        /// Documents and tokens in the file.
        found: (u64, u64),
        /// Documents and tokens that would be written.
        expected: (u64, u64),
    },
    /// The file was made with another tokenizer.
    #[error(
        "{}: the ids were made with a tokenizer of fingerprint {found}, but the one given has {expected}; give that tokenizer, or none",
        path.display()
    )]
    TokenizerDiffers {
        /// The file.
        path: PathBuf,
        /// Fingerprint of its tokenizer.
        found: String,
        /// Fingerprint of the caller's tokenizer.
        expected: String,
    },
    /// An id of the file is outside the vocabulary of the tokenizer.
    #[error(
        "{}: token {token} of document {document} is {id}, but the tokenizer has {vocab_size} ids; the file was made with another tokenizer",
        path.display()
    )]
    IdBeyondVocab {
        /// The file.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Position in the document.
        token: u64,
        /// The id.
        id: u32,
        /// The vocabulary size.
        vocab_size: u64,
    },
    /// The content of a marker is not a valid marker.
    #[error("{}: the marker is damaged; remove it, or write the file again", path.display())]
    DamagedMarker {
        /// The marker.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
    /// Two files of the corpus would have the same NPY file.
    #[error("{} and {}: both would become {name}; rename one, or leave one out with --ignore (ignore)", first.display(), second.display())]
    SameNpyName {
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
        /// The file that both would become.
        name: String,
    },
    /// A file is not below the base folder of its input.
    #[error(
        "{}: is not below {}, so its place in the output is unknown; set --root (root) to a folder that contains all files",
        path.display(), root.display()
    )]
    NotBelowRoot {
        /// The file.
        path: PathBuf,
        /// The folder.
        root: PathBuf,
    },
    /// A name is not UTF-8.
    #[error("{}: the name is not UTF-8; rename the file", path.display())]
    NameNotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The packed corpus has no origins.
    #[error("{}: the file does not record where its documents came from; remove it and run the same command again", path.display())]
    NoOrigins {
        /// The pbin.
        path: PathBuf,
    },
    /// The packed corpus lacks a file.
    #[error("{}: the file has no documents of {label}; remove it and run the same command again", path.display())]
    NotPacked {
        /// The pbin.
        path: PathBuf,
        /// The file of the corpus.
        label: String,
    },
    /// An existing file without a marker differs from the file that this run would write.
    #[error(
        "{}: the file exists, has no marker, and differs from what this command writes; set --existing (existing) to replace, or choose another --output-dir (output_dir)",
        path.display()
    )]
    ExistingNpyDiffers {
        /// The file.
        path: PathBuf,
    },
    /// A line of the rejects is damaged.
    #[error("{}: a line of the rejects is damaged; remove the file and run the same command again", path.display())]
    DamagedRejects {
        /// The rejects.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
}

impl From<packtok_pack::Error> for Error {
    fn from(error: packtok_pack::Error) -> Self {
        Self::Pack(error.into())
    }
}

impl From<packtok_corpus::Error> for Error {
    fn from(error: packtok_corpus::Error) -> Self {
        Self::from(packtok_pack::Error::from(error))
    }
}

impl From<packtok_jobs::Error> for Error {
    fn from(error: packtok_jobs::Error) -> Self {
        Self::from(packtok_pack::Error::from(error))
    }
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        Self::Formats(error.into())
    }
}

impl From<packtok_dataset::Error> for Error {
    fn from(error: packtok_dataset::Error) -> Self {
        Self::Dataset(error.into())
    }
}

impl Error {
    /// Returns a function that builds an [`Error::Io`] for `path`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
