//! The errors of this crate: invalid pbins and raw indexes, failed joins and failed publications.
//!
//! Variants hold data. A message names the path first, then what is wrong, where, what was found
//! and expected, then the remedy. The cause is in `source` and not repeated in the message.

use std::io;
use std::path::{Path, PathBuf};

use crate::fault::{Checked, PickleFault, TrailerFault};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a pbin, a raw index or a publication failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Error {
    #[error("{}: I/O error", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: file already exists; choose another path, or allow it to be replaced", path.display())]
    Exists { path: PathBuf },
    /// The progress callback requested to stop.
    #[error("cancelled")]
    Cancelled,
    /// A destination without a file name, such as `/` or `..`.
    #[error("{}: path has no file name", path.display())]
    NoFileName { path: PathBuf },
    /// A folder, FIFO, socket or device where a file is needed.
    #[error("{}: not a regular file", path.display())]
    NotAFile { path: PathBuf },

    #[error("{}: file is {actual} bytes, shorter than the 12-byte header", path.display())]
    TooShort {
        path: PathBuf,
        /// Bytes of the file.
        actual: u64,
    },
    #[error("{}: header at byte 8 gives {found} bytes per token, expected 1, 2 or 4; this is not a pbin", path.display())]
    TokenWidth { path: PathBuf, found: u32 },
    #[error("{}: data segment of {data_bytes} bytes is not a whole number of {width}-byte tokens", path.display())]
    PartialToken {
        path: PathBuf,
        /// Bytes of the data segment according to the header.
        data_bytes: u64,
        /// Bytes of one token.
        width: u64,
    },
    #[error(
        "{}: header specifies {data_bytes} data bytes, file has {file_bytes} bytes in total; the file is truncated or the header is wrong",
        path.display()
    )]
    DataTruncated {
        path: PathBuf,
        /// Bytes of the data segment according to the header.
        data_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    #[error("{}: index at byte {offset}: {fault}", path.display())]
    Pickle {
        path: PathBuf,
        /// File offset of the invalid opcode.
        offset: u64,
        fault: PickleFault,
    },
    #[error(
        "{}: index ends at byte {offset}, but the {bytes} bytes after it are not a trailer; the file is truncated or damaged",
        path.display()
    )]
    BytesAfterIndex {
        path: PathBuf,
        /// File offset of the first byte after the index.
        offset: u64,
        /// Number of bytes that follow.
        bytes: u64,
    },
    #[error(
        "{}: document {document} starts at data byte {found}, expected {expected}, the end of the previous document; the index is wrong",
        path.display()
    )]
    DocumentStart {
        path: PathBuf,
        document: u64,
        /// Start of the document according to the index.
        found: u64,
        /// The end of the previous document.
        expected: u64,
    },
    #[error("{}: documents end at data byte {found}, data segment ends at {expected}", path.display())]
    DocumentsEnd {
        path: PathBuf,
        /// End of the last document.
        found: u64,
        expected: u64,
    },
    /// The documents of a source are not consecutive.
    #[error(
        "{}: the documents of source {source_index} are not consecutive, since the file was shuffled; read the origin of each document instead",
        path.display()
    )]
    SourceScattered { path: PathBuf, source_index: u64 },
    /// The origin of a document is not encoded as a writer encodes it, or names a source that does
    /// not exist.
    #[error(
        "{}: the origin of document {document} is damaged; packtok verify shows what else is",
        path.display()
    )]
    DamagedOrigin { path: PathBuf, document: u64 },
    /// A document's span is out of range or contains a partial token.
    #[error(
        "{}: document {document} spans data bytes {start}..{stop}, expected whole {width}-byte tokens within 0..{data_bytes}",
        path.display()
    )]
    DocumentSpan {
        path: PathBuf,
        document: u64,
        /// Offset of the first byte of the document.
        start: u64,
        /// The byte after its last.
        stop: u64,
        /// Bytes of one token.
        width: u64,
        /// Bytes of the data segment.
        data_bytes: u64,
    },
    #[error("{}: trailer at byte {offset}: {fault}", path.display())]
    Trailer {
        path: PathBuf,
        /// File offset of the invalid part.
        offset: u64,
        fault: TrailerFault,
    },
    /// A JSON section does not have the expected shape.
    #[error("{}: {section} at byte {offset}: not the expected JSON", path.display())]
    Json {
        path: PathBuf,
        section: &'static str,
        /// File offset of the JSON document.
        offset: u64,
        source: serde_json::Error,
    },
    /// A checksum does not match: the bytes changed after they were written.
    #[error(
        "{}: {what} at bytes {start}..{stop}: CRC32C is {found:08x}, expected {expected:08x}; the file is damaged",
        path.display()
    )]
    Checksum {
        path: PathBuf,
        /// The part that the checksum covers.
        what: Checked,
        /// File offset of the first checked byte.
        start: u64,
        /// File offset after the last checked byte.
        stop: u64,
        /// CRC32C of the bytes.
        found: u32,
        /// CRC32C in the trailer.
        expected: u32,
    },
    /// Index and trailer give a document different spans.
    #[error(
        "{}: document {document} spans data bytes {pickled_start}..{pickled_stop} in the index, but {start}..{stop} in the trailer",
        path.display()
    )]
    IndexDisagrees {
        path: PathBuf,
        document: u64,
        /// Offset of the first byte of the document according to the index.
        pickled_start: u64,
        /// The byte after its last according to the index.
        pickled_stop: u64,
        /// Offset of the first byte of the document according to the trailer.
        start: u64,
        /// The byte after its last according to the trailer.
        stop: u64,
    },
    /// The index is valid but not encoded as a writer encodes it.
    #[error(
        "{}: index differs at byte {offset} from the encoding of its documents; the file was modified",
        path.display()
    )]
    IndexBytes {
        path: PathBuf,
        /// File offset of the first byte that differs.
        offset: u64,
    },
    #[error("{}: {what} is {found}, expected {expected}", path.display())]
    Count {
        path: PathBuf,
        what: &'static str,
        found: u64,
        expected: u64,
    },

    #[error("{}: no document {document}, file has {documents}", path.display())]
    NoSuchDocument {
        path: PathBuf,
        document: u64,
        documents: u64,
    },
    /// A token range is out of range or decreasing.
    #[error("{}: no tokens {start}..{stop}, file has {tokens}", path.display())]
    NoSuchTokens {
        path: PathBuf,
        /// First requested token.
        start: u64,
        /// Token after the last requested one.
        stop: u64,
        tokens: u64,
    },

    /// The lengths of appended documents do not sum to the length of the data.
    #[error("{}: documents have {found} bytes in total, but {expected} bytes of data were given", path.display())]
    AppendedBytes {
        path: PathBuf,
        found: u64,
        /// Bytes of the data.
        expected: u64,
    },
    #[error("{}: document {document} of {bytes} bytes is not a whole number of {width}-byte tokens", path.display())]
    AppendedTokens {
        path: PathBuf,
        document: u64,
        /// Length of the document in bytes.
        bytes: u64,
        /// Bytes of one token.
        width: u64,
    },
    #[error("{}: metadata is {bytes} bytes, at most 16777216 are allowed", path.display())]
    MetadataTooLarge {
        path: PathBuf,
        /// Bytes of the metadata's JSON.
        bytes: u64,
    },

    #[error("{}: no parts to join; give at least one", path.display())]
    NoParts { path: PathBuf },
    #[error("{}: file is both a part and the output of the join; choose another output", path.display())]
    PartIsOutput { path: PathBuf },
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    PartWidth {
        path: PathBuf,
        /// Width of the part.
        found: u64,
        first: PathBuf,
        /// Width of the first part.
        expected: u64,
    },
    /// A part does not name its tokenizer, so the meaning of its ids is unknown.
    #[error("{}: file does not record which tokenizer packed it; give it with --tokenizer (tokenizer) to confirm it", path.display())]
    PartTokenizerUnknown { path: PathBuf },
    /// Parts have different tokenizers or options.
    #[error(
        "{}: {what} is {found}, in {} it is {expected}; pack all parts with the same options",
        path.display(), first.display()
    )]
    PartDiffers {
        path: PathBuf,
        what: &'static str,
        found: String,
        first: PathBuf,
        expected: String,
    },
    /// The tokenizer of a part differs from the tokenizer that the user declared for parts that do
    /// not name theirs.
    #[error("{}: tokenizer fingerprint is {found:?}, expected {expected:?}, that of the given tokenizer", path.display())]
    DeclaredTokenizerDiffers {
        path: PathBuf,
        found: String,
        /// The fingerprint the user specified.
        expected: String,
    },
}

impl Error {
    /// Returns a closure that maps an I/O error at `path` to [`Error::Io`].
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.into(),
            source,
        }
    }
}

/// The message of an error and of its causes, joined by `: `.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        // Some libraries put the text of the cause into their own.
        if !text.ends_with(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        cause = error.source();
    }
    text
}
