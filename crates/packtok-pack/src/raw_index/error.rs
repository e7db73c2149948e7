//! The errors of this module.

use std::path::PathBuf;

/// Why a raw index cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RawIndexError {
    /// All lines of a file were rejected.
    #[error(
        "{}: nothing was indexed: none of the {rejected} non-blank lines is valid JSON{first}; see {}",
        path.display(),
        rejects.display()
    )]
    NothingIndexed {
        /// The source.
        path: PathBuf,
        /// Number of rejected lines.
        rejected: u64,
        /// Position and reason of the first rejected line, as the end of a sentence.
        first: String,
        /// The file that lists them.
        rejects: PathBuf,
    },
}
