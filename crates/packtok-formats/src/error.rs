//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use crate::mds::fault::{EncodingFault, SampleFault};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a token file or a folder of samples cannot be read or written.
///
/// The name of a variant about one format contains the name of the format.
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
    /// An error of a pbin, or a file that cannot be mapped or published.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// The length is not a multiple of the token width.
    #[error(
        "{}: the file is {bytes} bytes, which is no whole number of tokens of {width} bytes; the file is truncated, or its tokens have another width",
        path.display()
    )]
    RawPartialToken {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        bytes: u64,
        /// Bytes of a token.
        width: u64,
    },
    /// A range of tokens is not within the file.
    #[error("{}: tokens {start}..{stop} do not exist, the file has {num_tokens}", path.display())]
    NoSuchTokens {
        /// The file.
        path: PathBuf,
        /// Start of the range.
        start: u64,
        /// End of the range.
        stop: u64,
        /// Tokens of the file.
        num_tokens: u64,
    },
    /// A range of tokens is not within a raw file, of which others say how long it is.
    #[error("{}: tokens {start}..{stop} do not exist, the file has {num_tokens}", path.display())]
    NoSuchRawTokens {
        /// The file.
        path: PathBuf,
        /// Start of the range.
        start: u64,
        /// End of the range.
        stop: u64,
        /// Tokens of the file.
        num_tokens: u64,
    },
    /// The requested document does not exist.
    #[error("{}: document {document} does not exist, the file has {num_documents}", path.display())]
    NoSuchDocument {
        /// The file.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Documents of the file.
        num_documents: u64,
    },
    /// A file of another format has bytes that its writers do not write.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// The tokens end elsewhere than the index says.
    #[error(
        "{}: the file has {found} bytes; expected {expected}, the end of the last document in {}; {}",
        path.display(), index.display(),
        if found < expected { "the file is truncated" } else { "the files do not belong together" }
    )]
    DataLength {
        /// The file of the tokens.
        path: PathBuf,
        /// The file of the documents.
        index: PathBuf,
        /// Bytes of the file.
        found: u64,
        /// Bytes that the index implies.
        expected: u64,
    },
    /// A loss mask of other tokens.
    #[error(
        "{}: the loss mask has {found} bytes; expected {expected}, one for each token of {}; the files do not belong together",
        path.display(), data.display()
    )]
    MaskLength {
        /// The file of the mask.
        path: PathBuf,
        /// The file of the tokens.
        data: PathBuf,
        /// Bytes of the mask.
        found: u64,
        /// Number of tokens.
        expected: u64,
    },
    /// A document has more tokens than a sequence of Megatron's can have.
    #[error(
        "{}: document {document} has {tokens} tokens; expected at most 2147483647, the longest sequence of Megatron's files; cut the document, or convert to another format",
        path.display()
    )]
    MegatronDocumentTooLong {
        /// The index that would be written.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Its number of tokens.
        tokens: u64,
    },
    /// The requested document does not exist; a raw file has only document 0.
    #[error("{}: document {document} does not exist, the file does not record any", path.display())]
    NoSuchRawDocument {
        /// The file.
        path: PathBuf,
        /// The document.
        document: u64,
    },
    /// The file does not start with the magic bytes of NPY.
    #[error("{}: the file is not an NPY file: it does not start with the bytes \\x93NUMPY", path.display())]
    NotNpy {
        /// The file.
        path: PathBuf,
    },
    /// The file is a pickle.
    #[error(
        "{}: the file is a pickle and not an NPY array; packtok never loads pickles, because loading one can run code; save a plain integer array with numpy.save",
        path.display()
    )]
    NpyIsPickle {
        /// The file.
        path: PathBuf,
    },
    /// An unknown version of the format.
    #[error("{}: the NPY header has version {major}.{minor}; expected 1.0, 2.0 or 3.0", path.display())]
    NpyVersion {
        /// The file.
        path: PathBuf,
        /// The major number of the version.
        major: u8,
        /// The minor number of the version.
        minor: u8,
    },
    /// The file ends within its header.
    #[error("{}: the file has {found} bytes, and its NPY header has {expected}; the file is truncated", path.display())]
    NpyHeaderTruncated {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        found: u64,
        /// Length of the header in bytes.
        expected: u64,
    },
    /// The header does not describe an array.
    #[error("{}: the NPY header is damaged at byte {offset}: expected {expected}", path.display())]
    NpyHeaderText {
        /// The file.
        path: PathBuf,
        /// Position in the file.
        offset: u64,
        /// The expected syntax.
        expected: &'static str,
    },
    /// An array of Python objects.
    #[error(
        "{}: the NPY header declares an object array (dtype {descr:?}), whose elements are pickled Python objects; packtok never loads pickles, because loading one can run code; save a plain integer array",
        path.display()
    )]
    NpyObjectArray {
        /// The file.
        path: PathBuf,
        /// The dtype as it is in the header.
        descr: String,
    },
    /// An array of records.
    #[error("{}: the NPY header declares a structured dtype; expected a plain integer dtype such as \"<i8\" or \"<u4\"", path.display())]
    NpyStructured {
        /// The file.
        path: PathBuf,
    },
    /// Elements of this dtype cannot be token ids.
    #[error("{}: the array has dtype {descr:?}; expected one of \"<i8\", \"<u4\", \"<u8\" and \"<i4\"", path.display())]
    NpyElementType {
        /// The file.
        path: PathBuf,
        /// The dtype as it is in the header.
        descr: String,
    },
    /// A dtype too narrow for the counts.
    #[error(
        "{}: the array has dtype {descr:?}, too narrow: the number of documents and their lengths are elements of the same array; expected one of \"<i8\", \"<u4\", \"<u8\" and \"<i4\"",
        path.display()
    )]
    NpyTooNarrow {
        /// The file.
        path: PathBuf,
        /// The dtype as it is in the header.
        descr: String,
    },
    /// Floating-point numbers, other than the file without documents.
    #[error(
        "{}: the array has {elements} elements of dtype float64; only [0.], which CEPE's scripts save for an empty file, is accepted as floating-point numbers",
        path.display()
    )]
    NpyFloat {
        /// The file.
        path: PathBuf,
        /// Number of elements.
        elements: u64,
    },
    /// An array in Fortran order.
    #[error("{}: the array is in Fortran order; expected a one-dimensional array in C order", path.display())]
    NpyFortranOrder {
        /// The file.
        path: PathBuf,
    },
    /// The array does not have exactly one dimension.
    #[error("{}: the array has {dimensions} dimensions; expected 1", path.display())]
    NpyDimensions {
        /// The file.
        path: PathBuf,
        /// Number of dimensions.
        dimensions: usize,
    },
    /// The elements do not fill the file.
    #[error(
        "{}: the NPY header declares {elements} elements of {width} bytes, which end at byte {expected}, but the file has {found}; {}",
        path.display(), if found < expected { "the file is truncated" } else { "there are bytes after the array" }
    )]
    NpyFileLength {
        /// The file.
        path: PathBuf,
        /// Number of elements.
        elements: u64,
        /// Bytes of one element.
        width: u64,
        /// Length of the file that the header implies.
        expected: u128,
        /// Length of the file.
        found: u128,
    },
    /// The elements are not aligned in the file.
    #[error("{}: the NPY header has {header_bytes} bytes, not a multiple of {width}, so that the elements are not aligned; save the array again with numpy.save", path.display())]
    NpyMisaligned {
        /// The file.
        path: PathBuf,
        /// Length of the header in bytes.
        header_bytes: u64,
        /// Bytes of an element.
        width: u64,
    },
    /// The number of documents is missing or impossible.
    #[error(
        "{}: the first element, the number of documents, is {found}, but the array has {elements} elements; the file is damaged or has another layout than [n][len_1 … len_n][d1] … [dn]; set --format (format) to npy if it has only tokens",
        path.display()
    )]
    NpyNumDocuments {
        /// The file.
        path: PathBuf,
        /// The first element; `None` if the array is empty.
        found: ElementValue,
        /// Number of elements.
        elements: u64,
    },
    /// The length of a document is impossible.
    #[error(
        "{}: document {document} has length {found} (element {element}), but {left} elements are left; the file is damaged; set --format (format) to npy if it has only tokens",
        path.display()
    )]
    NpyDocumentLength {
        /// The file.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Position of the length in the array.
        element: u64,
        /// The length.
        found: ElementValue,
        /// Elements that no earlier document has.
        left: u64,
    },
    /// The lengths of the documents do not sum to the number of ids.
    #[error("{}: the lengths of the {documents} documents sum to {sum}, but the array has {tokens} ids; the file is damaged; set --format (format) to npy if it has only tokens", path.display())]
    NpyLengths {
        /// The file.
        path: PathBuf,
        /// Number of documents.
        documents: u64,
        /// Sum of their lengths.
        sum: u64,
        /// Ids in the array.
        tokens: u64,
    },
    /// An id does not fit in 32 bits.
    #[error("{}: token {token} (element {element} of the array) is {id}; expected an id in 0..=4294967295", path.display())]
    NpyId {
        /// The file.
        path: PathBuf,
        /// Position among the tokens.
        token: u64,
        /// Position in the array.
        element: u64,
        /// The value of the element.
        id: ElementValue,
    },
    /// A number exceeds the type of the elements.
    #[error("{}: {what} is {found}, which does not fit in the elements' dtype {dtype}; use int64", path.display())]
    NpyDoesNotFit {
        /// The file.
        path: PathBuf,
        /// The name of the number.
        what: &'static str,
        /// The number.
        found: u64,
        /// The dtype.
        dtype: &'static str,
    },
    /// The 32-bit copy of larger ids cannot be written.
    #[error(
        "{}: cannot write the 32-bit copy of its ids in the folder for temporary files, {}; free space there, set TMPDIR, or convert the file with packtok convert",
        path.display(), folder.display()
    )]
    NarrowedCopy {
        /// The file.
        path: PathBuf,
        /// The folder for temporary files.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Documents that were searched cannot be kept.
    #[error(
        "{}: cannot write the ends of its documents in the folder for temporary files, {}; free space there, or set TMPDIR",
        path.display(), folder.display()
    )]
    TemporaryIndex {
        /// The file.
        path: PathBuf,
        /// The folder for temporary files.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has another format than the caller says.
    #[error("{}: the file has the format {found}, expected {expected}; leave out --format (format)", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The name of the format of the file.
        found: &'static str,
        /// The name of the format that the caller says.
        expected: &'static str,
    },
    /// The file records another type of ids than the caller says.
    #[error(
        "{}: records {found} ids; expected {expected}, as --input-dtype (input_dtype) says; remove that option",
        path.display()
    )]
    OtherDtype {
        /// The file.
        path: PathBuf,
        /// The type in the file.
        found: &'static str,
        /// The type that the caller says.
        expected: &'static str,
    },
    /// The type that the caller says is not one of ids.
    #[error("{}: --input-dtype (input_dtype) is {dtype}; expected uint8, uint16, uint32, int32, uint64 or int64", path.display())]
    DtypeOfNoIds {
        /// The file.
        path: PathBuf,
        /// The type.
        dtype: &'static str,
    },
    /// The index of a folder of litdata describes chunks that cannot be read.
    #[error("{}: {reason}", path.display())]
    LitdataIndex {
        /// The index.
        path: PathBuf,
        /// The fault, and its remedy.
        reason: String,
    },
    /// A chunk of litdata would be larger than the positions in it can say.
    #[error(
        "{}: the chunk has {found} bytes; expected at most 4294967295; set --max-tokens (max_tokens) to fewer tokens, or cut the documents",
        path.display()
    )]
    LitdataChunkTooLarge {
        /// The chunk.
        path: PathBuf,
        /// Its bytes.
        found: u64,
    },
    /// A file that has no known format, and a name as files without a header have it.
    #[error("{reason}; if the file has only tokens, set --input-dtype (input_dtype), as uint16")]
    NoKnownFormat {
        /// The reason why it is no pbin, with the path.
        reason: String,
    },
    /// The type of the ids of a file without a header is not known.
    #[error(
        "{}: the file has only tokens and does not record their type; set --input-dtype (input_dtype), as uint16",
        path.display()
    )]
    UnknownDtype {
        /// The file.
        path: PathBuf,
    },
    /// The caller says where documents start, but the format records it.
    #[error("{}: a {format} file records its documents; remove --boundaries (boundaries)", path.display())]
    BoundariesAreRecorded {
        /// The file.
        path: PathBuf,
        /// The name of its format.
        format: &'static str,
    },
    /// A Parquet or Arrow file has no documents that can be read.
    #[error("{}: {reason}", path.display())]
    TableRows {
        /// The file.
        path: PathBuf,
        /// The fault, and its remedy.
        reason: String,
    },
    /// A number in a Parquet or Arrow file is no id.
    #[error("{}: token {token} of row {row} is {id}; expected an id in 0..=4294967295", path.display())]
    RowId {
        /// The file.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// Position in the row.
        token: u64,
        /// The number.
        id: i128,
    },
    /// The header of an `.bin` file of llm.c can only count so many tokens.
    #[error(
        "{}: {tokens} tokens; expected at most 2147483647, which its header can count; convert to several files with --max-tokens (max_tokens)",
        path.display()
    )]
    LlmCTooLong {
        /// The file that would be written.
        path: PathBuf,
        /// Number of tokens.
        tokens: u64,
    },
    /// `index.json` or a marker is no JSON of the expected form.
    #[error("{}: {what} is not readable", path.display())]
    MdsJson {
        /// The file.
        path: PathBuf,
        /// The expected content of the file.
        what: &'static str,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// `index.json` or a marker is too large to be read.
    #[error("{}: the file is {bytes} bytes, expected at most {most}", path.display())]
    MdsJsonTooLarge {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The version of an index or a marker.
    #[error("{}: version is {found}, expected {expected}", path.display())]
    MdsVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The version that is read.
        expected: u64,
    },
    /// Shards of another format that mosaicml-streaming can read.
    #[error("{}: shard {shard} has format {found:?}, expected \"mds\"", path.display())]
    MdsFormat {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// Format of the shard.
        found: String,
    },
    /// The lists that describe the columns do not match.
    #[error(
        "{}: shard {shard} has {names} column names, {encodings} encodings and {sizes} sizes, expected equal numbers of at least 1",
        path.display()
    )]
    MdsColumnLists {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// Number of names.
        names: usize,
        /// Number of encodings.
        encodings: usize,
        /// Number of sizes.
        sizes: usize,
    },
    /// The size of a column differs from the size of its encoding.
    #[error("{}: column {column:?} has {}, expected {} for encoding {encoding:?}", path.display(), size(*found), size(*expected))]
    MdsColumnSize {
        /// The index.
        path: PathBuf,
        /// The column.
        column: String,
        /// Encoding of the column.
        encoding: String,
        /// The size in the index.
        found: Option<u64>,
        /// The size of the encoding.
        expected: Option<u64>,
    },
    /// A column has an encoding that cannot be used.
    #[error("{}column {column:?} has encoding {encoding:?}", prefix(path))]
    MdsEncoding {
        /// The index; empty for a folder that is written.
        path: PathBuf,
        /// The column.
        column: String,
        /// The encoding.
        encoding: String,
        /// The fault of the encoding.
        #[source]
        source: EncodingFault,
    },
    /// A file name in an index that may lie outside of its folder.
    #[error("{}: shard {shard} is in the file {found:?}, expected a file below the index's folder", path.display())]
    MdsBasename {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// The name.
        found: String,
    },
    /// A shard has a compression but no compressed file, or the reverse.
    #[error("{}: shard {shard} has {} and {} compressed file", path.display(), compression.as_ref().map_or("no compression".to_owned(), |name| format!("compression {name:?}")), if *has_file { "a" } else { "no" })]
    MdsCompressedFile {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// The compression.
        compression: Option<String>,
        /// Whether the index lists a compressed file.
        has_file: bool,
    },
    /// A shard has more samples than positions of 32 bits allow.
    #[error("{}: shard {shard} has {found} samples, expected fewer than 2^32", path.display())]
    MdsTooManySamples {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// Number of samples.
        found: u64,
    },
    /// The size of a file differs from the size in the index.
    #[error("{}: the file is {found} bytes, the index says {expected}; it is truncated or belongs to another index", path.display())]
    MdsFileBytes {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// The size in the index.
        expected: u64,
    },
    /// The number of samples in a file differs from the number in the index.
    #[error("{}: the file has {found} samples, the index says {expected}; it belongs to another index", path.display())]
    MdsNumSamples {
        /// The file.
        path: PathBuf,
        /// Number of samples in the file.
        found: u64,
        /// Number of samples in the index.
        expected: u64,
    },
    /// A shard file is too short for its positions.
    #[error("{}: the file is {found} bytes, its positions alone need {expected}; it is truncated", path.display())]
    MdsTooShort {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// Bytes before the first sample at least.
        expected: u64,
    },
    /// The position of a sample is not within the file's samples.
    #[error("{}: sample {sample} is at bytes {start}..{stop}, expected a range within {first}..{file_bytes}", path.display())]
    MdsPosition {
        /// The file.
        path: PathBuf,
        /// Number of the sample in the file.
        sample: u64,
        /// Offset of the first byte of the sample.
        start: u64,
        /// The end of its bytes.
        stop: u64,
        /// The earliest position of a sample.
        first: u64,
        /// Size of the file.
        file_bytes: u64,
    },
    /// A column of a sample is damaged.
    #[error("{}: sample {sample}, column {column:?}: {fault}", path.display())]
    MdsSample {
        /// The file.
        path: PathBuf,
        /// Number of the sample in the file.
        sample: u64,
        /// The column.
        column: String,
        /// The fault of the column.
        fault: Box<SampleFault>,
    },
    /// There is no such sample.
    #[error("{}: sample {sample} does not exist, there are {num_samples}", path.display())]
    NoSuchMdsSample {
        /// The file or folder.
        path: PathBuf,
        /// The number of the sample.
        sample: u64,
        /// Number of samples.
        num_samples: u64,
    },
    /// A hash of a file differs from the hash in the index.
    #[error("{}: {algorithm} is {found}, the index says {expected}; the file is damaged", path.display())]
    MdsHashDiffers {
        /// The file.
        path: PathBuf,
        /// The hash function.
        algorithm: &'static str,
        /// The hash of the file.
        found: String,
        /// The hash in the index.
        expected: String,
    },
    /// A file has no hash that can be checked.
    #[error("{}: the index has no sha256 or xxh64 of the file; write it with hashes, or remove verify", path.display())]
    MdsNoHash {
        /// The file.
        path: PathBuf,
    },
    /// packtok does not read this compression.
    #[error("{}: the compression is {found:?}, expected zstd; decompress the shards with mosaicml-streaming", path.display())]
    MdsCodec {
        /// The file.
        path: PathBuf,
        /// The compression.
        found: String,
    },
    /// Compressed data is damaged.
    #[error("{}: the file cannot be decompressed", path.display())]
    MdsDamagedCompression {
        /// The file.
        path: PathBuf,
        /// The error of the decompressor.
        source: io::Error,
    },
    /// The size of the decompressed data differs from the size in the index.
    #[error("{}: decompressed, the file has {}{found} bytes, the index says {expected}", path.display(), if found > expected { "at least " } else { "" })]
    MdsDecompressedBytes {
        /// The file.
        path: PathBuf,
        /// Bytes that were decompressed.
        found: u64,
        /// The size in the index.
        expected: u64,
    },
    /// The size limit exceeds positions of 32 bits.
    #[error("size_limit is {found}, expected at least 1 and less than 2^32")]
    MdsSizeLimit {
        /// The limit.
        found: u64,
    },
    /// The requested hash function is not supported.
    #[error("hashes: {found:?} is unknown, expected \"sha256\" or \"xxh64\"")]
    MdsUnknownHash {
        /// The name.
        found: String,
    },
    /// The requested compression is not supported.
    #[error(
        "compression is {found:?}, expected \"zstd\" or \"zstd:LEVEL\" with a level from 1 to 22"
    )]
    MdsUnknownCompression {
        /// The name.
        found: String,
    },
    /// No columns.
    #[error("columns: expected at least one")]
    MdsNoColumns,
    /// The samples of a shard file have no token ids.
    #[error("{}: {reason}", path.display())]
    MdsTokens {
        /// The shard file.
        path: PathBuf,
        /// The fault, and its remedy.
        reason: String,
    },
    /// The wrong number of values for the columns.
    #[error("the sample has {found} values, expected {expected}, one for each column")]
    MdsNumValues {
        /// Number of values.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// A value does not fit its column.
    #[error("column {column:?}: the value is {found}, expected {expected}")]
    MdsValue {
        /// The column.
        column: String,
        /// A description of the value.
        found: String,
        /// A description of the values that the column stores.
        expected: String,
    },
    /// A sample is too large for any shard.
    #[error("{}: a sample has {found} bytes, with which its shard would exceed 2^32 bytes", path.display())]
    MdsSampleTooLarge {
        /// The folder.
        path: PathBuf,
        /// Size of the sample.
        found: u64,
    },
}

// Every function that reads tokens returns this type. A larger one would be copied on each call.
const _: () = assert!(size_of::<Error>() <= 120);

impl Error {
    pub(crate) fn fault(fault: Fault) -> Self {
        Self::Fault(fault.into())
    }

    /// Returns a function that builds an [`Error::Io`] for `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// The value of an element of any integer type. `None`, for an element that does not exist, shows
/// as "missing".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementValue(pub Option<i128>);

impl std::fmt::Display for ElementValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("missing"),
        }
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or("no fixed size".to_owned(), |bytes| format!("size {bytes}"))
}

/// `path` as the start of a message; empty if `path` is empty.
fn prefix(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        String::new()
    } else {
        format!("{}: ", path.display())
    }
}

/// Bytes of a file that contradict its format.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what} is {found} (byte {offset}); expected {expected}; {remedy}", path.display())]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// Position in the file.
    pub offset: u64,
    /// The name of the value.
    pub what: &'static str,
    /// The value.
    pub found: String,
    /// The values that the format allows.
    pub expected: String,
    /// What the reader of the message can do.
    pub remedy: &'static str,
}
