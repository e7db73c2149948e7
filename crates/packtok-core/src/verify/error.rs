//! What can go wrong here, with the data to say so.

use std::path::PathBuf;

/// Why a pbin, or an engine, is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Two engines give a text other ids.
    #[error(transparent)]
    EnginesDiffer(Box<EnginesDiffer>),
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
}

/// Two engines give a text other ids.
#[derive(Debug, thiserror::Error)]
#[error(
    "{tokenizer}: {}:{line}: token {token} is {} with {engine}, and {} with {oracle}, near {text:?}; please report it with this text",
    source_path.display(),
    shown_id(*found),
    shown_id(*expected)
)]
pub struct EnginesDiffer {
    /// The tokenizer.
    pub tokenizer: String,
    /// The source.
    pub source_path: PathBuf,
    /// 1-based number of the line.
    pub line: u64,
    /// Position of the first differing token, from 0.
    pub token: u64,
    /// The engine that serves the tokenizer.
    pub engine: &'static str,
    /// The id that it gives; `None` past its end.
    pub found: Option<u32>,
    /// The engine it is held against.
    pub oracle: &'static str,
    /// The id that that one gives; `None` past its end.
    pub expected: Option<u32>,
    /// Some of the text there.
    pub text: String,
}

/// An id for a message.
fn shown_id(id: Option<u32>) -> String {
    id.map_or_else(
        || "the end of the document".to_owned(),
        |id| format!("id {id}"),
    )
}
