//! The pipeline on which everything that reads a corpus runs: workers whose results come in order, progress, cancellation.

mod error;
mod ordered;

use std::ops::ControlFlow;

pub use error::PipelineError;
pub(crate) use ordered::{Consume, Flow, Work, run};

use crate::corpus::Source;
use crate::error::{Error, Result};

/// How far a run is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes of the sources read, as they lie on disk.
    pub bytes_read: u64,
    /// Bytes of all sources.
    pub total_bytes: u64,
    /// Documents written.
    pub documents: u64,
    /// Tokens written.
    pub tokens: u64,
    /// Of `bytes_read`, those that an earlier run had packed.
    pub resumed_bytes: u64,
}

/// Told how far a run is, 10 to 20 times a second; `Break` ends the run with [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Reports how far a run is; the error is that the caller asked to stop.
pub(crate) fn tell(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Pipeline(PipelineError::Cancelled)),
    }
}

/// The thread that panicked knows only the number of the source.
pub(crate) fn name_panic(error: Error, sources: &[Source]) -> Error {
    match error {
        Error::Pipeline(PipelineError::Panicked {
            source_index,
            offset_bytes,
        }) => Error::Pipeline(PipelineError::EnginePanicked {
            path: sources[source_index].path.clone(),
            offset_bytes,
        }),
        other => other,
    }
}
