//! The pipeline for everything that reads a corpus: ordered parallel work, progress, cancellation.

mod error;
mod ordered;

use std::ops::ControlFlow;

pub use error::PipelineError;
pub(crate) use ordered::{Consume, Flow, Work, run};

use crate::corpus::Source;
use crate::error::{Error, Result};

/// Progress of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Raw bytes of the sources read so far.
    pub bytes_read: u64,
    /// Bytes of all sources.
    pub total_bytes: u64,
    /// Documents written.
    pub documents: u64,
    /// Tokens written.
    pub tokens: u64,
    /// The part of `bytes_read` that an earlier run had packed.
    pub resumed_bytes: u64,
}

/// Receives the progress 10 to 20 times a second; `Break` ends the run with
/// [`PipelineError::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Reports progress; returns [`PipelineError::Cancelled`] if the caller requests to stop.
pub(crate) fn report_progress(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Pipeline(PipelineError::Cancelled)),
    }
}

/// Adds the path to a panic error: the thread only knows the number of the source.
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
