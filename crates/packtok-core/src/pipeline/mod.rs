//! Ordered parallel work, progress and cancellation, for everything that runs on several threads.
//!
//! [`run`] processes the chunks of a corpus, [`run_tasks`] numbered tasks that may borrow from the
//! caller. Both deliver results in order, so that no output depends on the number of threads.

mod chunks;
mod error;
mod results;
mod tasks;

use std::ops::ControlFlow;

pub(crate) use chunks::{Work, run};
pub use error::PipelineError;
pub(crate) use results::lock;
pub(crate) use tasks::run_tasks;

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
    /// Samples written, by a command that writes samples and not documents.
    pub samples: Option<u64>,
    /// Tokens written.
    pub tokens: u64,
    /// The part of `bytes_read` that an earlier run had packed.
    pub resumed_bytes: u64,
}

/// Receives the progress 10 to 20 times a second; `Break` ends the run with
/// [`PipelineError::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Whether a consumer wants more results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Continue.
    Continue,
    /// Stop: the rest of the work is not done.
    Stop,
}

/// The calling thread's side.
pub(crate) trait Consume<T> {
    /// Consumes the next result in order. Its memory is reused afterwards.
    fn consume(&mut self, result: &mut T) -> Result<Flow>;

    /// Called at least every 50 ms with the bytes read so far; an error ends the run.
    fn tick(&mut self, bytes_read: u64) -> Result<()>;
}

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
            offset,
        }) => Error::Pipeline(PipelineError::EnginePanicked {
            path: sources[source_index].path.clone(),
            place: sources[source_index].offset_shown(offset),
        }),
        other => other,
    }
}
