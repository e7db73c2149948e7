//! Calls the caller's functions, and yields the samples of the caller's sources.

use std::collections::VecDeque;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Sample;
use super::builder::{Flow, OperatorSpec, Site};
use super::node::Node;
use super::objects::{Function, Samples};
use super::parallel::{Input, Limits, Operation, Outcome, Outputs, Worker};
use super::position::{Numbers, Position, damaged};
use super::sample::{DocumentPart, RowLayout, SampleOrigin, StreamRow};
use crate::error::{Error, Result};

/// Calls a function with each sample.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallSpec {
    /// The number of the function.
    #[serde(skip_serializing)]
    object: usize,
    /// How far the calls run ahead; `None` if the caller's thread calls.
    #[serde(skip_serializing)]
    ahead: Option<Ahead>,
    /// Whether states hold outputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keeps_outputs: bool,
    method: Method,
    /// The function in a state: the seed of its generators, its name or version, and its arguments.
    seed: Option<u64>,
    function: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_column: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokenizer_kwargs: Option<String>,
}

/// Calls that run ahead of the caller.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Ahead {
    num_workers: usize,
    /// Maximum number of samples of a job.
    job_samples: usize,
}

/// The method of the caller, which decides what becomes of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    Map,
    Filter,
    FilterMap,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Filter => "filter",
            Self::FilterMap => "filter_map",
        }
    }
}

/// Samples in a call on the caller's thread.
const CALLED_SAMPLES: usize = 64;

impl OperatorSpec for CallSpec {
    fn check(&self, inputs: &[&Flow]) -> Result<()> {
        if !inputs.iter().any(|input| input.is_distributed) {
            return Ok(());
        }
        if self.ahead.is_some() {
            return Err(Error::ParallelAfterDistribute);
        }
        match self.method {
            Method::Map => Ok(()),
            method => Err(Error::DropsAfterDistribute {
                op: method.name().to_owned(),
            }),
        }
    }

    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let limits = match self.ahead {
            Some(ahead) => Limits {
                window: ahead.num_workers,
                num_threads: ahead.num_workers,
                job_samples: ahead.job_samples,
            },
            // After `distribute`, no function may run ahead of the row that all ranks share.
            None => Limits {
                window: 0,
                num_threads: 0,
                job_samples: if site.flow().is_distributed {
                    1
                } else {
                    CALLED_SAMPLES
                },
            },
        };
        site.parallel(site.input()?, Some(limits), || {
            Ok(Arc::new(Call(site.objects().function(self.object)?)))
        })
    }

    fn keeps_outputs(&self) -> bool {
        self.keeps_outputs
    }
}

/// The operation that calls a function.
struct Call(Arc<dyn Function>);

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
    fn work(&mut self, input: Input, put: &mut dyn FnMut(Result<Outcome>) -> bool) {
        let Input {
            lane,
            first,
            mut samples,
        } = input;
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
