//! Processes samples on several threads, with results in the order of the samples.
//!
//! A job takes the next samples from the node before it, under a lock, and processes them. The
//! caller's thread takes finished jobs in order and starts new jobs. So a bounded number of jobs
//! runs ahead, even while the caller is busy. Data in flight are not part of a state: the state
//! consists of the state of the node before at the start of the current job, and the number of
//! consumed samples of the job.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use packtok_jobs::lock;

use super::Sample;
use super::node::Node;
use super::position::{Numbers, Position, damaged};
use crate::error::{Error, Result};

/// A job takes samples up to this number of bytes or [`JOB_SAMPLES`]. Large enough that locks and
/// states cost little, small enough that a job's data stay in a core's cache.
const JOB_BYTES: usize = 1 << 18;
const JOB_SAMPLES: usize = 1 << 10;

/// Samples of the first job, which grows with every job: the first results come at once.
const FIRST_JOB_SAMPLES: usize = 4;

/// Minimum number of jobs that run ahead in a lane: one is consumed while the next is processed.
const LANE_WINDOW: usize = 2;

/// Interval at which a waiting caller polls for an interruption.
const TICK: Duration = Duration::from_millis(50);

/// Polls for an interruption, which is an error.
pub type StopCheck = dyn Fn() -> Result<()> + Send + Sync;

/// The result for one sample.
pub(super) enum Outcome {
    /// The sample is passed on.
    Keep(Sample),
    /// The sample is dropped.
    Drop,
}

/// The work on one thread.
pub(super) trait Worker: Send {
    /// Processes samples and passes a result for each to `put`, in order, up to the first error.
    /// `put` returns false when no more results are needed.
    fn work(&mut self, input: Input, put: &mut dyn FnMut(Result<Outcome>) -> bool);
}

/// The samples of a call.
pub(super) struct Input {
    /// The lane of the samples; 0 without lanes.
    pub(super) lane: u64,
    /// Number of the first sample, counted from the start of the stream or lane.
    pub(super) first: u64,
    pub(super) samples: Vec<Sample>,
}

/// The work of a node.
pub(super) trait Operation: Send + Sync {
    /// A worker for one thread.
    fn worker(&self) -> Result<Box<dyn Worker>>;

    /// If states hold outputs: how outputs become bytes.
    fn outputs(&self) -> Option<&dyn Outputs> {
        None
    }
}

/// Converts outputs to bytes and back.
pub(super) trait Outputs {
    /// The bytes of samples.
    fn pack(&self, samples: &[&Sample]) -> Vec<u8>;

    /// The samples that [`Outputs::pack`] packed.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<Sample>>;
}

/// The threads and workers of one step, which all lanes share.
pub(super) struct Workers {
    operation: Arc<dyn Operation>,
    /// The thread pool of this step. Steps do not share a pool: a job waits for the node before,
    /// and in a shared pool the jobs of that node could never start. `None` if the caller's thread
    /// does the work.
    pool: Option<rayon::ThreadPool>,
    idle: Mutex<Vec<Box<dyn Worker>>>,
    limits: Limits,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub(super) fn new(operation: Arc<dyn Operation>, limits: Limits) -> Result<Self> {
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(limits.num_threads)
                .thread_name(|i| format!("packtok-stream-{i}"))
                .panic_handler(|_| ())
                .build()
                .map_err(|error| packtok_jobs::Error::no_pool(&error))
        };
        Ok(Self {
            operation,
            pool: (limits.window > 0).then(start).transpose()?,
            idle: Mutex::default(),
            limits,
        })
    }

    fn borrow(&self) -> Result<Box<dyn Worker>> {
        match lock(&self.idle).pop() {
            Some(worker) => Ok(worker),
            None => self.operation.worker(),
        }
    }
}

/// A node that works on samples in parallel.
pub(super) struct Parallel {
    shared: Arc<Shared>,
    tick: Arc<StopCheck>,
    /// Jobs of this generation.
    num_started: u64,
    num_taken: u64,
    generation: u64,
    current: Task,
    /// Results of the current job that were consumed.
    num_consumed: u64,
    /// Number of nested requests to recompute, from [`Node::set_recomputing`].
    num_recomputing: usize,
}

struct Shared {
    lane: u64,
    workers: Arc<Workers>,
    upstream: Mutex<Upstream>,
    finished: Mutex<Finished>,
    ready: Condvar,
    is_over: AtomicBool,
}

