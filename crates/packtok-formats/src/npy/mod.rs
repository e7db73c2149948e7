//! NPY files of tokenized documents: one array of integers, `[n][len_1 … len_n][d1] … [dn]`.
//!
//! CEPE's scripts and others save a corpus this way, as int64. `header.rs` defines the byte layout
//! of NPY 1.0, 2.0 and 3.0 and only accepts plain one-dimensional arrays: object arrays contain
//! pickles, which are never loaded. `read.rs` and `write.rs` define the layout of the documents.

mod header;
mod read;
mod write;

use std::io;
use std::path::PathBuf;

pub use header::{Element, MAGIC, NpyHeader};
pub use read::NpyFile;
pub use write::{DocumentsWriter, IdType, Written};

/// The reason why an NPY file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
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
    Pickle {
        /// The file.
        path: PathBuf,
    },
    /// An unknown version of the format.
    #[error("{}: the NPY header has version {major}.{minor}; expected 1.0, 2.0 or 3.0", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The major number of the version.
        major: u8,
        /// The minor number of the version.
        minor: u8,
    },
    /// The file ends within its header.
    #[error("{}: the file has {found} bytes, and its NPY header has {expected}; the file is truncated", path.display())]
    HeaderTruncated {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        found: u64,
        /// Length of the header in bytes.
        expected: u64,
    },
    /// The header does not describe an array.
    #[error("{}: the NPY header is damaged at byte {offset}: expected {expected}", path.display())]
    HeaderText {
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
    ObjectArray {
        /// The file.
        path: PathBuf,
        /// The dtype as it is in the header.
        descr: String,
    },
    /// An array of records.
    #[error("{}: the NPY header declares a structured dtype; expected a plain integer dtype such as \"<i8\" or \"<u4\"", path.display())]
    Structured {
        /// The file.
        path: PathBuf,
    },
    /// Elements of this dtype cannot be token ids.
    #[error("{}: the array has dtype {descr:?}; expected one of \"<i8\", \"<u4\", \"<u8\" and \"<i4\"", path.display())]
    ElementType {
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
    TooNarrow {
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
    Float {
        /// The file.
        path: PathBuf,
        /// Number of elements.
        elements: u64,
    },
    /// An array in Fortran order.
    #[error("{}: the array is in Fortran order; expected a one-dimensional array in C order", path.display())]
    FortranOrder {
        /// The file.
        path: PathBuf,
    },
    /// The array does not have exactly one dimension.
    #[error("{}: the array has {dimensions} dimensions; expected 1", path.display())]
    Dimensions {
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
    Length {
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
    Misaligned {
        /// The file.
        path: PathBuf,
        /// Length of the header in bytes.
        header_bytes: u64,
        /// Bytes of an element.
        width: u64,
    },
    /// The number of documents is missing or impossible.
    #[error(
        "{}: the first element, the number of documents, is {found}, but the array has {elements} elements; the file is damaged or has another layout than [n][len_1 … len_n][d1] … [dn]",
        path.display()
    )]
    Count {
        /// The file.
        path: PathBuf,
        /// The first element; `None` if the array is empty.
        found: Shown,
        /// Number of elements.
        elements: u64,
    },
    /// The length of a document is impossible.
    #[error(
        "{}: document {document} has length {found} (element {element}), but {left} elements are left; the file is damaged",
        path.display()
    )]
    DocumentLength {
        /// The file.
        path: PathBuf,
        /// The document.
        document: u64,
        /// Position of the length in the array.
        element: u64,
        /// The length.
        found: Shown,
        /// Elements that no earlier document has.
        left: u64,
    },
    /// The lengths of the documents do not sum to the number of ids.
    #[error("{}: the lengths of the {documents} documents sum to {sum}, but the array has {tokens} ids; the file is damaged", path.display())]
    Lengths {
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
    Id {
        /// The file.
        path: PathBuf,
        /// Position among the tokens.
        token: u64,
        /// Position in the array.
        element: u64,
        /// The value of the element.
        id: Shown,
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
    /// A number exceeds the type of the elements.
    #[error("{}: {what} is {found}, which does not fit in the elements' dtype {dtype}; use int64", path.display())]
    DoesNotFit {
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
    Copy {
        /// The file.
        path: PathBuf,
        /// The folder for temporary files.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file cannot be mapped.
    #[error(transparent)]
    Map(#[from] packtok_pbin::Error),
    /// The system returned an error.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A number of any integer type in a file, for messages. `None` shows as "missing".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown(pub Option<i128>);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("missing"),
        }
    }
}

impl From<i128> for Shown {
    fn from(number: i128) -> Self {
        Self(Some(number))
    }
}
