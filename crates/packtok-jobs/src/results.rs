//! Results of parallel work, received by one thread in the order of the work.
//!
//! At most `window` results are in flight between the workers and the receiver. This bounds the
//! memory, however uneven the work is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which the waiting receiver polls for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Whether a consumer wants more results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Asks for the next result.
    Continue,
    /// Skips the remaining work.
    Stop,
}

/// The calling thread's side. `E` is the error of the work and of the consumer.
pub trait Consume<T, E> {
    /// Consumes the next result in order. Its memory is reused afterwards.
    ///
    /// # Errors
    /// An error ends the run.
    fn consume(&mut self, result: &mut T) -> Result<Flow, E>;

    /// Called at least every 50 ms with the bytes read so far.
    ///
    /// # Errors
    /// An error ends the run.
    fn tick(&mut self, bytes_read: u64) -> Result<(), E>;
}

/// The results of some workers, each with its number in the order of the work.
pub struct OrderedResults<T, E> {
    state: Mutex<State<T, E>>,
    /// Signals workers: room in the window, or the end of the run.
    room: Condvar,
    /// Signals the receiver: a result, or a worker that ended.
    ready: Condvar,
    is_over: AtomicBool,
    window: u64,
}

struct State<T, E> {
    results: BTreeMap<u64, Result<T, E>>,
    /// Results that workers have started.
    num_started: u64,
    num_received: u64,
    num_workers: usize,
    /// Received results, to be filled again.
    spare: Vec<T>,
}

/// Locks a mutex even if it is poisoned: every critical section here keeps its data consistent at
/// each step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Default, E> OrderedResults<T, E> {
    /// At most `window` results are in flight.
    pub fn new(num_workers: usize, window: usize) -> Self {
        Self {
            state: Mutex::new(State {
                results: BTreeMap::new(),
                num_started: 0,
                num_received: 0,
                num_workers,
                spare: Vec::new(),
            }),
            room: Condvar::new(),
            ready: Condvar::new(),
            is_over: AtomicBool::new(false),
            window: window as u64,
        }
    }

    /// Waits until another result may be started, and returns the result to fill. It may contain
    /// an earlier result. `None` when the run is over.
    pub fn wait_for_room(&self) -> Option<T> {
        let mut state = lock(&self.state);
        while state.num_started >= state.num_received + self.window {
            if self.is_over() {
                return None;
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_over() {
            return None;
        }
        state.num_started += 1;
        Some(state.spare.pop().unwrap_or_default())
    }

    /// Hands over result `number`.
    pub fn put(&self, number: u64, result: Result<T, E>) {
        let mut state = lock(&self.state);
        state.results.insert(number, result);
        // The receiver only waits for the next result. Waking it for other results would take a
        // core from a worker.
        let is_next = number == state.num_received;
        drop(state);
        if is_next {
            self.ready.notify_one();
        }
    }

    /// Whether workers are to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Makes all workers end.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Taking the lock ensures that no worker is between its check of `is_over` and its wait.
        drop(lock(&self.state));
        self.room.notify_all();
    }

    /// A worker must hold this while it works.
    pub fn working(&self) -> Working<'_, T, E> {
        Working(self)
    }

    /// Passes the results to `consumer`, in order, until it stops or all workers have ended.
    /// Returns the number of results if all workers have ended, or `None` if `consumer` stopped.
    /// After `None` or an error, the run is over: workers end after their current result.
    ///
    /// # Errors
    /// The first error in order, or the error of `consumer`.
    pub fn receive(
        &self,
        consumer: &mut impl Consume<T, E>,
        bytes_read: &AtomicU64,
    ) -> Result<Option<u64>, E> {
        let _ending = Ending(self);
        let mut next = 0;
        loop {
            consumer.tick(bytes_read.load(Ordering::Relaxed))?;
            let mut state = lock(&self.state);
            let result = loop {
                if let Some(result) = state.results.remove(&next) {
                    break result;
                }
                if state.num_workers == 0 {
                    return Ok(Some(next));
                }
                let (waited, timeout) = self
                    .ready
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                state = waited;
                if timeout.timed_out() {
                    drop(state);
                    consumer.tick(bytes_read.load(Ordering::Relaxed))?;
                    state = lock(&self.state);
                }
            };
            drop(state);
            let mut result = result?;
            let flow = consumer.consume(&mut result)?;
            next += 1;
            let mut state = lock(&self.state);
            state.num_received = next;
            state.spare.push(result);
            drop(state);
            self.room.notify_one();
            if flow == Flow::Stop {
                return Ok(None);
            }
        }
    }
}

/// Ends the run when it is dropped. Without this guard, a panic of the consumer would leave
/// workers waiting.
struct Ending<'a, T: Default, E>(&'a OrderedResults<T, E>);

impl<T: Default, E> Drop for Ending<'_, T, E> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Decrements the count of workers when it is dropped, also by a panic.
pub struct Working<'a, T, E>(&'a OrderedResults<T, E>);

impl<T, E> Drop for Working<'_, T, E> {
    fn drop(&mut self) {
        lock(&self.0.state).num_workers -= 1;
        self.0.ready.notify_one();
        // Wake the workers that wait for room, so that they end too.
        self.0.room.notify_all();
    }
}
