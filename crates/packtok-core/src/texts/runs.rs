//! Divides the items of a call into runs of adjacent items and processes them on threads.
//!
//! Threads take runs in order, and the calling thread receives the results in order, so results do
//! not depend on the number of threads. Meanwhile the calling thread polls for an interruption.
//! Threads live for one call.

use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use packtok_tokenizer::Result as BpeResult;

use super::error::TextsError;
use crate::error::{Error, Result};
use crate::pipeline::PipelineError;

/// How often the calling thread polls for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Bytes per run: large enough that taking a run costs nothing in comparison.
const RUN_BYTES: usize = 1 << 16;

/// Added to the bytes of each item, so that a run of empty items ends too.
const ITEM_BYTES: usize = 16;

/// Polls for an interruption; `Break` ends the call with [`PipelineError::Cancelled`].
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
            Ok(Err(source)) => Err(Error::Texts(TextsError::Item {
                argument,
                item: at,
                source: Box::new(source),
            })),
            Err(_) => Err(Error::Texts(TextsError::ItemPanicked {
                argument,
                item: at,
            })),
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
                return Err(Error::Pipeline(PipelineError::Cancelled));
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
        mut receive: impl FnMut(&mut R),
        tick: &mut Tick<'_>,
    ) -> Result<()> {
        let num_threads = num_threads.min(self.runs.len());
        let shared = Shared::new(self.runs.len(), num_threads);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .thread_name(|i| format!("packtok-{i}"))
            .build()
            .map_err(|source| Error::Pipeline(PipelineError::Threads { source }))?;
        let work_all = || {
            let Some(first) = shared.take() else { return };
            let mut worker = match new_worker() {
                Ok(worker) => worker,
                Err(error) => return shared.put(first, Err(error)),
            };
            let mut taken = Some(first);
            while let Some(at) = taken {
                let mut result: R = shared.spare();
                let outcome = self.run(self.runs[at].clone(), |item| {
                    work(&mut worker, item, &mut result)
                });
                shared.put(at, outcome.map(|()| result));
                taken = shared.take();
            }
        };
        pool.in_place_scope(|scope| {
            for _ in 0..num_threads {
                scope.spawn(|_| {
                    work_all();
                    shared.leave();
                });
            }
            shared.receive_all(&mut receive, tick)
        })
    }
}

/// State of a call that its threads share.
struct Shared<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
    num_runs: usize,
    next: AtomicUsize,
    is_over: AtomicBool,
}

struct State<R> {
    results: Vec<Option<Result<R>>>,
    /// The first run whose result was not received yet.
    awaited: usize,
    /// Empty results to reuse.
    spare: Vec<R>,
    num_active: usize,
}

impl<R: Default> Shared<R> {
    fn new(num_runs: usize, num_threads: usize) -> Self {
        Self {
            state: Mutex::new(State {
                results: (0..num_runs).map(|_| None).collect(),
                awaited: 0,
                spare: Vec::new(),
                num_active: num_threads,
            }),
            changed: Condvar::new(),
            num_runs,
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the next run, unless all are claimed or the call is over.
    fn take(&self) -> Option<usize> {
        // `Acquire` keeps the claim below from moving before this load.
        let is_over = self.is_over.load(Ordering::Acquire);
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.num_runs && !is_over).then_some(at)
    }

    fn spare(&self) -> R {
        self.state().spare.pop().unwrap_or_default()
    }

    fn put(&self, at: usize, result: Result<R>) {
        if result.is_err() {
            // All runs before this one are claimed already, so the first error in order is still found.
            self.is_over.store(true, Ordering::Release);
        }
        let mut state = self.state();
        state.results[at] = Some(result);
        if at == state.awaited {
            self.changed.notify_one();
        }
    }

    fn leave(&self) {
        self.state().num_active -= 1;
        self.changed.notify_one();
    }

    /// Calls `receive` with each result, in order, until all threads have left. Returns the first error.
    fn receive_all(&self, receive: &mut impl FnMut(&mut R), tick: &mut Tick<'_>) -> Result<()> {
        let mut outcome = Ok(());
        let mut state = self.state();
        loop {
            let awaited = state.awaited;
            if let Some(result) = state.results.get_mut(awaited).and_then(Option::take) {
                state.awaited += 1;
                match result {
                    Ok(mut result) if outcome.is_ok() => {
                        drop(state);
                        receive(&mut result);
                        state = self.state();
                        state.spare.push(result);
                    }
                    Err(error) if outcome.is_ok() => outcome = Err(error),
                    _ => {}
                }
                continue;
            }
            if state.num_active == 0 {
                return outcome;
            }
            let waited = self.changed.wait_timeout(state, TICK);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if outcome.is_ok() && tick().is_break() {
                self.is_over.store(true, Ordering::Release);
                outcome = Err(Error::Pipeline(PipelineError::Cancelled));
            }
            state = self.state();
        }
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
            let found = in_runs(
                "texts",
                9,
                bytes_of,
                num_threads,
                || Ok(()),
                work,
                &mut tick,
            );
            assert_eq!(
                found.unwrap_err().to_string(),
                "texts[5]: packtok panicked on this item; this is a bug, please report it with the item"
            );
        }
    }
}
