//! Processes chunks in parallel and delivers the results in corpus order.
//!
//! Each thread takes the next chunk from the shared reader (reading is a small part of the work, so
//! a lock is enough), processes it and stores the result for the calling thread. The calling thread
//! consumes results strictly in order, so the output does not depend on the number of threads. At
//! most `window` chunks are between the reader and the consumer, which bounds memory however uneven
//! the work is.
//!
//! The threads are detached rather than joined: when the caller stops (Ctrl-C, an error), it
//! returns at once, and a thread that is still processing a huge document ends later.

use crate::pipeline::PipelineError;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::corpus::{Chunk, Reader};
use crate::error::{Error, Result};

/// How often the waiting calling thread polls for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Stack of a worker; jq filters recurse on it.
const STACK_BYTES: usize = 16 << 20;

/// Whether a consumer wants more results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Continue.
    Continue,
    /// Stop: the rest of the corpus is not read.
    Stop,
}

/// The work of one thread.
pub(crate) trait Work: Send + 'static {
    /// A result; `Default` is an empty one to fill.
    type Out: Send + Default + 'static;

    /// Fills `out`, which may contain an earlier result to reuse, from the lines of `chunk`.
    fn work(&mut self, chunk: &Chunk, out: &mut Self::Out);

    /// Position of the current document, for the error if the work panics.
    fn place(&self) -> (usize, u64);
}

/// The calling thread's side.
pub(crate) trait Consume<T> {
    /// Consumes the next result in order. Its memory is reused afterwards.
    fn consume(&mut self, result: &mut T) -> Result<Flow>;

    /// Called at least every 50 ms with the bytes read so far; an error ends the run.
    fn tick(&mut self, bytes_read: u64) -> Result<()>;
}

struct Shared<T> {
    reader: Mutex<NextChunk>,
    state: Mutex<State<T>>,
    /// Signals workers: room in the window, or the end of the run.
    room: Condvar,
    /// Signals the consumer: a result, or the end of the run.
    ready: Condvar,
    is_over: AtomicBool,
    bytes_read: AtomicU64,
    window: u64,
    kept_buffer_bytes: usize,
}

struct NextChunk {
    reader: Reader,
    /// Chunks read so far, including a failed read.
    num_chunks: u64,
    is_at_end: bool,
}

struct State<T> {
    results: BTreeMap<u64, Result<T>>,
    /// Chunks that workers have started to read.
    num_started: u64,
    num_consumed: u64,
    num_workers: usize,
    spare: Vec<T>,
}

/// Locks a mutex even if it is poisoned: every critical section here keeps its data consistent at
/// each step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `workers`, one per thread, over all chunks of `reader` and passes the results to `consumer`
/// in order.
///
/// Returns the digests of the sources ([`Reader::digests`]).
///
/// # Errors
/// The first error in corpus order, or the error of `consumer`.
pub(crate) fn run<W: Work>(
    reader: Reader,
    workers: Vec<W>,
    kept_buffer_bytes: usize,
    consumer: &mut impl Consume<W::Out>,
) -> Result<Vec<Option<u32>>> {
    let shared = Arc::new(Shared {
        reader: Mutex::new(NextChunk {
            reader,
            num_chunks: 0,
            is_at_end: false,
        }),
        state: Mutex::new(State {
            results: BTreeMap::new(),
            num_started: 0,
            num_consumed: 0,
            num_workers: workers.len(),
            spare: Vec::new(),
        }),
        room: Condvar::new(),
        ready: Condvar::new(),
        is_over: AtomicBool::new(false),
        bytes_read: AtomicU64::new(0),
        window: 2 * workers.len() as u64 + 2,
        kept_buffer_bytes,
    });
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(workers.len())
        .stack_size(STACK_BYTES)
        .thread_name(|i| format!("packtok-{i}"))
        // Without a handler, a panic outside a document would abort the caller's process.
        .panic_handler(|_| ())
        .build()
        .map_err(|source| Error::Pipeline(PipelineError::Threads { source }))?;
    for worker in workers {
        let shared = Arc::clone(&shared);
        pool.spawn(move || shared.work_until_over(worker));
    }
    let outcome = shared.consume_in_order(consumer);
    shared.is_over.store(true, Ordering::Relaxed);
    // Taking the lock ensures that no worker is between its check of `is_over` and its wait.
    drop(lock(&shared.state));
    shared.room.notify_all();
    outcome?;
    Ok(lock(&shared.reader).reader.digests().to_vec())
}

