//! The errors of this crate: unites those of its modules.

use crate::cause::Cause;
use crate::encode_error::EncodeError;
use crate::load::LoadError;

/// Why a tokenizer cannot be loaded, or a text or ids cannot be processed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of loading a tokenizer.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An error of encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The engine rejected ids.
    #[error("the tokenizer cannot decode these ids")]
    Decode {
        /// The error of the engine.
        source: Cause,
    },
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
