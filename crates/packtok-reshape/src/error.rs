//! The error type of this crate, which combines the errors of its modules.

use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

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
    /// An error of a token file of another format.
    #[error(transparent)]
    Formats(#[from] packtok_formats::Error),
    /// The existing output has other bytes than this run would write.
    #[error(
        "{}: the existing output differs from what this run would write, from byte {offset} on; set --existing (existing) to replace, or choose another output",
        path.display()
    )]
    ExistingDiffers {
        /// The output.
        path: PathBuf,
        /// Offset of the first difference.
        offset: u64,
    },
    /// An error of shuffling files.
    #[error(transparent)]
    Shuffle(#[from] crate::shuffle::ShuffleError),
    /// An error of drawing samples.
    #[error(transparent)]
    Sample(Box<crate::sample::SampleError>),
    /// An error of rewriting folders of samples.
    #[error(transparent)]
    Import(#[from] Box<crate::import::ImportError>),
    /// An error of conversions.
    #[error(transparent)]
    Convert(#[from] crate::convert::ConvertError),
    /// An error of folders of NPY files.
    #[error(transparent)]
    Tokens(#[from] crate::tokens::TokensError),
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
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

impl From<crate::import::ImportError> for Error {
    fn from(error: crate::import::ImportError) -> Self {
        Self::Import(error.into())
    }
}

impl From<packtok_dataset::Error> for Error {
    fn from(error: packtok_dataset::Error) -> Self {
        Self::Dataset(error.into())
    }
}

impl From<crate::sample::SampleError> for Error {
    fn from(error: crate::sample::SampleError) -> Self {
        Self::Sample(error.into())
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
