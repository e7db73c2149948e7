//! What can go wrong here, with the data to say so.

use std::path::PathBuf;

/// Why an output cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process is making the output.
    #[error("{}: {holder} is writing this output; wait for it to finish, or stop it and run this command again", path.display())]
    OutputHeld {
        /// The output.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// Another process has taken the output, for this one was not seen to be alive.
    #[error(
        "{}: another process took over this output because this one appeared dead; let it finish",
        path.display()
    )]
    OutputTaken {
        /// The output.
        path: PathBuf,
    },
}
