//! The errors of all formats.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a token file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of a pbin.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of a file of raw tokens.
    #[error(transparent)]
    Raw(#[from] crate::raw::RawError),
    /// An error of an MDS folder.
    #[error(transparent)]
    Mds(#[from] Box<crate::mds::MdsError>),
    /// An error of an NPY file.
    #[error(transparent)]
    Npy(#[from] Box<crate::npy::NpyError>),
}

impl From<crate::npy::NpyError> for Error {
    fn from(error: crate::npy::NpyError) -> Self {
        match error {
            crate::npy::NpyError::Map(error) => Self::Pbin(error),
            error => Self::Npy(error.into()),
        }
    }
}

impl From<crate::mds::MdsError> for Error {
    fn from(error: crate::mds::MdsError) -> Self {
        match error {
            crate::mds::MdsError::File(error) => Self::Pbin(error),
            error => Self::Mds(error.into()),
        }
    }
}
