//! A stream as data: what reads, and what is done to the samples.

use std::sync::Arc;

use packtok_sampling::order::mixture::Mixture;

use super::batches::Batches;
use super::check::Check;
use super::combine::{Concat, Interleave};
use super::counting::{Counter, Counting};
use super::function::{Call, Function, Samples, SamplesNode};
use super::node::Node;
use super::parallel::{Limits, Operation, Parallel, Tick};
use super::report::Report;
use super::ring::{Ring, RingOptions};
use super::rows::{RowOptions, Rows};
use super::shuffle::Shuffle;
use super::tokenize::{Tokenize, TokenizeOptions};
use crate::corpus::{ReadOptions, Source};
use crate::error::{Error, Result};
use crate::pack::OnBadDocument;

/// A stream.
pub enum Recipe {
    /// The records of files.
    Files {
        /// The files.
        sources: Arc<[Source]>,
        /// How they are read.
        read: ReadOptions,
        /// In what order.
        ring: RingOptions,
    },
    /// The caller's samples.
    Samples(Box<dyn Samples>),
    /// Several streams, one after the other.
    Concat(Vec<Recipe>),
    /// Several streams, at least one, in fixed proportions.
    Interleave {
        /// The streams.
        streams: Vec<Recipe>,
        /// Their proportions, one for each.
        weights: Vec<u64>,
    },
    /// Something is done to the samples of a stream.
    Step(Box<Recipe>, Step),
}

/// What is done to the samples of a stream.
pub enum Step {
    /// A function of the caller is called.
    Call {
        /// The function.
        function: Arc<dyn Function>,
        /// How many calls may run ahead.
        limits: Limits,
    },
    /// Records are checked, so that all that come after it are JSON objects or texts.
    Check(OnBadDocument),
    /// Documents are tokenized.
    Tokenize(TokenizeOptions),
    /// Rows are made of documents.
    Rows(RowOptions),
    /// Samples are shuffled through a buffer.
    Shuffle {
        /// Samples in the buffer, at least 1.
        size: usize,
        /// The seed.
        seed: u64,
    },
    /// Samples are counted.
    Count(Counting),
    /// Samples are grouped.
    Batch {
        /// Samples per batch, at least 1.
        size: usize,
        /// Whether an incomplete last batch is dropped.
        drop_last: bool,
    },
}

/// What the nodes of a stream share.
pub(super) struct Context {
    pub(super) num_threads: usize,
    pub(super) report: Arc<Report>,
    pub(super) tick: Arc<Tick>,
}

impl Recipe {
    /// The first node of the stream, which is the last step.
    pub(super) fn build(self, context: &Context) -> Result<Box<dyn Node>> {
        let build_all = |recipes: Vec<Self>| {
            let nodes = recipes.into_iter().map(|recipe| recipe.build(context));
            nodes.collect::<Result<Vec<_>>>()
        };
        Ok(match self {
            Self::Files {
                sources,
                read,
                ring,
            } => Box::new(Ring::new(sources, read, ring)),
            Self::Samples(samples) => Box::new(SamplesNode::new(samples)),
            Self::Concat(streams) => Box::new(Concat::new(build_all(streams)?)),
            Self::Interleave { streams, weights } => {
                let mixture = Mixture::new(&weights);
                let mixture = mixture.map_err(|error| Error::Sampling(Box::new(error)))?;
                Box::new(Interleave::new(build_all(streams)?, mixture))
            }
            Self::Step(upstream, step) => step.build(upstream.build(context)?, context)?,
        })
    }
}

impl Step {
    fn build(self, upstream: Box<dyn Node>, context: &Context) -> Result<Box<dyn Node>> {
        let parallel = |upstream, operation: Arc<dyn Operation>, limits| {
            Parallel::new(upstream, operation, Arc::clone(&context.tick), limits)
        };
        let limits_of_threads = Limits::of_threads(context.num_threads);
        Ok(match self {
            Self::Call { function, limits } => {
                Box::new(parallel(upstream, Arc::new(Call(function)), limits)?)
            }
            Self::Tokenize(options) => {
                let report = Arc::clone(&context.report);
                let operation = Arc::new(Tokenize::new(options, report)?);
                Box::new(parallel(upstream, operation, limits_of_threads)?)
            }
            Self::Check(on_bad_document) => {
                let report = Arc::clone(&context.report);
                let operation = Arc::new(Check::new(on_bad_document, report));
                Box::new(parallel(upstream, operation, limits_of_threads)?)
            }
            Self::Rows(options) => Box::new(Rows::new(upstream, options)),
            Self::Shuffle { size, seed } => Box::new(Shuffle::new(upstream, size, seed)),
            Self::Count(counting) => Box::new(Counter::new(upstream, counting)),
            Self::Batch { size, drop_last } => Box::new(Batches::new(upstream, size, drop_last)),
        })
    }
}
