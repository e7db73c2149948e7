//! The errors of this crate: unites those of its modules.

use std::io;
use std::path::{Path, PathBuf};

use packtok_formats::mds::MdsError;
use packtok_formats::npy::NpyError;
use packtok_formats::raw::RawError;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a dataset, a plan or a batch cannot be built or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of token files.
    #[error(transparent)]
    Files(#[from] crate::files::FilesError),
    /// An error of items and batches.
    #[error(transparent)]
    Items(#[from] crate::items::ItemsError),
    /// An error of mixtures.
    #[error(transparent)]
    Order(#[from] crate::order::OrderError),
    /// An error of plans and splits.
    #[error(transparent)]
    Plans(#[from] crate::plans::PlansError),
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
    /// The caller requested to stop.
    #[error(transparent)]
    Jobs(#[from] packtok_jobs::Error),
    /// An error of the file format.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of a file of raw tokens.
    #[error(transparent)]
    Raw(Box<RawError>),
    /// An error of an NPY file.
    #[error(transparent)]
    Npy(Box<NpyError>),
    /// An error of an MDS folder.
    #[error(transparent)]
    Mds(Box<MdsError>),
}

impl From<RawError> for Error {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Map(error) => Self::Pbin(error),
            error => Self::Raw(error.into()),
        }
    }
}

impl From<MdsError> for Error {
    fn from(error: MdsError) -> Self {
        match error {
            MdsError::File(error) => Self::Pbin(error),
            error => Self::Mds(error.into()),
        }
    }
}

impl From<packtok_formats::Error> for Error {
    fn from(error: packtok_formats::Error) -> Self {
        match error {
            packtok_formats::Error::Pbin(error) => Self::Pbin(error),
            packtok_formats::Error::Raw(error) => error.into(),
            packtok_formats::Error::Npy(error) => Self::Npy(error),
            packtok_formats::Error::Mds(error) => Self::Mds(error),
        }
    }
}

impl Error {
    /// Builds an [`Error::Io`] for `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        // The error passed through a reader; restore the original.
        #[cfg(feature = "remote")]
        let source = match source.downcast() {
            Ok(error) => return Self::Store(error),
            Err(source) => source,
        };
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
