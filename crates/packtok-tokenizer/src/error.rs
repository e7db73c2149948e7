//! The error type of this crate, which combines the errors of its modules.

use crate::cause::{Cause, OutOfMemory};
use crate::encode_error::EncodeError;
use crate::engines::excess::Excess;
use crate::load::LoadError;

/// The reason why a tokenizer cannot be loaded, or why texts or ids cannot be processed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Error {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the tokenizer cannot decode these ids")]
    Decode { source: Cause },
}

impl Error {
    /// The error if an engine of the tokenizer called `name` returns this for a text.
    pub(crate) fn of_engine(name: &str, cause: Cause) -> Self {
        let cause = match cause.downcast::<Self>() {
            // Loading the engine failed; the error is already complete.
            Ok(error) => return *error,
            Err(cause) => cause,
        };
        let name = name.to_owned();
        Self::Encode(if cause.is::<Excess>() {
            EncodeError::Excess {
                name,
                source: cause,
            }
        } else if cause.is::<OutOfMemory>() {
            EncodeError::OutOfMemory { name }
        } else {
            EncodeError::Engine { source: cause }
        })
    }

    /// Whether the error is about the text: other texts can still be encoded. All other errors are
    /// about the tokenizer or the machine; the same text may succeed elsewhere.
    pub fn is_about_text(&self) -> bool {
        use EncodeError as E;
        matches!(
            self,
            Self::Encode(E::SpecialTokenInText { .. } | E::Engine { .. })
        )
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
