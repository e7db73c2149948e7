//! Writes several outputs at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use packtok_jobs::{Consume, Flow, Monitor, Progress, report_progress, run_tasks};

use crate::error::{Error, Result};

/// The most outputs that are written at once. More threads would not copy faster, and each holds the rows of
/// a group of a Parquet file.
const MAX_THREADS: usize = 8;

/// Writes the outputs with the numbers below `num_outputs`, on at most `num_threads` threads, and returns the
/// results of `write` in order. `total_bytes` are those of all outputs in the progress.
///
/// # Errors
/// The first error of `write` in order; the monitor breaks. After an error, threads may still write some of
/// the next outputs.
pub(super) fn write_all<T: Send>(
    num_outputs: usize,
    num_threads: usize,
    total_bytes: u64,
    write: impl Fn(usize, &mut Monitor<'_>) -> Result<T> + Sync,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<T>> {
    let num_threads = num_threads.clamp(1, MAX_THREADS);
    if num_outputs < 2 || num_threads == 1 {
        return (0..num_outputs)
            .map(|number| write(number, monitor))
            .collect();
    }
    let (bytes, tokens, is_stopped) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = |(): &mut (), number: usize, result: &mut Option<T>| {
        let mut before = Progress::default();
        let mut counted = |progress: &Progress| {
            bytes.fetch_add(progress.bytes_read - before.bytes_read, Ordering::Relaxed);
            tokens.fetch_add(progress.tokens - before.tokens, Ordering::Relaxed);
            before = *progress;
            if is_stopped.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        *result = Some(write(number, &mut counted)?);
        Ok(())
    };
    let mut written = Written {
        results: Vec::new(),
        tick: || {
            let progress = Progress {
                bytes_read: bytes.load(Ordering::Relaxed).min(total_bytes),
                total_bytes,
                tokens: tokens.load(Ordering::Relaxed),
                ..Progress::default()
            };
            let reported = report_progress(monitor, &progress);
            is_stopped.fetch_or(reported.is_err(), Ordering::Relaxed);
            Ok(reported?)
        },
    };
    run_tasks(num_outputs, num_threads, || Ok(()), work, &mut written)?;
    Ok(written.results)
}

/// The results of the outputs that are finished, in order.
struct Written<T, F> {
    results: Vec<T>,
    /// Reports the progress.
    tick: F,
}

impl<T, F: FnMut() -> Result<()>> Consume<Option<T>, Error> for Written<T, F> {
    fn consume(&mut self, result: &mut Option<T>) -> Result<Flow> {
        self.results.extend(result.take());
        Ok(Flow::Continue)
    }

    fn tick(&mut self, _: u64) -> Result<()> {
        (self.tick)()
    }
}
