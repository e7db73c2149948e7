//! Progress of planning, and cancellation by the caller.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// Progress of a plan or a split; all zero while another process builds it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes of the tokens planned so far.
    pub bytes_read: u64,
    /// Bytes of all tokens.
    pub total_bytes: u64,
    /// Documents planned so far.
    pub documents: u64,
    /// Tokens planned so far.
    pub tokens: u64,
}

/// Receives the progress; `Break` ends the call with [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Reports progress; returns [`Error::Cancelled`] if the caller requests to stop.
pub(crate) fn report(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
