//! The errors of this module.

use std::path::PathBuf;

/// Why this process cannot work on an output.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process is writing the output.
    #[error("{}: {holder} is writing this output; wait for it to finish, or stop it and run this command again", path.display())]
    OutputHeld {
        /// The output.
        path: PathBuf,
        /// The process that holds it.
        holder: String,
    },
    /// Another process took over the output because this one appeared dead.
    #[error(
        "{}: another process took over this output because this one appeared dead; let it finish",
        path.display()
    )]
    OutputTaken {
        /// The output.
        path: PathBuf,
    },
}
