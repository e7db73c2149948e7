//! Processes the chunks of a corpus in parallel and delivers the results in corpus order.
//!
//! Each thread takes the next chunk from the shared reader (reading is a small part of the work, so
//! a lock is enough), processes it and hands over the result. The calling thread consumes results
//! strictly in order, so the output does not depend on the number of threads.
//!
//! The threads are detached rather than joined: when the caller stops (Ctrl-C, an error), it
//! returns at once, and a thread that is still processing a huge document ends later.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use packtok_jobs::{Consume, OrderedResults, lock};

use crate::error::{Error, Result};
use crate::{Chunk, Reader, Source};

/// Stack of a worker; jq filters recurse on it.
const STACK_BYTES: usize = 16 << 20;

/// The work of one thread.
pub trait Work: Send + 'static {
    /// A result; `Default` is an empty one to fill.
    type Out: Send + Default + 'static;

    /// The error of the work and of the consumer of the results.
    type Error: From<Error> + Send + 'static;

    /// Fills `out`, which may contain an earlier result to reuse, from the records of `chunk`.
    ///
    /// # Errors
    /// The run cannot continue, for a reason that is not about a record.
    fn work(&mut self, chunk: &Chunk, out: &mut Self::Out) -> Result<(), Self::Error>;

    /// The source and offset of the current document, for the error if the work panics.
    fn place(&self) -> (usize, u64);
}

/// Adds the path of the source to the error of a panic, because the thread only knows its number.
pub fn name_panic(error: Error, sources: &[Source]) -> Error {
    match error {
        Error::Panicked {
            source_index,
            offset,
        } => Error::DocumentPanicked {
            path: sources[source_index].path.clone(),
            place: sources[source_index].offset_shown(offset),
        },
        other => other,
    }
}

struct Shared<T, E> {
    reader: Mutex<NextChunk>,
    results: OrderedResults<T, E>,
    bytes_read: AtomicU64,
    kept_buffer_bytes: usize,
}

struct NextChunk {
    reader: Reader,
    /// Chunks read so far, including a failed read.
    num_chunks: u64,
    is_at_end: bool,
}

/// Runs `workers`, one per thread, over all chunks of `reader` and passes the results to `consumer`
/// in order.
///
/// Returns the digests of the sources ([`Reader::digests`]).
///
/// # Errors
/// The first error in corpus order, or the error of `consumer`.
pub fn run<W: Work>(
    reader: Reader,
    workers: Vec<W>,
    kept_buffer_bytes: usize,
    consumer: &mut impl Consume<W::Out, W::Error>,
) -> Result<Vec<Option<u32>>, W::Error> {
    let shared = Arc::new(Shared {
        reader: Mutex::new(NextChunk {
            reader,
            num_chunks: 0,
            is_at_end: false,
        }),
        results: OrderedResults::new(workers.len(), 2 * workers.len() + 2),
        bytes_read: AtomicU64::new(0),
        kept_buffer_bytes,
    });
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(workers.len())
        .stack_size(STACK_BYTES)
        .thread_name(|i| format!("packtok-{i}"))
        // Without a handler, a panic outside a document would abort the caller's process.
        .panic_handler(|_| ())
        .build()
        .map_err(|error| Error::from(packtok_jobs::Error::no_pool(&error)))?;
    for worker in workers {
        let shared = Arc::clone(&shared);
        pool.spawn(move || shared.work_until_over(worker));
    }
    // Propagates an error before taking the lock: the reader may hold it while it waits for the
    // disk.
    let num_received = shared.results.receive(consumer, &shared.bytes_read)?;
    let next = lock(&shared.reader);
    match num_received {
        // A worker that panicked outside a document has read a chunk without a result.
        Some(number) if number != next.num_chunks => {
            Err(Error::from(packtok_jobs::Error::WorkerDied).into())
        }
        _ => Ok(next.reader.digests().to_vec()),
    }
}

impl<T: Send + Default + 'static, E: From<Error> + Send + 'static> Shared<T, E> {
    fn work_until_over<W: Work<Out = T, Error = E>>(&self, mut worker: W) {
        let _working = self.results.working();
        let mut buffer = Vec::new();
        while let Some(mut out) = self.results.wait_for_room() {
            let Some((number, chunk)) = self.next_chunk(std::mem::take(&mut buffer)) else {
                break;
            };
            let result = chunk.map_err(E::from).and_then(|chunk| {
                // Unwind safe: `out` is dropped after a panic, the worker clears its buffers before
                // each use, and the run ends with an error.
                let work = AssertUnwindSafe(|| worker.work(&chunk, &mut out));
                let outcome = catch_unwind(work);
                buffer = chunk.into_buffer();
                match outcome {
                    Ok(done) => done.map(|()| out),
                    Err(_) => {
                        let (source, offset) = worker.place();
                        Err(E::from(Error::Panicked {
                            source_index: source,
                            offset,
                        }))
                    }
                }
            });
            if buffer.capacity() > self.kept_buffer_bytes {
                buffer = Vec::new();
            }
            self.results.put(number, result);
        }
    }

    /// The next chunk with its number, or an error in its place; `None` after the last one.
    fn next_chunk(&self, buffer: Vec<u8>) -> Option<(u64, Result<Chunk, Error>)> {
        let mut next = lock(&self.reader);
        if next.is_at_end || self.results.is_over() {
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
