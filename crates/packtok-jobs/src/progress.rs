//! Progress of a task, and cancellation by its caller.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// Progress of a task. All is zero while another process does the work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Raw bytes of the inputs read so far.
    pub bytes_read: u64,
    /// Bytes of all inputs.
    pub total_bytes: u64,
    /// Documents done so far.
    pub documents: u64,
    /// Samples done so far; `None` for tasks that process documents instead of samples.
    pub samples: Option<u64>,
    /// Tokens done so far.
    pub tokens: u64,
    /// The part of `bytes_read` that an earlier run had done.
    pub resumed_bytes: u64,
}

/// Receives the progress 10 to 20 times a second; `Break` ends the task with
/// [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Reports progress.
///
/// # Errors
/// [`Error::Cancelled`] if the caller requests to stop.
pub fn report_progress(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
