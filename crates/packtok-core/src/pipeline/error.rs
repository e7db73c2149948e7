//! The errors of this module.

use std::path::PathBuf;

/// Why the pipeline ended early.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The threads could not be started.
    #[error("cannot start the worker threads; lower num_cpus")]
    Threads {
        /// The error of the system.
        source: rayon::ThreadPoolBuildError,
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
