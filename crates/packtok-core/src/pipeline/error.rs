//! The errors of this module.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use crate::limits::ThreadLimits;

/// Why the pipeline ended early.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A thread could not be started.
    #[error("cannot start {purpose}; {ThreadLimits}")]
    Threads {
        /// What the thread is for, with an article.
        purpose: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A worker panicked; the source is only known by its number.
    #[error("a worker panicked in source {source_index} at offset {offset}")]
    Panicked {
        /// Index of the source.
        source_index: usize,
        /// Offset of the record, in bytes or in rows.
        offset: u64,
    },
    /// A worker ended before its work was done.
    #[error("a worker thread died; this is a bug, please report it")]
    WorkerDied,
    /// A worker panicked.
    #[error(
        "{}: {place}: packtok panicked on this document; this is a bug, please report it with this document",
        path.display()
    )]
    EnginePanicked {
        /// The source.
        path: PathBuf,
        /// The document, as in `byte 5`.
        place: String,
    },
    /// The caller requested to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
}

impl PipelineError {
    /// The error of a pool whose threads cannot be started.
    pub(crate) fn no_pool(error: &rayon::ThreadPoolBuildError) -> Self {
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
