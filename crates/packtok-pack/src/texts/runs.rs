//! Divides the items of a call into runs of adjacent items and processes them on threads.
//!
//! The calling thread receives the results in order, so they do not depend on the number of threads.
//! Meanwhile it polls for an interruption.

use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use packtok_jobs::{Consume, Flow, run_tasks};
use packtok_tokenizer::Result as BpeResult;

use crate::error::{Error, Result};

/// Interval at which the calling thread polls for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Bytes per run. Large enough that the overhead per run is negligible.
const RUN_BYTES: usize = 1 << 16;

/// Added to the bytes of each item, so that a run of empty items ends too.
const ITEM_BYTES: usize = 16;

/// Polls for an interruption; `Break` ends the call with [`Error::Cancelled`].
pub type Tick<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// Applies `work` to all items and returns one result per run, in order.
///
/// `argument` is the name of the list of items in errors.
pub(crate) fn in_runs<W, R: Default + Send>(
    argument: &'static str,
    num_items: usize,
    bytes_of: impl Fn(usize) -> usize,
    num_threads: usize,
    new_worker: impl Fn() -> Result<W> + Sync,
    work: impl Fn(&mut W, usize, &mut R) -> BpeResult<()> + Sync,
    tick: &mut Tick<'_>,
) -> Result<Vec<R>> {
    let items = Items::new(argument, num_items, bytes_of);
    let mut results = Vec::with_capacity(items.runs.len());
    if num_threads.min(items.runs.len()) <= 1 {
        let (mut worker, mut result) = (new_worker()?, R::default());
        items.in_turn(tick, |item| work(&mut worker, item, &mut result))?;
        results.push(result);
        return Ok(results);
    }
    let receive = |result: &mut R| results.push(std::mem::take(result));
    items.on_threads(num_threads, new_worker, work, receive, tick)?;
    Ok(results)
}

/// Ranges of adjacent items, each of about `RUN_BYTES`.
fn runs(num_items: usize, bytes_of: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for item in 0..num_items {
        bytes += bytes_of(item) + ITEM_BYTES;
        if bytes >= RUN_BYTES || item + 1 == num_items {
            runs.push(start..item + 1);
            (start, bytes) = (item + 1, 0);
        }
    }
    runs
}

/// The items of a call, divided into runs.
pub(super) struct Items {
    /// The name of the list in errors.
    argument: &'static str,
    runs: Vec<Range<usize>>,
}

impl Items {
    /// Divides `num_items` items of `bytes_of(item)` bytes into runs.
    pub(super) fn new(
        argument: &'static str,
        num_items: usize,
        bytes_of: impl Fn(usize) -> usize,
    ) -> Self {
        Self {
            argument,
            runs: runs(num_items, bytes_of),
        }
    }

    pub(super) fn num_runs(&self) -> usize {
        self.runs.len()
    }

    /// Calls `work` with each item of a run; a panic becomes an error that names the item.
    fn run(&self, run: Range<usize>, mut work: impl FnMut(usize) -> BpeResult<()>) -> Result<()> {
        let argument = self.argument;
        let mut at = run.start;
        // Unwind safe: after a panic the result is dropped and the worker is not used again.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for item in run {
                at = item;
                work(item)?;
            }
            Ok(())
        }));
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(Error::TextItem {
                argument,
                item: at,
                source: Box::new(source),
            }),
            Err(_) => Err(Error::TextItemPanicked { argument, item: at }),
        }
    }

    /// Calls `work` with each item, on this thread.
    pub(super) fn in_turn(
        &self,
        tick: &mut Tick<'_>,
        mut work: impl FnMut(usize) -> BpeResult<()>,
    ) -> Result<()> {
        for run in &self.runs {
            if tick().is_break() {
                return Err(Error::Cancelled);
            }
            self.run(run.clone(), &mut work)?;
        }
        Ok(())
    }

    /// Processes all items on threads and calls `receive` with the result of each run, in order, on this thread.
    ///
    /// `receive` must leave the result empty: its memory is reused for another run.
    pub(super) fn on_threads<W, R: Default + Send>(
        &self,
        num_threads: usize,
        new_worker: impl Fn() -> Result<W> + Sync,
        work: impl Fn(&mut W, usize, &mut R) -> BpeResult<()> + Sync,
        receive: impl FnMut(&mut R),
        tick: &mut Tick<'_>,
    ) -> Result<()> {
        let mut receiver = Receiver {
            receive,
            tick,
            ticked: Instant::now(),
        };
        run_tasks(
            self.runs.len(),
            num_threads,
            new_worker,
            |worker, at, result| self.run(self.runs[at].clone(), |item| work(worker, item, result)),
            &mut receiver,
        )
    }
}

/// Receives the results of runs on the calling thread.
struct Receiver<'a, 't, F> {
    receive: F,
    tick: &'a mut Tick<'t>,
    /// Time of the last call of `tick`. Under Python, `tick` waits for the interpreter lock, which
    /// takes too long to do for each run.
    ticked: Instant,
}

impl<R, F: FnMut(&mut R)> Consume<R, Error> for Receiver<'_, '_, F> {
    fn consume(&mut self, result: &mut R) -> Result<Flow> {
        (self.receive)(result);
        Ok(Flow::Continue)
    }

    fn tick(&mut self, _bytes_read: u64) -> Result<()> {
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            if (self.tick)().is_break() {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_names_the_item() {
        for num_threads in [1, 4] {
            let work = |(): &mut (), item: usize, _: &mut ()| {
                assert!(item != 5, "as if an engine had a bug");
                Ok(())
            };
            let mut tick = || ControlFlow::Continue(());
            let bytes_of = |_| RUN_BYTES;
            let outcome = in_runs(
                "texts",
                9,
                bytes_of,
                num_threads,
                || Ok(()),
                work,
                &mut tick,
            );
            assert_eq!(
                outcome.unwrap_err().to_string(),
                "texts[5]: packtok panicked on this item; this is a bug, please report it with the item"
            );
        }
    }
}
