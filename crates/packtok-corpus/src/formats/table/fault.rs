//! The reason why a table cannot be read.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Source;
use crate::error::Error;

/// The reason why a table cannot be read.
pub(super) enum Fault {
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
    /// The text column does not exist; the names of the existing columns.
    ColumnMissing(Vec<String>),
    /// The text column exists twice; with their numbers, from 1.
    ColumnTwice(usize, usize),
}

impl Fault {
    /// The error for `source`.
    pub(super) fn of(self, source: &Source, column: &str) -> Error {
        let (path, format) = (source.path.clone(), source.format);
        match self {
            Self::Io(cause) => Error::io(&path, cause),
            Self::Temporary(source) => Error::Temporary {
                path,
                folder: std::env::temp_dir(),
                source,
            },
            Self::OtherFormat => Error::NotThisFormat { path, format },
            Self::Damaged(reason) => Error::DamagedTable {
                path,
                format,
                reason,
            },
            Self::Unsupported(reason) => Error::UnsupportedTable {
                path,
                format,
                reason,
            },
            Self::ColumnMissing(columns) => Error::ColumnMissing {
                path,
                column: column.to_owned(),
                columns,
            },
            Self::ColumnTwice(first, second) => Error::ColumnTwice {
                path,
                column: column.to_owned(),
                first,
                second,
            },
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
pub(super) fn contained<T>(decode: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
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
