//! The errors of conversions.

use std::path::PathBuf;

/// The reason why a token file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The file has another format than the caller gives.
    #[error("{}: the file has the format {found}, expected {expected}; leave out --format (format)", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: &'static str,
        /// The format that the caller set.
        expected: &'static str,
    },
    /// The file has no format of the table.
    #[error("{}: raw tokens are not converted; the file records neither documents nor a token width", path.display())]
    NoFormat {
        /// The file.
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
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// The first document that differs.
        document: u64,
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
    Marker {
        /// The marker.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
}