impl<T: Send + Default + 'static> Shared<T> {
    fn consume_in_order(&self, consumer: &mut impl Consume<T>) -> Result<()> {
        let mut next = 0;
        loop {
            consumer.tick(self.bytes_read.load(Ordering::Relaxed))?;
            let mut state = lock(&self.state);
            let result = loop {
                if let Some(result) = state.results.remove(&next) {
                    break result;
                }
                if state.num_workers == 0 {
                    drop(state);
                    return self.check_all_consumed(next);
                }
                let (waited, timeout) = self
                    .ready
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                state = waited;
                if timeout.timed_out() {
                    drop(state);
                    consumer.tick(self.bytes_read.load(Ordering::Relaxed))?;
                    state = lock(&self.state);
                }
            };
            drop(state);
            let mut result = result?;
            let flow = consumer.consume(&mut result)?;
            next += 1;
            let mut state = lock(&self.state);
            state.num_consumed = next;
            state.spare.push(result);
            drop(state);
            self.room.notify_one();
            if flow == Flow::Stop {
                return Ok(());
            }
        }
    }
}

impl<T: Send + Default + 'static> Shared<T> {
    fn work_until_over<W: Work<Out = T>>(&self, mut worker: W) {
        let _leaving = Leaving(self);
        let mut buffer = Vec::new();
        while let Some(mut out) = self.wait_for_room() {
            let Some((seq, chunk)) = self.next_chunk(std::mem::take(&mut buffer)) else {
                break;
            };
            let result = chunk.and_then(|chunk| {
                // Unwind safe: `out` is dropped after a panic, the worker clears its buffers before
                // each use, and the run ends with an error.
                let work = AssertUnwindSafe(|| worker.work(&chunk, &mut out));
                let outcome = catch_unwind(work);
                buffer = chunk.into_buffer();
                match outcome {
                    Ok(()) => Ok(out),
                    Err(_) => {
                        let (source, offset_bytes) = worker.place();
                        Err(Error::Pipeline(PipelineError::Panicked {
                            source_index: source,
                            offset_bytes,
                        }))
                    }
                }
            });
            if buffer.capacity() > self.kept_buffer_bytes {
                buffer = Vec::new();
            }
            lock(&self.state).results.insert(seq, result);
            self.ready.notify_one();
        }
    }

    /// Checks that every chunk that was read was also consumed.
    fn check_all_consumed(&self, num_consumed: u64) -> Result<()> {
        match lock(&self.reader).num_chunks == num_consumed {
            true => Ok(()),
            false => Err(Error::Pipeline(PipelineError::WorkerDied)),
        }
    }

    /// Waits until another chunk may be in flight; `None` when the run is over.
    fn wait_for_room(&self) -> Option<T> {
        let mut state = lock(&self.state);
        while state.num_started >= state.num_consumed + self.window {
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        state.num_started += 1;
        Some(state.spare.pop().unwrap_or_default())
    }

    /// The next chunk with its number, or an error in its place; `None` after the last one.
    fn next_chunk(&self, buffer: Vec<u8>) -> Option<(u64, Result<Chunk>)> {
        let mut next = lock(&self.reader);
        if next.is_at_end || self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let chunk = next.reader.next_chunk(buffer).transpose();
        self.bytes_read
            .store(next.reader.bytes_read(), Ordering::Relaxed);
        next.is_at_end = !matches!(chunk, Some(Ok(_)));
        let chunk = chunk?;
        next.num_chunks += 1;
        Some((next.num_chunks - 1, chunk))
    }
}

/// Decrements the count of workers, also on a panic.
struct Leaving<'a, T>(&'a Shared<T>);

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.state).num_workers -= 1;
        self.0.ready.notify_one();
        // Wake the workers that wait for room, so that they end too.
        self.0.room.notify_all();
    }
}
