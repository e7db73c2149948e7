//! Progress and cancellation of a shuffle.

use std::ops::ControlFlow;

use packtok_jobs::{Monitor, Progress, report_progress};

use crate::error::Result;

/// Counts finished work and asks a monitor whether to continue.
pub(crate) struct Meter<'a, 'm> {
    monitor: &'a mut Monitor<'m>,
    progress: Progress,
}

impl<'a, 'm> Meter<'a, 'm> {
    /// A meter of work on `total_bytes`.
    pub(crate) fn new(monitor: &'a mut Monitor<'m>, total_bytes: u64) -> Self {
        Self {
            monitor,
            progress: Progress {
                total_bytes,
                ..Progress::default()
            },
        }
    }

    /// Adds processed bytes and written documents.
    ///
    /// # Errors
    /// The monitor breaks.
    pub(crate) fn add(&mut self, bytes: u64, documents: u64) -> Result<()> {
        self.progress.bytes_read += bytes;
        self.progress.documents += documents;
        Ok(report_progress(self.monitor, &self.progress)?)
    }

    /// Asks whether to continue, as the functions of the file format do.
    pub(crate) fn check(&mut self) -> ControlFlow<()> {
        (self.monitor)(&self.progress)
    }
}
