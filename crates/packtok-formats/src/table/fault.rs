//! The reason why a table cannot be read.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a table cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The system cannot read the file.
    Io(std::io::Error),
    /// The system cannot write a temporary file.
    Temporary(std::io::Error),
    /// The file has another format.
    OtherFormat,
    /// The file is damaged.
    Damaged(String),
    /// The file uses a feature that packtok cannot read; the text includes the remedy.
    Unsupported(String),
    /// The requested column does not exist; the names of the existing columns.
    ColumnMissing(Vec<String>),
    /// The requested column exists twice; with their numbers, from 1.
    ColumnTwice(usize, usize),
}

impl Fault {
    /// The reason as a text, for a file that is only looked at.
    pub fn reason(&self) -> String {
        match self {
            Self::Io(cause) if cause.kind() == std::io::ErrorKind::TimedOut => {
                "it was not reached in time".to_owned()
            }
            Self::Io(cause) | Self::Temporary(cause) => cause.to_string(),
            Self::Damaged(reason) | Self::Unsupported(reason) => reason.clone(),
            Self::OtherFormat => "the file has another format".to_owned(),
            Self::ColumnMissing(_) | Self::ColumnTwice(..) => "there is no such column".to_owned(),
        }
    }
}

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread would currently be caught and become an error. Panic hooks need
/// not report such a panic.
pub fn is_panic_contained() -> bool {
    IS_CONTAINED.get()
}

/// Calls a decoder and turns its panics into faults: damaged files may violate the decoder's
/// assumptions.
///
/// # Errors
/// The error of `decode`; [`Fault::Damaged`] if it panics.
pub fn contained<T>(decode: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let was_contained = IS_CONTAINED.replace(true);
    // Unwind safe: after a fault, the decoder is not used again.
    let outcome = catch_unwind(AssertUnwindSafe(decode));
    IS_CONTAINED.set(was_contained);
    outcome.unwrap_or_else(|_| Err(Fault::Damaged("its content contradicts itself".to_owned())))
}

impl From<std::io::Error> for Fault {
    fn from(cause: std::io::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Damaged("it ends too early".to_owned()),
            _ => Self::Io(cause),
        }
    }
}
