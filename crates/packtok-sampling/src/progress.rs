//! How far a plan or a split is, and whether the caller still wants it.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// How far a plan or a split is; all zero while another process computes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes of tokens planned.
    pub bytes_read: u64,
    /// Bytes of all tokens.
    pub total_bytes: u64,
    /// Documents planned.
    pub documents: u64,
    /// Tokens planned.
    pub tokens: u64,
}

/// Receives the progress; `Break` ends the call with [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Reports the progress; the error is that the caller asked to stop.
pub(crate) fn report(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
