//! The errors of this crate: unites those of its modules.

use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What is said of a run that ended early, and whose finished work is kept.
pub const KEPT: &str =
    "finished work is kept next to the output; run the same command again to resume";

/// Why a function of this crate failed.
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
    /// An object store returned an error.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Store(#[from] packtok_store::Error),
    /// A run ended early, and its finished work is kept.
    #[error("{}; {KEPT}", ended_by(source))]
    Kept {
        /// Why it ended.
        source: Box<Error>,
    },
    /// An error of shards, their plan or their markers.
    #[error(transparent)]
    Shard(#[from] crate::shard::ShardError),
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of the tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] packtok_tokenizer::Error),
    /// An error of the corpus.
    #[error(transparent)]
    Corpus(packtok_corpus::Error),
    /// The caller requested to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// An error of threads, or the output belongs to another run.
    #[error(transparent)]
    Jobs(packtok_jobs::Error),
    /// The options do not match the tokenizer.
    #[error(transparent)]
    Spec(#[from] crate::pack::SpecError),
    /// An error of packing.
    #[error(transparent)]
    Pack(#[from] crate::pack::PackError),
    /// An error of writing a raw index.
    #[error(transparent)]
    RawIndex(#[from] crate::raw_index::RawIndexError),
    /// An error of encoding or decoding texts.
    #[error(transparent)]
    Texts(#[from] crate::texts::TextsError),
    /// A verification failed.
    #[error(transparent)]
    Verify(#[from] crate::verify::VerifyError),
    /// An error of a token file that is not a pbin.
    #[error(transparent)]
    Formats(packtok_formats::Error),
}

impl From<packtok_corpus::Error> for Error {
    fn from(error: packtok_corpus::Error) -> Self {
        match error {
            packtok_corpus::Error::Io { path, source } => Self::Io { path, source },
            #[cfg(feature = "remote")]
            packtok_corpus::Error::Store(error) => Self::Store(error),
            packtok_corpus::Error::Jobs(error) => error.into(),
            error => Self::Corpus(error),
        }
    }
}

impl From<packtok_jobs::Error> for Error {
    fn from(error: packtok_jobs::Error) -> Self {
        match error {
            packtok_jobs::Error::Io { path, source } => Self::io(&path, source),
            packtok_jobs::Error::Cancelled => Self::Cancelled,
            error => Self::Jobs(error),
        }
    }
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        match error {
            packtok_formats::Error::Pbin(error) => Self::Pbin(error),
            error => Self::Formats(error),
        }
    }
}

/// Why a run ended that keeps its finished work.
fn ended_by(error: &Error) -> String {
    match error {
        // The message of `Cancelled` says that nothing was written, which is wrong here.
        Error::Cancelled => "interrupted".to_owned(),
        error => error.to_string(),
    }
}

impl Error {
    /// Adds the path to the error of a panic.
    pub(crate) fn with_names(self, sources: &[packtok_corpus::Source]) -> Self {
        match self {
            Self::Corpus(error) => {
                Self::Corpus(packtok_corpus::pipeline::name_panic(error, sources))
            }
            error => error,
        }
    }

    /// As [`packtok_corpus::Error::io`].
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        packtok_corpus::Error::io(path, source).into()
    }
}
