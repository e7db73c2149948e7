//! What can go wrong here, with the data to say so.

use std::path::PathBuf;

/// Why a raw index cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RawIndexError {
    /// An index of a file of which every line was left out.
    #[error(
        "{}: nothing was indexed: none of the {rejected} non-blank lines is valid JSON{first}; see {}",
        path.display(),
        rejects.display()
    )]
    NothingIndexed {
        /// The source.
        path: PathBuf,
        /// Lines left out.
        rejected: u64,
        /// Where the first is and what is wrong with it, as the end of a sentence.
        first: String,
        /// The file that names them.
        rejects: PathBuf,
    },
}
