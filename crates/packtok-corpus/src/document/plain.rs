//! Checks that a raw index can list the lines of a file: it must be uncompressed JSON lines.

use crate::error::{Error, Result};
use crate::{Compression, OtherFormat, Source, compression};

/// Checks that a source is an uncompressed file of JSON lines.
///
/// # Errors
/// It is compressed or a table, or cannot be read.
pub fn check_plain(source: &Source) -> Result<()> {
    match compression(source).map_err(not_lines)? {
        Compression::None => Ok(()),
        _ => Err(Error::IndexedCompressed {
            path: source.path.clone(),
        }),
    }
}

/// Replaces the error that a file has another format which packtok reads. The new error suggests
/// packing the file, because no option makes such a file indexable.
pub fn not_lines(error: Error) -> Error {
    use OtherFormat as F;
    match error {
        Error::OtherFormat { path, found, .. }
            if matches!(
                found,
                F::Parquet | F::Arrow | F::Csv | F::Tsv | F::PlainText
            ) =>
        {
            Error::NotLines { path, found }
        }
        error => error,
    }
}