struct Upstream {
    node: Box<dyn Node>,
    /// Number of its next sample, counted from the start of the stream.
    number: u64,
    /// Increases when the node moves to another position. Jobs of earlier generations are
    /// discarded.
    generation: u64,
    /// Number of the next job of this generation.
    next_job: u64,
    is_at_end: bool,
    /// Maximum number of samples of a job.
    job_samples: usize,
}

/// Finished jobs of the current generation that have not been taken yet.
#[derive(Default)]
struct Finished {
    generation: u64,
    jobs: BTreeMap<u64, Task>,
}

/// The samples of a job and the results so far.
#[derive(Default)]
struct Task {
    /// Number of its first sample, counted from the start of the stream.
    first: u64,
    /// State and mark of the node before, at the start of the job.
    state: Numbers,
    mark: Numbers,
    num_samples: u64,
    results: VecDeque<Result<Outcome>>,
    /// Whether there are no samples after these.
    is_last: bool,
}

/// Limits of the work that runs ahead of the caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Jobs that run ahead; with 0, the caller's thread works.
    pub(super) window: usize,
    /// Threads, if jobs run ahead.
    pub(super) num_threads: usize,
    /// Maximum number of samples of a job, at least 1.
    pub(super) job_samples: usize,
}

impl Limits {
    /// Limits for work on `num_threads` threads besides the caller's. The lanes share the jobs
    /// that run ahead, so that memory does not grow with the number of lanes.
    pub(super) fn of_threads(num_threads: usize, num_lanes: usize) -> Self {
        Self {
            window: (2 * num_threads + 2).div_ceil(num_lanes).max(LANE_WINDOW),
            num_threads,
            job_samples: JOB_SAMPLES,
        }
    }
}

/// The input of a job, taken from the node before.
struct Taken {
    job: Task,
    samples: Vec<Sample>,
    /// The error after the samples.
    error: Option<Error>,
}

impl Parallel {
    /// Jobs run ahead on the threads of `workers`.
    pub(super) fn new(
        node: Box<dyn Node>,
        lane: u64,
        workers: Arc<Workers>,
        tick: Arc<StopCheck>,
    ) -> Self {
        let shared = Shared {
            lane,
            upstream: Mutex::new(Upstream {
                node,
                number: 0,
                generation: 0,
                next_job: 0,
                is_at_end: false,
                job_samples: workers.limits.job_samples.min(JOB_SAMPLES),
            }),
            finished: Mutex::default(),
            ready: Condvar::new(),
            workers,
            is_over: AtomicBool::new(false),
        };
        let mut this = Self {
            shared: Arc::new(shared),
            tick,
            num_started: 0,
            num_taken: 0,
            generation: 0,
            current: Task::default(),
            num_consumed: 0,
            num_recomputing: 0,
        };
        this.begin();
        this
    }

    /// Forgets all jobs: from now on, only this thread uses the node before.
    fn stop_jobs(&mut self) {
        self.generation += 1;
        let mut upstream = lock(&self.shared.upstream);
        upstream.generation = self.generation;
        upstream.next_job = 0;
        upstream.is_at_end = false;
        *lock(&self.shared.finished) = Finished {
            generation: self.generation,
            jobs: BTreeMap::new(),
        };
        (self.num_started, self.num_taken) = (0, 0);
    }

    /// Begins at the position of the node before; no jobs may be started.
    fn begin(&mut self) {
        self.current = lock(&self.shared.upstream).empty_job();
        self.num_consumed = 0;
    }

    /// Starts jobs until the window is full.
    fn start_jobs(&mut self) {
        let workers = Arc::clone(&self.shared.workers);
        let Some(pool) = &workers.pool else {
            return;
        };
        while self.num_started < self.num_taken + workers.limits.window as u64 {
            let (shared, generation) = (Arc::clone(&self.shared), self.generation);
            pool.spawn_fifo(move || shared.run_job(generation));
            self.num_started += 1;
        }
    }

    /// Waits for the next job.
    fn take_job(&mut self) -> Result<Task> {
        let mut finished = lock(&self.shared.finished);
        loop {
            if let Some(job) = finished.jobs.remove(&self.num_taken) {
                self.num_taken += 1;
                return Ok(job);
            }
            let waited = self.shared.ready.wait_timeout(finished, TICK);
            let timeout;
            (finished, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                drop(finished);
                (self.tick)()?;
                finished = lock(&self.shared.finished);
            }
        }
    }

