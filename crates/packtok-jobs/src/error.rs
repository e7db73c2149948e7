//! The errors of this crate.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::ThreadLimits;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a task cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum Error {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot start {purpose}; {ThreadLimits}")]
    Threads {
        /// The purpose of the thread, with an article.
        purpose: &'static str,
        source: io::Error,
    },
    #[error("a worker thread died; this is a bug, please report it")]
    WorkerDied,
    /// The caller requested to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
    #[error("{}: {holder} is writing this output; wait for it to finish, or stop it and run this command again", path.display())]
    OutputHeld { path: PathBuf, holder: String },
    /// Another process took over the output because this one appeared dead.
    #[error(
        "{}: another process took over this output because this one appeared dead; let it finish",
        path.display()
    )]
    OutputTaken { path: PathBuf },
    #[error("the number of shards is 0, expected at least 1")]
    NoShards,
    #[error("no shard {index} of {count}; shards are numbered 0 to {}", count - 1)]
    NoSuchShard {
        index: u64,
        /// The number of shards, at least 1.
        count: u64,
    },
}

impl Error {
    /// Builds an [`Error::Io`] for `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// The error of a pool whose threads cannot be started.
    pub fn no_pool(error: &rayon::ThreadPoolBuildError) -> Self {
        let of_system = error.source().and_then(|cause| {
            let cause = cause.downcast_ref::<io::Error>()?;
            cause.raw_os_error().map(io::Error::from_raw_os_error)
        });
        Self::Threads {
            purpose: "the worker threads",
            source: of_system.unwrap_or_else(|| io::Error::other(error.to_string())),
        }
    }
}
