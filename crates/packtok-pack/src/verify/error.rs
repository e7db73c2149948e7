//! The errors of this module.

use std::path::PathBuf;

use packtok_corpus::Location;

/// Why a verification failed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
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
        /// Its width.
        found_bytes: u64,
        /// The tokenizer's.
        expected_bytes: u64,
    },
    /// A document of the file differs from the corpus.
    #[error(
        "{}: document {document} differs from {location} at token {token}: found {}, expected {}",
        path.display(),
        shown_id(*found),
        shown_id(*expected)
    )]
    DocumentDiffers {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the first differing token, from 0.
        token: u64,
        /// The id in the file; `None` past its end.
        found: Option<u32>,
        /// The id according to the corpus; `None` past its end.
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
        /// Its documents.
        found: u64,
        /// The record of the first missing document.
        location: Location,
    },
    /// The file has more documents than the corpus.
    #[error("{}: file has {found} documents, the corpus has {expected}", path.display())]
    CorpusShorter {
        /// The pbin.
        path: PathBuf,
        /// Its documents.
        found: u64,
        /// The documents of the corpus.
        expected: u64,
    },
    /// The file does not record where its documents came from.
    #[error(
        "{}: does not record the origins of its documents; pack it with packtok pack --origins, or compare it with packtok verify --corpus CONFIG",
        path.display()
    )]
    NoOrigins {
        /// The pbin.
        path: PathBuf,
    },
    /// Documents are not in the order of their records.
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
    /// A recorded path of a source is not one below a folder.
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
        /// Its length.
        found: u64,
        /// Its recorded length.
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
        shown_id(*found),
        shown_id(*expected)
    )]
    RecordDiffers {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Index of the first differing token, from 0.
        token: u64,
        /// The id in the file; `None` past its end.
        found: Option<u32>,
        /// The id according to the record; `None` past its end.
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
        shown_id(*found)
    )]
    NoEod {
        /// The pbin.
        path: PathBuf,
        /// The document number, from 0.
        document: u64,
        /// Its last id; `None` if it has no token.
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
        /// Fingerprint of the tokenizer given.
        expected: String,
    },
}

/// Two engines give different ids for a text.
#[derive(Debug, thiserror::Error)]
#[error(
    "{tokenizer}: {location}: token {token} is {} with {engine}, and {} with {oracle}, near {text:?}; please report it with this text",
    shown_id(*found),
    shown_id(*expected)
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
    /// Its id; `None` past its end.
    pub found: Option<u32>,
    /// The engine it is compared with.
    pub oracle: &'static str,
    /// That engine's id; `None` past its end.
    pub expected: Option<u32>,
    /// The text at that position.
    pub text: String,
}

/// Formats an id for a message.
fn shown_id(id: Option<u32>) -> String {
    id.map_or_else(
        || "the end of the document".to_owned(),
        |id| format!("id {id}"),
    )
}