    /// Calls `use_it` with the job from whose start the next sample can be reached, and the number
    /// of samples in between.
    fn with_position(&self, use_it: impl FnOnce(&Task, u64)) {
        // No work is ahead of this thread, so the node before is at the next sample.
        let is_here = self.num_recomputing > 0
            || (self.shared.workers.pool.is_none() && self.current.results.is_empty());
        if is_here {
            use_it(&lock(&self.shared.upstream).empty_job(), 0)
        } else {
            use_it(&self.current, self.num_consumed)
        }
    }

    /// Appends the finished outputs, and before them the position after these.
    fn save_outputs(&self, outputs: &dyn Outputs, state: &mut Numbers) {
        let finished = lock(&self.shared.finished);
        let mut jobs = vec![&self.current];
        let numbers = self.num_taken..;
        jobs.extend(numbers.map_while(|number| finished.jobs.get(&number)));
        let is_complete = |job: &&Task| job.results.iter().all(std::result::Result::is_ok);
        // Outputs before an error are computed again with it.
        jobs.truncate(jobs.iter().take_while(|job| is_complete(job)).count());
        let Some(last) = jobs.last() else {
            state.push(self.current.first);
            state.append(&self.current.state);
            state.push(self.num_consumed);
            return state.push_bytes(&outputs.pack(&[]));
        };
        state.push(last.first);
        state.append(&last.state);
        state.push(last.num_samples);
        let results = jobs.iter().flat_map(|job| &job.results);
        let kept: Vec<_> = results
            .filter_map(|result| match result {
                Ok(Outcome::Keep(sample)) => Some(sample),
                _ => None,
            })
            .collect();
        state.push_bytes(&outputs.pack(&kept));
    }

