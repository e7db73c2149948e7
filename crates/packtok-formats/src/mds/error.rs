//! The errors of this module.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why an MDS folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MdsError {
    /// An I/O operation failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be mapped or published.
    #[error(transparent)]
    File(#[from] packtok_pbin::Error),
    /// `index.json` or a marker is no JSON of the expected form.
    #[error("{}: {what} is not readable", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The expected content of the file.
        what: &'static str,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// `index.json` or a marker is too large to be read.
    #[error("{}: the file is {bytes} bytes, expected at most {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The version of an index or a marker.
    #[error("{}: version is {found}, expected {expected}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The version that is read.
        expected: u64,
    },
    /// Shards of another format that mosaicml-streaming can read.
    #[error("{}: shard {shard} has format {found:?}, expected \"mds\"", path.display())]
    Format {
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
    ColumnLists {
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
    ColumnSize {
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
    #[error("{}column {column:?} has encoding {encoding:?}", shown(path))]
    Encoding {
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
    Basename {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// The name.
        found: String,
    },
    /// A shard has a compression but no compressed file, or the reverse.
    #[error("{}: shard {shard} has {} and {} compressed file", path.display(), compression.as_ref().map_or("no compression".to_owned(), |name| format!("compression {name:?}")), if *has_file { "a" } else { "no" })]
    CompressedFile {
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
    TooManySamples {
        /// The index.
        path: PathBuf,
        /// Number of the shard.
        shard: usize,
        /// Number of samples.
        found: u64,
    },
    /// The size of a file differs from the size in the index.
    #[error("{}: the file is {found} bytes, the index says {expected}; it is truncated or belongs to another index", path.display())]
    Bytes {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// The size in the index.
        expected: u64,
    },
    /// The number of samples in a file differs from the number in the index.
    #[error("{}: the file has {found} samples, the index says {expected}; it belongs to another index", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// Number of samples in the file.
        found: u64,
        /// Number of samples in the index.
        expected: u64,
    },
    /// A shard file is too short for its positions.
    #[error("{}: the file is {found} bytes, its positions alone need {expected}; it is truncated", path.display())]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// Bytes before the first sample at least.
        expected: u64,
    },
    /// The position of a sample is not within the file's samples.
    #[error("{}: sample {sample} is at bytes {start}..{stop}, expected a range within {first}..{file_bytes}", path.display())]
    Position {
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
    Sample {
        /// The file.
        path: PathBuf,
        /// Number of the sample in the file.
        sample: u64,
        /// The column.
        column: String,
        /// The fault of the column.
        fault: SampleFault,
    },
    /// There is no such sample.
    #[error("{}: sample {sample} does not exist, there are {num_samples}", path.display())]
    NoSuchSample {
        /// The file or folder.
        path: PathBuf,
        /// The number of the sample.
        sample: u64,
        /// Number of samples.
        num_samples: u64,
    },
    /// A hash of a file differs from the hash in the index.
    #[error("{}: {algorithm} is {found}, the index says {expected}; the file is damaged", path.display())]
    HashDiffers {
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
    NoHash {
        /// The file.
        path: PathBuf,
    },
    /// packtok does not read this compression.
    #[error("{}: the compression is {found:?}, expected zstd; decompress the shards with mosaicml-streaming", path.display())]
    Codec {
        /// The file.
        path: PathBuf,
        /// The compression.
        found: String,
    },
    /// Compressed data is damaged.
    #[error("{}: the file cannot be decompressed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error of the decompressor.
        source: io::Error,
    },
    /// The size of the decompressed data differs from the size in the index.
    #[error("{}: decompressed, the file has {}{found} bytes, the index says {expected}", path.display(), if found > expected { "at least " } else { "" })]
    DecompressedBytes {
        /// The file.
        path: PathBuf,
        /// Bytes that were decompressed.
        found: u64,
        /// The size in the index.
        expected: u64,
    },
    /// The size limit exceeds positions of 32 bits.
    #[error("size_limit is {found}, expected at least 1 and less than 2^32")]
    SizeLimit {
        /// The limit.
        found: u64,
    },
    /// The requested hash function is not supported.
    #[error("hashes: {found:?} is unknown, expected \"sha256\" or \"xxh64\"")]
    UnknownHash {
        /// The name.
        found: String,
    },
    /// The requested compression is not supported.
    #[error(
        "compression is {found:?}, expected \"zstd\" or \"zstd:LEVEL\" with a level from 1 to 22"
    )]
    UnknownCompression {
        /// The name.
        found: String,
    },
    /// No columns.
    #[error("columns: expected at least one")]
    NoColumns,
    /// The wrong number of values for the columns.
    #[error("the sample has {found} values, expected {expected}, one for each column")]
    Values {
        /// Number of values.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// A value does not fit its column.
    #[error("column {column:?}: the value is {found}, expected {expected}")]
    Value {
        /// The column.
        column: String,
        /// A description of the value.
        found: String,
        /// A description of the values that the column stores.
        expected: String,
    },
    /// A sample is too large for any shard.
    #[error("{}: a sample has {found} bytes, with which its shard would exceed 2^32 bytes", path.display())]
    SampleTooLarge {
        /// The folder.
        path: PathBuf,
        /// Size of the sample.
        found: u64,
    },
}

/// The fault of the encoding of a column.
#[derive(Debug, thiserror::Error)]
pub enum EncodingFault {
    /// Pickles execute code when they are loaded.
    #[error(
        "pickles are refused because reading one can execute code; `packtok sample import` rewrites the columns of number arrays"
    )]
    Pickle,
    /// Images.
    #[error("columns of images are not supported")]
    Image,
    /// No encoding of this format.
    #[error(
        "expected bytes, str, int, ndarray[:dtype[:d1,d2…]], a number type, str_int, str_float, str_decimal or json"
    )]
    Unknown,
    /// The dtype or shape of an array.
    #[error(
        "expected ndarray[:dtype[:d1,d2…]] with an integer or float dtype and dimensions of at least 1"
    )]
    Array,
}

/// The fault of a column of a sample.
#[derive(Debug, thiserror::Error)]
pub enum SampleFault {
    /// The sample ends before the value.
    #[error("needs {needed} bytes, the sample has {left} left")]
    Short {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The sample is longer than its values.
    #[error("{left} bytes follow the last value")]
    Long {
        /// The number of bytes.
        left: u64,
    },
    /// A text is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// An array has a dtype that does not exist.
    #[error("{code} is not the number of a dtype")]
    DtypeCode {
        /// The number.
        code: u8,
    },
    /// An array ends within its shape.
    #[error("the array ends within its shape")]
    Shape,
    /// The number of an array's elements does not match its shape.
    #[error("the array has {found} bytes, its shape {shape:?} of {dtype} needs {}", expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string()))]
    ArrayBytes {
        /// Bytes of the elements.
        found: u64,
        /// Bytes that the shape needs; `None` if they exceed 64 bits.
        expected: Option<u64>,
        /// The shape.
        shape: Vec<u64>,
        /// The dtype.
        dtype: &'static str,
    },
}

impl MdsError {
    /// Returns a function that builds an [`MdsError::Io`] for `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or("no fixed size".to_owned(), |bytes| format!("size {bytes}"))
}

/// `path` as the start of a message; empty if `path` is empty.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        String::new()
    } else {
        format!("{}: ", path.display())
    }
}
