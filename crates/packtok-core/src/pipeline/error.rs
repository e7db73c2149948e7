//! What can go wrong here, with the data to say so.

use std::path::PathBuf;

/// Why work on a corpus ended.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The threads could not be started.
    #[error("cannot start the worker threads; lower num_cpus")]
    Threads {
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
    /// A worker panicked; its source is known by its number only.
    #[error("a worker panicked in source {source_index} at byte {offset_bytes}")]
    Panicked {
        /// Position of the source among the sources.
        source_index: usize,
        /// Place of the line in the uncompressed source.
        offset_bytes: u64,
    },
    /// A worker ended before its work did.
    #[error("a worker thread died; this is a bug, please report it")]
    WorkerDied,
    /// A worker panicked.
    #[error(
        "{}: byte {offset_bytes}: packtok panicked on this document; this is a bug, please report it with this line",
        path.display()
    )]
    EnginePanicked {
        /// The source.
        path: PathBuf,
        /// Place of the line in the uncompressed source.
        offset_bytes: u64,
    },
    /// The caller asked to stop.
    #[error("interrupted; nothing was written")]
    Cancelled,
}
