//! The errors of all formats.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a token file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of a pbin.
    #[error(transparent)]
    Pbin(#[from] packtok_pbin::Error),
    /// An error of a file of raw tokens.
    #[error(transparent)]
    Raw(#[from] crate::raw::RawError),
}
