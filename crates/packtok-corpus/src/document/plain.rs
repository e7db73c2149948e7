//! Files whose lines a raw index lists: uncompressed JSON lines.

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

/// Turns the error that a file has another format which packtok reads into one that suggests to pack
/// it, because no option makes it a file that can be indexed.
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
