//! Functions of the caller, and sources of samples that the caller has.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Sample;
use super::node::Node;
use super::parallel::{Operation, Outcome, Worker};
use super::position::{Numbers, Position, damaged};
use crate::error::Result;

/// A function of samples. It must return the same for the same sample.
pub trait Function: Send + Sync {
    /// Returns a result for each of `samples`, in order; `None` drops the sample. Fewer results than
    /// samples are followed by the error.
    fn call(&self, samples: Vec<Sample>) -> (Vec<Option<Sample>>, Result<()>);
}

/// The operation that calls a function.
pub(super) struct Call(pub(super) Arc<dyn Function>);

impl Operation for Call {
    fn worker(&self) -> Result<Box<dyn Worker>> {
        Ok(Box::new(CallWorker(Arc::clone(&self.0))))
    }
}

struct CallWorker(Arc<dyn Function>);

impl Worker for CallWorker {
    fn work(&mut self, samples: Vec<Sample>, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        let (results, ended) = self.0.call(samples);
        for result in results {
            let outcome = result.map_or(Outcome::Drop, Outcome::Keep);
            if !put(Ok(outcome)) {
                return;
            }
        }
        if let Err(error) = ended {
            put(Err(error));
        }
    }
}

/// Samples of the caller.
pub trait Samples: Send {
    /// The next samples, at least one and at most `limit`; none at the end.
    ///
    /// # Errors
    /// The caller's source failed.
    fn next(&mut self, limit: usize) -> Result<Vec<Sample>>;

    /// Goes to sample `number`, counted from the start. Called before anything else, or never.
    ///
    /// # Errors
    /// The caller's source failed or is shorter.
    fn seek(&mut self, number: u64) -> Result<()>;
}

/// Samples taken from the caller at once.
const BATCH_SAMPLES: usize = 64;

/// The node that yields the caller's samples.
pub(super) struct SamplesNode {
    samples: Box<dyn Samples>,
    taken: VecDeque<Sample>,
    number: u64,
    /// Samples to take next: few at first, so that the first one comes at once.
    limit: usize,
}

impl SamplesNode {
    pub(super) fn new(samples: Box<dyn Samples>) -> Self {
        Self {
            samples,
            taken: VecDeque::new(),
            number: 0,
            limit: 1,
        }
    }
}

impl Node for SamplesNode {
    fn next(&mut self) -> Result<Option<Sample>> {
        if self.taken.is_empty() {
            self.taken = self.samples.next(self.limit)?.into();
            self.limit = (2 * self.limit).min(BATCH_SAMPLES);
        }
        let sample = self.taken.pop_front();
        self.number += u64::from(sample.is_some());
        Ok(sample)
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.number);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let target = mark.number()?;
        while self.number < target {
            if self.next()?.is_none() {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.number);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.taken.clear();
        self.number = state.number()?;
        self.samples.seek(self.number)
    }

    fn set_recomputing(&mut self, _: bool) {}
}
