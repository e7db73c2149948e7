//! A stream as data: the sources, and the steps that process the samples.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use packtok_corpus::OnBadDocument;
use packtok_corpus::{ReadOptions, Source};
use packtok_dataset::order::mixture::Mixture;
use packtok_jobs::lock;

use super::batches::Batches;
use super::check::Check;
use super::combine::{Concat, Interleave};
use super::counting::{Counter, Counting};
use super::each::Change;
use super::fit::Fit;
use super::function::{Call, Function, Samples, SamplesNode};
use super::lane_files::LaneShares;
use super::lanes::{Lanes, Ranks};
use super::node::{Node, Stateless};
use super::numbered::{Numbered, NumberedNode, NumberedOptions};
use super::parallel::{Limits, Operation, Parallel, StopCheck, Workers};
use super::report::Report;
use super::ring::{Ring, RingOptions};
use super::rows::{RowOptions, Rows};
use super::shuffle::Shuffle;
use super::tokenize::{Tokenize, TokenizeOptions};
use crate::error::Result;

/// A stream.
pub enum Recipe {
    /// The records of files.
    Files {
        /// The files.
        sources: Arc<[Source]>,
        /// Options for reading the files.
        read: ReadOptions,
        /// The order of the records.
        ring: RingOptions,
    },
    /// Documents by their numbers.
    Numbered {
        /// The documents.
        documents: Arc<dyn Numbered>,
        /// The numbers of the documents to read.
        range: Range<u64>,
        /// The order of the documents.
        options: NumberedOptions,
    },
    /// The caller's samples.
    Samples {
        /// The samples.
        samples: Box<dyn Samples>,
        /// The action for a sample without text.
        on_bad_document: OnBadDocument,
    },
    /// Several streams, one after the other.
    Concat(Vec<Recipe>),
    /// Several streams, at least one, in fixed proportions.
    Interleave {
        /// The streams.
        streams: Vec<Recipe>,
        /// The weight of each stream.
        weights: Vec<u64>,
    },
    /// Lanes, joined to one stream that ranks share.
    Lanes {
        /// The lanes that this rank reads, with their numbers.
        lanes: Vec<(u64, Recipe)>,
        /// Number of all lanes.
        num_lanes: u64,
        /// The ranks.
        ranks: Ranks,
        /// The bytes that each lane reads, for each source of files.
        shares: Vec<LaneShares>,
    },
    /// Something is done to the samples of a stream.
    Step(Box<Recipe>, Step),
}

/// A step that processes the samples of a stream.
pub enum Step {
    /// Threads work on each sample. Lanes share the threads.
    Work(Arc<Work>),
    /// Rows are made of documents.
    Rows(RowOptions),
    /// Complete documents are combined into rows by best fit. A document longer than a row is
    /// divided.
    Fit {
        /// Options of the rows.
        options: RowOptions,
        /// Documents that are planned together, at least 1.
        window: usize,
    },
    /// Each sample is changed.
    Each(Change),
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
        /// Whether columns of tokens are stacked. Otherwise, the caller combines them.
        stacks: bool,
    },
}

/// Work on each sample, and the threads that do it once it has started.
pub struct Work {
    kind: WorkKind,
    workers: Mutex<Option<Arc<Workers>>>,
}

/// The kind of work on each sample.
pub enum WorkKind {
    /// A function of the caller is called.
    Call {
        /// The function.
        function: Arc<dyn Function>,
        /// Limits of the calls that run ahead.
        limits: Limits,
    },
    /// Records are checked, so that all that come after it are JSON objects or texts.
    Check,
    /// Documents are tokenized.
    Tokenize(Arc<TokenizeOptions>),
}

impl Work {
    /// Work whose threads have not been started.
    pub fn new(kind: WorkKind) -> Arc<Self> {
        Arc::new(Self {
            kind,
            workers: Mutex::default(),
        })
    }

    /// The threads and workers, which are started at the first call.
    fn workers(&self, context: &Context) -> Result<Arc<Workers>> {
        let mut started = lock(&self.workers);
        if let Some(workers) = &*started {
            return Ok(Arc::clone(workers));
        }
        let report = Arc::clone(&context.report);
        let of_threads = Limits::of_threads(context.num_threads, context.num_lanes);
        let (operation, limits): (Arc<dyn Operation>, _) = match &self.kind {
            WorkKind::Call { function, limits } => (Arc::new(Call(Arc::clone(function))), *limits),
            WorkKind::Check => (Arc::new(Check { report }), of_threads),
            WorkKind::Tokenize(options) => {
                let tokenize = Tokenize::new(Arc::clone(options), report)?;
                (Arc::new(tokenize), of_threads)
            }
        };
        let workers = Arc::new(Workers::new(operation, limits)?);
        *started = Some(Arc::clone(&workers));
        Ok(workers)
    }
}

/// The state that the nodes of a stream share.
pub(super) struct Context {
    pub(super) num_threads: usize,
    /// The lane that is built; 0 without lanes.
    pub(super) lane: u64,
    /// The number of lanes that are built; 1 without lanes.
    pub(super) num_lanes: usize,
    pub(super) report: Arc<Report>,
    pub(super) tick: Arc<StopCheck>,
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
            Self::Numbered {
                documents,
                range,
                options,
            } => Box::new(NumberedNode::new(documents, range, options)),
            Self::Samples {
                samples,
                on_bad_document,
            } => Box::new(SamplesNode::new(samples, on_bad_document)),
            Self::Concat(streams) => Box::new(Concat::new(build_all(streams)?)),
            Self::Interleave { streams, weights } => {
                let mixture = Mixture::new(&weights);
                let mixture = mixture?;
                Box::new(Interleave::new(build_all(streams)?, mixture))
            }
            Self::Lanes {
                lanes,
                num_lanes,
                ranks,
                shares,
            } => {
                context.report.set_lane_shares(shares);
                let num_built = lanes.len();
                let build = |(number, lane): (u64, Self)| {
                    let context = Context {
                        lane: number,
                        num_lanes: num_built,
                        num_threads: context.num_threads,
                        report: Arc::clone(&context.report),
                        tick: Arc::clone(&context.tick),
                    };
                    Ok((number, lane.build(&context)?))
                };
                let nodes = lanes.into_iter().map(build).collect::<Result<Vec<_>>>()?;
                Box::new(Lanes::new(nodes, num_lanes, ranks))
            }
            Self::Step(upstream, step) => step.build(upstream.build(context)?, context)?,
        })
    }
}

impl Step {
    fn build(self, upstream: Box<dyn Node>, context: &Context) -> Result<Box<dyn Node>> {
        Ok(match self {
            Self::Work(work) => {
                let workers = work.workers(context)?;
                let tick = Arc::clone(&context.tick);
                Box::new(Parallel::new(upstream, context.lane, workers, tick))
            }
            Self::Rows(options) => {
                Box::new(Rows::new(upstream, options, Arc::clone(&context.report)))
            }
            Self::Fit { options, window } => Box::new(Fit::new(upstream, options, window)),
            Self::Each(change) => Box::new(Stateless::new(upstream, change)),
            Self::Shuffle { size, seed } => Box::new(Shuffle::new(upstream, size, seed)),
            Self::Count(counting) => Box::new(Counter::new(upstream, counting)),
            Self::Batch {
                size,
                drop_last,
                stacks,
            } => {
                let batches = Batches {
                    size,
                    drop_last,
                    stacks,
                };
                Box::new(Stateless::new(upstream, batches))
            }
        })
    }
}
