//! Processes numbered tasks in parallel and delivers the results in order.
//!
//! Threads live for one call and are joined at its end, so the work may borrow from the caller.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::results::{Consume, OrderedResults};

/// Results in flight per thread. The number is high because tasks are small and workers must not
/// wait for the receiver, which is one thread more than there may be cores.
const WINDOW_PER_THREAD: usize = 32;

/// Applies `work` to the numbers below `num_tasks`, on `num_threads` threads, and passes the
/// results to `consumer` in order.
///
/// `work` fills a result, which may contain an earlier result to reuse.
///
/// # Errors
/// The first error in order, or the error of `consumer`.
pub fn run_tasks<W, R: Default + Send, E: From<Error> + Send>(
    num_tasks: usize,
    num_threads: usize,
    new_worker: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, usize, &mut R) -> Result<(), E> + Sync,
    consumer: &mut impl Consume<R, E>,
) -> Result<(), E> {
    let num_threads = num_threads.min(num_tasks).max(1);
    let results = OrderedResults::new(num_threads, WINDOW_PER_THREAD * num_threads);
    let next = AtomicU64::new(0);
    let work_until_over = || {
        let _working = results.working();
        let mut worker: Option<W> = None;
        while let Some(mut result) = results.wait_for_room() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= num_tasks as u64 {
                break;
            }
            let outcome = match &mut worker {
                Some(worker) => Ok(worker),
                None => new_worker().map(|new| worker.insert(new)),
            };
            let outcome = outcome.and_then(|worker| work(worker, number as usize, &mut result));
            results.put(number, outcome.map(|()| result));
        }
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(num_threads)
        .thread_name(|i| format!("packtok-{i}"))
        .build()
        .map_err(|error| Error::no_pool(&error))?;
    pool.in_place_scope(|scope| {
        for _ in 0..num_threads {
            scope.spawn(|_| work_until_over());
        }
        results.receive(consumer, &AtomicU64::new(0)).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::Flow;
    use crate::error::Result;

    const NUM_TASKS: usize = 1000;

    /// Collects the results and calls `check` with each.
    struct Collector<F> {
        received: Vec<usize>,
        check: F,
    }

    impl<F: FnMut(usize) -> Result<Flow>> Consume<usize, Error> for Collector<F> {
        fn consume(&mut self, result: &mut usize) -> Result<Flow> {
            self.received.push(*result);
            (self.check)(*result)
        }

        fn tick(&mut self, _bytes_read: u64) -> Result<()> {
            Ok(())
        }
    }

    fn collect<F: FnMut(usize) -> Result<Flow>>(
        num_threads: usize,
        work: impl Fn(&mut (), usize, &mut usize) -> Result<()> + Sync,
        check: F,
    ) -> (Vec<usize>, Result<()>) {
        let mut collector = Collector {
            received: Vec::new(),
            check,
        };
        let outcome = run_tasks(NUM_TASKS, num_threads, || Ok(()), work, &mut collector);
        (collector.received, outcome)
    }

    fn cancelled<T>() -> Result<T> {
        Err(Error::Cancelled)
    }

    #[test]
    fn results_arrive_in_order_and_few_are_kept() {
        for num_threads in [1, 2, 7] {
            let (started, received) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |(): &mut (), task: usize, result: &mut usize| {
                let ahead = started.fetch_add(1, Ordering::SeqCst) + 1;
                let ahead = ahead.saturating_sub(received.load(Ordering::SeqCst));
                // One more result may have been received but not counted here yet.
                assert!(
                    ahead <= WINDOW_PER_THREAD * num_threads + 1,
                    "{ahead} results in flight"
                );
                *result = task;
                Ok(())
            };
            let (results, outcome) = collect(num_threads, work, |_| {
                received.fetch_add(1, Ordering::SeqCst);
                Ok(Flow::Continue)
            });
            outcome.unwrap();
            assert!(results.into_iter().eq(0..NUM_TASKS));
        }
    }

    #[test]
    fn the_first_error_in_order_ends_the_run() {
        let work = |(): &mut (), task: usize, result: &mut usize| {
            *result = task;
            if task >= 30 { cancelled() } else { Ok(()) }
        };
        let (results, outcome) = collect(3, work, |_| Ok(Flow::Continue));
        assert!(outcome.is_err());
        assert!(results.into_iter().eq(0..30));
    }

    #[test]
    fn a_consumer_can_stop_fail_or_panic() {
        let work = |(): &mut (), task: usize, result: &mut usize| {
            *result = task;
            Ok(())
        };
        let (results, outcome) = collect(3, work, |_| Ok(Flow::Stop));
        assert_eq!((results.len(), outcome.is_ok()), (1, true));
        let (results, outcome) = collect(3, work, |_| cancelled());
        assert_eq!((results.len(), outcome.is_ok()), (1, false));
        let panics = || collect(3, work, |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    }
}
