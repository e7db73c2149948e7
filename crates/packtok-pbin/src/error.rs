//! Everything that can be wrong with a pbin, a raw index or a publication.
//!
//! Variants hold data; the text names the path first, then what, where, found and expected, then the
//! remedy. A cause stands in `source` and is not repeated in the message.

use std::io;
use std::path::{Path, PathBuf};

use crate::fault::{Checked, PickleFault, TrailerFault};

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A pbin, a raw index or a publication that cannot be as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to read or write.
    #[error("{}: I/O error", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The destination's name is taken.
    #[error("{}: file already exists; choose another path, or allow it to be replaced", path.display())]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// The progress callback asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A destination without a file name, such as `/` or `..`.
    #[error("{}: path has no file name", path.display())]
    NoFileName {
        /// The destination.
        path: PathBuf,
    },
    /// A folder, FIFO, socket or device where a file is needed.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// What was to be opened.
        path: PathBuf,
    },

    /// No room for the header.
    #[error("{}: file is {actual} bytes, shorter than the 12-byte header", path.display())]
    TooShort {
        /// The pbin.
        path: PathBuf,
        /// Bytes of the file.
        actual: u64,
    },
    /// A token width that no pbin has.
    #[error("{}: header at byte 8 gives {found} bytes per token, expected 1, 2 or 4; this is not a pbin", path.display())]
    TokenWidth {
        /// The pbin.
        path: PathBuf,
        /// The header's token width.
        found: u32,
    },
    /// Data that ends inside a token.
    #[error("{}: data segment of {data_bytes} bytes is not a whole number of {width}-byte tokens", path.display())]
    PartialToken {
        /// The pbin.
        path: PathBuf,
        /// Bytes of the data segment by the header.
        data_bytes: u64,
        /// Bytes of one token.
        width: u64,
    },
    /// A file that ends inside its data.
    #[error(
        "{}: header specifies {data_bytes} data bytes, file has {file_bytes} bytes in total; the file is truncated or the header is wrong",
        path.display()
    )]
    DataTruncated {
        /// The pbin.
        path: PathBuf,
        /// Bytes of the data segment by the header.
        data_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An index that is no pickled list of pairs.
    #[error("{}: index at byte {offset}: {fault}", path.display())]
    Pickle {
        /// The pbin or raw index.
        path: PathBuf,
        /// File offset of the opcode at fault.
        offset: u64,
        /// What is wrong with it.
        fault: PickleFault,
    },
    /// Bytes behind the index that are no trailer.
    #[error(
        "{}: index ends at byte {offset}, but the {bytes} bytes after it are not a trailer; the file is truncated or damaged",
        path.display()
    )]
    BytesAfterIndex {
        /// The pbin or raw index.
        path: PathBuf,
        /// File offset of the first byte behind the index.
        offset: u64,
        /// How many bytes follow.
        bytes: u64,
    },
    /// Documents that are not back to back.
    #[error(
        "{}: document {document} starts at data byte {found}, expected {expected}, the end of the previous document; the index is wrong",
        path.display()
    )]
    DocumentStart {
        /// The pbin.
        path: PathBuf,
        /// Number of the document.
        document: u64,
        /// Its start by the index.
        found: u64,
        /// Its start if documents were back to back.
        expected: u64,
    },
    /// Documents that do not cover the data.
    #[error("{}: documents end at data byte {found}, data segment ends at {expected}", path.display())]
    DocumentsEnd {
        /// The pbin.
        path: PathBuf,
        /// Where the last document ends.
        found: u64,
        /// Where the data ends.
        expected: u64,
    },
    /// A document that cannot be where the index says.
    #[error(
        "{}: document {document} spans data bytes {start}..{stop}, expected whole {width}-byte tokens within 0..{data_bytes}",
        path.display()
    )]
    DocumentSpan {
        /// The pbin.
        path: PathBuf,
        /// Number of the document.
        document: u64,
        /// Its first byte.
        start: u64,
        /// The byte after its last.
        stop: u64,
        /// Bytes of one token.
        width: u64,
        /// Bytes of the data segment.
        data_bytes: u64,
    },
    /// A trailer that is not as its own numbers say.
    #[error("{}: trailer at byte {offset}: {fault}", path.display())]
    Trailer {
        /// The pbin.
        path: PathBuf,
        /// File offset of what is at fault.
        offset: u64,
        /// What is wrong with it.
        fault: TrailerFault,
    },
    /// A JSON section that is no JSON of the known shape.
    #[error("{}: {section} at byte {offset}: not the expected JSON", path.display())]
    Json {
        /// The pbin.
        path: PathBuf,
        /// Name of the section.
        section: &'static str,
        /// File offset of the JSON document.
        offset: u64,
        /// What the JSON parser said.
        source: serde_json::Error,
    },
    /// Bytes that are no longer what was written.
    #[error(
        "{}: {what} at bytes {start}..{stop}: CRC32C is {found:08x}, expected {expected:08x}; the file is damaged",
        path.display()
    )]
    Checksum {
        /// The pbin.
        path: PathBuf,
        /// What was checked.
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
    /// Index and trailer that give a document two places.
    #[error(
        "{}: document {document} spans data bytes {pickled_start}..{pickled_stop} in the index, but {start}..{stop} in the trailer",
        path.display()
    )]
    IndexDisagrees {
        /// The pbin.
        path: PathBuf,
        /// Number of the document.
        document: u64,
        /// Its first byte by the index.
        pickled_start: u64,
        /// The byte after its last by the index.
        pickled_stop: u64,
        /// Its first byte by the trailer.
        start: u64,
        /// The byte after its last by the trailer.
        stop: u64,
    },
    /// An index that is right but not written as a writer writes it.
    #[error(
        "{}: index differs at byte {offset} from the encoding of its documents; the file was modified",
        path.display()
    )]
    IndexBytes {
        /// The pbin.
        path: PathBuf,
        /// The first byte that differs, from the start of the file.
        offset: u64,
    },
    /// Two numbers that must be equal and are not.
    #[error("{}: {what} is {found}, expected {expected}", path.display())]
    Count {
        /// The pbin.
        path: PathBuf,
        /// What was counted.
        what: &'static str,
        /// The number there.
        found: u64,
        /// The number it must be.
        expected: u64,
    },

    /// A document number past the end.
    #[error("{}: no document {document}, file has {documents}", path.display())]
    NoSuchDocument {
        /// The pbin.
        path: PathBuf,
        /// Number asked for.
        document: u64,
        /// Documents there are.
        documents: u64,
    },
    /// A token range past the end or backwards.
    #[error("{}: no tokens {start}..{stop}, file has {tokens}", path.display())]
    NoSuchTokens {
        /// The pbin.
        path: PathBuf,
        /// First token asked for.
        start: u64,
        /// Token after the last asked for.
        stop: u64,
        /// Tokens there are.
        tokens: u64,
    },

    /// Documents whose lengths do not add up to the data given.
    #[error("{}: documents have {found} bytes in total, but {expected} bytes of data were given", path.display())]
    AppendedBytes {
        /// The destination.
        path: PathBuf,
        /// Sum of the lengths.
        found: u64,
        /// Bytes given.
        expected: u64,
    },
    /// A document to write that ends inside a token.
    #[error("{}: document {document} of {bytes} bytes is not a whole number of {width}-byte tokens", path.display())]
    AppendedTokens {
        /// The destination.
        path: PathBuf,
        /// Number the document would have had.
        document: u64,
        /// Its bytes.
        bytes: u64,
        /// Bytes of one token.
        width: u64,
    },
    /// Metadata that is too long to be written.
    #[error("{}: metadata is {bytes} bytes, at most 16777216 are allowed", path.display())]
    MetadataTooLarge {
        /// The destination.
        path: PathBuf,
        /// Bytes of the metadata's JSON.
        bytes: u64,
    },

    /// A join of nothing.
    #[error("{}: no parts to join; give at least one", path.display())]
    NoParts {
        /// The destination.
        path: PathBuf,
    },
    /// A part that would be overwritten by the result.
    #[error("{}: file is both a part and the output of the join; choose another output", path.display())]
    PartIsOutput {
        /// The part.
        path: PathBuf,
    },
    /// Parts of different token widths.
    #[error(
        "{}: tokens are {found} bytes wide, in {} they are {expected}; pack both with the same tokenizer",
        path.display(), first.display()
    )]
    PartWidth {
        /// The part.
        path: PathBuf,
        /// Its width.
        found: u64,
        /// The part it is compared with.
        first: PathBuf,
        /// That part's width.
        expected: u64,
    },
    /// A part of which nobody knows what its ids mean.
    #[error("{}: file does not record which tokenizer packed it; give that tokenizer to confirm it", path.display())]
    PartTokenizerUnknown {
        /// The part.
        path: PathBuf,
    },
    /// Parts whose ids or options mean different things.
    #[error(
        "{}: {what} is {found}, in {} it is {expected}; pack all parts with the same options",
        path.display(), first.display()
    )]
    PartDiffers {
        /// The part.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// Its value there.
        found: String,
        /// The part it is compared with.
        first: PathBuf,
        /// Its value there.
        expected: String,
    },
    /// A part whose tokenizer is not the one that the user vouched with.
    #[error("{}: tokenizer fingerprint is {found:?}, expected {expected:?}, that of the given tokenizer", path.display())]
    VouchedDiffers {
        /// The part.
        path: PathBuf,
        /// The part's fingerprint.
        found: String,
        /// The fingerprint vouched for.
        expected: String,
    },
}

impl Error {
    /// A closure that turns an I/O error at `path` into [`Error::Io`].
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.into(),
            source,
        }
    }
}

/// An error and its causes, joined by `: `.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
