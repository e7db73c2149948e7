//! Functions of the caller, and sources of samples that the caller has.

use std::collections::VecDeque;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;

use super::Sample;
use super::node::Node;
use super::parallel::{Given, Operation, Outcome, Outputs, Worker};
use super::position::{Numbers, Position, damaged};
use super::sample::{DocumentPart, RowLayout, SampleOrigin, StreamRow};
use crate::error::Result;

/// The position of a sample among all inputs of a function: the lane, and the number of the sample
/// in the lane. For a sample of joined lanes, the lane is `None` and the number is the number of
/// the row.
pub type SampleKey = (Option<u64>, u64);

/// A function of samples. It must return the same for the same sample.
pub trait Function: Send + Sync {
    /// Returns a result for each of `samples`, in order; `None` drops the sample. If there are
    /// fewer results than samples, the error belongs to the next sample.
    ///
    /// `keys` has a key for each sample, which only depends on the sample's position in the
    /// stream.
    fn call(&self, samples: Vec<Sample>, keys: &[SampleKey]) -> (Vec<Option<Sample>>, Result<()>);

    /// Whether states hold its outputs, because it returns others for the same samples later.
    fn keeps_outputs(&self) -> bool;

    /// The bytes of outputs.
    fn pack(&self, samples: &[&Sample]) -> Vec<u8>;

    /// The outputs that [`Function::pack`] serialized.
    ///
    /// # Errors
    /// The bytes are damaged.
    fn unpack(&self, bytes: &[u8]) -> Result<Vec<Sample>>;
}

/// The operation that calls a function.
pub(super) struct Call(pub(super) Arc<dyn Function>);

impl Operation for Call {
    fn worker(&self) -> Result<Box<dyn Worker>> {
        Ok(Box::new(CallWorker(Arc::clone(&self.0))))
    }

    fn outputs(&self) -> Option<&dyn Outputs> {
        self.0.keeps_outputs().then_some(self)
    }
}

impl Outputs for Call {
    fn pack(&self, samples: &[&Sample]) -> Vec<u8> {
        self.0.pack(samples)
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Vec<Sample>> {
        self.0.unpack(bytes)
    }
}

struct CallWorker(Arc<dyn Function>);

impl Worker for CallWorker {
    fn work(&mut self, given: Given, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        let Given {
            lane,
            first,
            mut samples,
        } = given;
        let numbers = (first..).zip(&samples);
        let keys: Vec<_> = numbers
            .map(|(number, sample)| match sample.row {
                Some(row) => (None, row.number),
                None => (Some(lane), number),
            })
            .collect();
        // The caller sees columns only; the rest stays with the sample.
        let kept: Vec<_> = samples.iter_mut().map(Kept::of).collect();
        let (results, ended) = self.0.call(samples, &keys);
        for (result, kept) in results.into_iter().zip(kept) {
            let outcome = result.map_or(Outcome::Drop, |sample| Outcome::Keep(kept.put(sample)));
            if !put(Ok(outcome)) {
                return;
            }
        }
        if let Err(error) = ended {
            put(Err(error));
        }
    }
}

/// The properties of a sample that a function does not change.
struct Kept {
    place: Option<SampleOrigin>,
    on_bad_document: OnBadDocument,
    row: Option<StreamRow>,
    is_absent: bool,
    parts: Option<(Vec<u32>, Vec<DocumentPart>)>,
}

impl Kept {
    fn of(sample: &mut Sample) -> Self {
        let parts = sample.layout.as_mut().map(|layout| {
            let parts = std::mem::take(&mut layout.parts);
            (layout.segments.clone(), parts)
        });
        Self {
            place: sample.place.take(),
            on_bad_document: sample.on_bad_document,
            row: sample.row,
            is_absent: sample.is_absent,
            parts,
        }
    }

    fn put(self, sample: Sample) -> Sample {
        let layout = self.parts.map(|(segments, parts)| {
            Box::new(RowLayout {
                segments,
                parts,
                ..RowLayout::default()
            })
        });
        Sample {
            place: self.place,
            on_bad_document: self.on_bad_document,
            row: self.row,
            is_absent: self.is_absent,
            layout,
            ..sample
        }
    }
}

/// Samples of the caller.
pub trait Samples: Send {
    /// The next samples, at least one and at most `limit`; empty at the end.
    ///
    /// # Errors
    /// The caller's source failed.
    fn next(&mut self, limit: usize) -> Result<Vec<Sample>>;

    /// The state of the source before the next sample, if the source has a state of its own.
    ///
    /// # Errors
    /// The caller's source failed.
    fn state(&mut self) -> Result<Option<Vec<u8>>>;

    /// Moves to sample `number`, counted from the start, where [`Samples::state`] returned
    /// `state`. Called at most once, before all other methods.
    ///
    /// # Errors
    /// The caller's source failed or is shorter.
    fn seek(&mut self, number: u64, state: Option<&[u8]>) -> Result<()>;
}

/// Samples taken from the caller at once.
const BATCH_SAMPLES: usize = 64;

/// The node that yields the caller's samples.
pub(super) struct SamplesNode {
    samples: Box<dyn Samples>,
    on_bad_document: OnBadDocument,
    taken: VecDeque<Sample>,
    number: u64,
    /// The number of the first sample in `taken`, when these samples were taken. `state` is the
    /// state of the source at that sample.
    taken_from: u64,
    state: Option<Vec<u8>>,
    /// Maximum number of samples to take next. It starts low, so that the first sample arrives at
    /// once.
    limit: usize,
}

impl SamplesNode {
    pub(super) fn new(samples: Box<dyn Samples>, on_bad_document: OnBadDocument) -> Self {
        Self {
            samples,
            on_bad_document,
            taken: VecDeque::new(),
            number: 0,
            taken_from: 0,
            state: None,
            limit: 1,
        }
    }

    /// Advances to sample `target`.
    fn skip_to(&mut self, target: u64) -> Result<()> {
        while self.number < target {
            if self.next()?.is_none() {
                return Err(damaged());
            }
        }
        Ok(())
    }
}

impl Node for SamplesNode {
    fn next(&mut self) -> Result<Option<Sample>> {
        if self.taken.is_empty() {
            self.state = self.samples.state()?;
            self.taken_from = self.number;
            self.taken = self.samples.next(self.limit)?.into();
            self.limit = (2 * self.limit).min(BATCH_SAMPLES);
        }
        let sample = self.taken.pop_front();
        self.number += u64::from(sample.is_some());
        Ok(sample.map(|sample| Sample {
            on_bad_document: self.on_bad_document,
            ..sample
        }))
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.number);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let target = mark.number()?;
        self.skip_to(target)
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.number);
        state.push(u64::from(self.state.is_some()));
        if let Some(own) = &self.state {
            state.push(self.taken_from);
            state.push_bytes(own);
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.taken.clear();
        let target = state.number()?;
        (self.number, self.state) = match state.number_to(1)? {
            0 => (target, None),
            _ => (state.number_to(target)?, Some(state.bytes()?.to_vec())),
        };
        self.taken_from = self.number;
        self.samples.seek(self.number, self.state.as_deref())?;
        self.skip_to(target)
    }

    fn set_recomputing(&mut self, _: bool) {}
}