    /// The next sample, computed on this thread.
    fn next_here(&mut self) -> Result<Option<Sample>> {
        loop {
            let mut upstream = lock(&self.shared.upstream);
            let first = upstream.number;
            let Some(sample) = upstream.next()? else {
                return Ok(None);
            };
            drop(upstream);
            let input = Input {
                lane: self.shared.lane,
                first,
                samples: vec![sample],
            };
            let mut worker = self.shared.workers.borrow()?;
            let mut outcome = Ok(Outcome::Drop);
            worker.work(input, &mut |result| {
                outcome = result;
                true
            });
            lock(&self.shared.workers.idle).push(worker);
            if let Outcome::Keep(sample) = outcome? {
                return Ok(Some(sample));
            }
        }
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Upstream {
    fn next(&mut self) -> Result<Option<Sample>> {
        let sample = self.node.next()?;
        self.number += u64::from(sample.is_some());
        Ok(sample)
    }

    /// Advances to sample `number`.
    fn skip_to(&mut self, number: u64) -> Result<()> {
        while self.number < number {
            if self.next()?.is_none() {
                return Err(damaged());
            }
        }
        Ok(())
    }

    /// A job without samples at the current position.
    fn empty_job(&self) -> Task {
        let (mut state, mut mark) = (Numbers::default(), Numbers::default());
        self.node.save(&mut state);
        self.node.mark(&mut mark);
        Task {
            first: self.number,
            state,
            mark,
            ..Task::default()
        }
    }

    /// The next samples, with the job that they belong to.
    fn take_samples(&mut self) -> Taken {
        let doublings = self.next_job.min(JOB_SAMPLES.ilog2().into()) as u32;
        let num_samples = (FIRST_JOB_SAMPLES << doublings).min(self.job_samples);
        let mut taken = Taken {
            job: self.empty_job(),
            samples: Vec::new(),
            error: None,
        };
        let mut num_bytes = 0;
        while num_bytes < JOB_BYTES && taken.samples.len() < num_samples {
            match self.next() {
                Ok(Some(sample)) => {
                    num_bytes += sample.len_bytes();
                    taken.samples.push(sample);
                    continue;
                }
                Ok(None) => {}
                Err(error) => taken.error = Some(error),
            }
            taken.job.is_last = true;
            break;
        }
        self.is_at_end = taken.job.is_last;
        taken
    }
}

impl Shared {
    /// Takes the next samples and works on them; on a thread of the pool.
    fn run_job(&self, generation: u64) {
        let mut upstream = lock(&self.upstream);
        let is_wanted = upstream.generation == generation && !upstream.is_at_end;
        if !is_wanted || self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let number = upstream.next_job;
        upstream.next_job += 1;
        // A panic of the node would leave the caller waiting for this job.
        let taken = catch_unwind(AssertUnwindSafe(|| upstream.take_samples()));
        let taken = taken.unwrap_or_else(|_| {
            upstream.is_at_end = true;
            Taken {
                job: Task::default(),
                samples: Vec::new(),
                error: Some(panicked()),
            }
        });
        drop(upstream);
        let job = self.work_on(taken);
        let mut finished = lock(&self.finished);
        if finished.generation == generation {
            finished.jobs.insert(number, job);
            self.ready.notify_all();
        }
    }

    /// The job with the results for its samples, up to the first error.
    fn work_on(&self, taken: Taken) -> Task {
        let Taken {
            mut job,
            samples,
            error,
        } = taken;
        let results = &mut job.results;
        let num_samples = samples.len();
        job.num_samples = num_samples as u64;
        match self.workers.borrow() {
            Ok(mut worker) => {
                let put = &mut |result| {
                    results.push_back(result);
                    !self.is_over.load(Ordering::Relaxed)
                };
                let input = Input {
                    lane: self.lane,
                    first: job.first,
                    samples,
                };
                let work = AssertUnwindSafe(|| worker.work(input, put));
                match catch_unwind(work) {
                    Ok(()) => lock(&self.workers.idle).push(worker),
                    Err(_) => results.push_back(Err(panicked())),
                }
            }
            Err(error) => results.push_back(Err(error)),
        }
        if results.len() == num_samples
            && let Some(error) = error
        {
            results.push_back(Err(error));
        }
        job
    }
}

fn panicked() -> Error {
    Error::Panicked
}

impl Node for Parallel {
    fn next(&mut self) -> Result<Option<Sample>> {
        if self.num_recomputing > 0 {
            return self.next_here();
        }
        loop {
            while let Some(result) = self.current.results.pop_front() {
                self.num_consumed += 1;
                if let Outcome::Keep(sample) = result? {
                    return Ok(Some(sample));
                }
            }
            if self.current.is_last {
                return Ok(None);
            }
            if self.shared.workers.pool.is_none() {
                self.shared.run_job(self.generation);
            }
            self.start_jobs();
            self.current = self.take_job()?;
            self.num_consumed = 0;
            self.start_jobs();
        }
    }

    fn mark(&self, mark: &mut Numbers) {
        self.with_position(|job, num_consumed| {
            mark.push(job.first);
            mark.push_bytes(job.mark.bytes());
            mark.push(num_consumed);
        });
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.stop_jobs();
        let (first, before) = (mark.number()?, mark.bytes()?);
        let num_consumed = mark.number_to(JOB_SAMPLES as u64)?;
        {
            let mut upstream = lock(&self.shared.upstream);
            if upstream.number < first {
                let mut position = Position::new(before);
                upstream.node.advance(&mut position)?;
                position.finish()?;
                upstream.number = first;
            }
            upstream.skip_to(first.saturating_add(num_consumed))?;
        }
        self.begin();
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        if let Some(outputs) = self.shared.workers.operation.outputs() {
            return self.save_outputs(outputs, state);
        }
        self.with_position(|job, num_consumed| {
            state.push(job.first);
            state.append(&job.state);
            state.push(num_consumed);
        });
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.stop_jobs();
        {
            let mut upstream = lock(&self.shared.upstream);
            let first = state.number()?;
            upstream.node.load(state)?;
            upstream.number = first;
            let num_consumed = state.number_to(JOB_SAMPLES as u64)?;
            upstream.skip_to(first.saturating_add(num_consumed))?;
        }
        self.begin();
        if let Some(outputs) = self.shared.workers.operation.outputs() {
            let kept = outputs.unpack(state.bytes()?)?.into_iter();
            self.current.results = kept.map(|sample| Ok(Outcome::Keep(sample))).collect();
        }
        Ok(())
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        lock(&self.shared.upstream)
            .node
            .set_recomputing(is_recomputing);
        if is_recomputing {
            self.num_recomputing += 1
        } else {
            self.num_recomputing -= 1
        }
        // Keeps results that came from a state and were not recomputed.
        let kept = std::mem::take(&mut self.current.results);
        self.begin();
        self.current.results = kept;
    }
}
