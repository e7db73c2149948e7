//! The specification of a stream: a list of steps, which the caller writes as JSON.
//!
//! [`Operator`] lists the operators, and [`Operator::row`] is the table of what each takes and
//! gives, and which operators it may follow. The arguments of an operator, and how its node is
//! built from them, are in the file of the node; only those of a source of the caller are here,
//! because a cache contains the specification of another stream.

use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use serde::{Deserialize, Serialize, Serializer};

use super::batches::BatchSpec;
use super::builder::{Builder, Flow, OperatorSpec, PlannedStep, Site};
use super::combine::{ConcatSpec, InterleaveSpec};
use super::counting::{EnumerateSpec, SkipSpec, StrideSpec, TakeSpec};
use super::each::{EndsSpec, PadSpec};
use super::files::{FilesSpec, PbinSpec};
use super::fit::PackChunkSpec;
use super::function::{CallSpec, SamplesNode};
use super::lanes::DistributeSpec;
use super::node::Node;
use super::objects::Objects;
use super::parallel::StopCheck;
use super::report::Report;
use super::rows::{ChunkSpec, ConcatChunkSpec};
use super::shuffle::ShuffleSpec;
use super::tokenize::TokenizeSpec;
use crate::error::{Error, Result};

/// An operator with its arguments. Its name in JSON is the name of the variant.
///
/// The serialized form describes the operator in a state. Arguments that do not change the samples,
/// such as the number of threads, are not serialized. States of earlier versions are compared with
/// it, so the names and the order of the fields must not change.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Operator {
    FromFiles(FilesSpec),
    FromPbin(PbinSpec),
    FromSamples(SamplesSpec),
    Concat(ConcatSpec),
    Interleave(InterleaveSpec),
    Call(CallSpec),
    Tokenize(TokenizeSpec),
    Ends(EndsSpec),
    Chunk(ChunkSpec),
    ConcatChunk(ConcatChunkSpec),
    PackChunk(PackChunkSpec),
    Pad(PadSpec),
    Shuffle(ShuffleSpec),
    Distribute(DistributeSpec),
    Take(TakeSpec),
    Skip(SkipSpec),
    Stride(StrideSpec),
    Enumerate(EnumerateSpec),
    Batch(BatchSpec),
}

impl Operator {
    /// The row of this operator in the table.
    fn row(&self) -> Row<'_> {
        use Gives::{Batches, Records, Same, Samples};
        use MayFollow::{Anywhere, BeforeDistribute, BeforeOutputs, EqualRanks, Undivided};
        use Takes::{Nothing, Stream, Streams, UncheckedStream};
        match self {
            Self::FromFiles(spec) => row(spec, Nothing, Records, Anywhere),
            Self::FromPbin(spec) => row(spec, Nothing, Samples, Anywhere),
            Self::FromSamples(spec) => row(spec, Nothing, Samples, Anywhere),
            Self::Concat(spec) => row(spec, Streams, Same, Undivided),
            Self::Interleave(spec) => row(spec, Streams, Same, Undivided),
            Self::Call(spec) => row(spec, Stream, Samples, Anywhere),
            Self::Tokenize(spec) => row(spec, UncheckedStream, Samples, BeforeDistribute),
            Self::Ends(spec) => row(spec, Stream, Samples, Anywhere),
            Self::Chunk(spec) => row(spec, Stream, Samples, BeforeOutputs),
            Self::ConcatChunk(spec) => row(spec, Stream, Samples, BeforeOutputs),
            Self::PackChunk(spec) => row(spec, Stream, Samples, BeforeOutputs),
            Self::Pad(spec) => row(spec, Stream, Samples, Anywhere),
            Self::Shuffle(spec) => row(spec, Stream, Same, BeforeOutputs),
            Self::Distribute(spec) => row(spec, Stream, Same, BeforeDistribute),
            Self::Take(spec) => row(spec, Stream, Same, Anywhere),
            Self::Skip(spec) => row(spec, Stream, Same, EqualRanks),
            Self::Stride(spec) => row(spec, Stream, Same, Anywhere),
            Self::Enumerate(spec) => row(spec, Stream, Same, Anywhere),
            Self::Batch(spec) => row(spec, Stream, Batches, Anywhere),
        }
    }
}

/// A row of the table.
struct Row<'a> {
    spec: &'a dyn OperatorSpec,
    takes: Takes,
    gives: Gives,
    may_follow: MayFollow,
}

fn row(spec: &dyn OperatorSpec, takes: Takes, gives: Gives, may_follow: MayFollow) -> Row<'_> {
    Row {
        spec,
        takes,
        gives,
        may_follow,
    }
}

/// What an operator reads from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// No other step: the operator is a source.
    Nothing,
    /// One stream, of samples or batches. Records of files are checked before they arrive.
    Stream,
    /// One stream. Records of files arrive as they were read.
    UncheckedStream,
    /// One or more streams, as [`Takes::Stream`].
    Streams,
}

/// What an operator yields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Records of files, which were not checked.
    Records,
    /// Documents, rows, or other samples.
    Samples,
    /// Batches. Their samples are stacked when the caller or a function receives them.
    Batches,
    /// Samples or batches, as the operator takes them.
    Same,
}

/// The operators that an operator may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayFollow {
    /// It may follow all operators, as far as its arguments permit.
    Anywhere,
    /// It cannot follow `distribute`: its buffer would make states depend on the number of ranks.
    BeforeDistribute,
    /// In addition, it cannot follow a function whose outputs are in states: loading a state
    /// computes the samples of a buffer again.
    BeforeOutputs,
    /// It cannot follow `distribute`: ranks would have different numbers of rows.
    EqualRanks,
    /// It combines streams, and none of them is divided among ranks.
    Undivided,
}

impl Operator {
    /// Whether the operator can read from this many steps.
    fn takes_inputs(&self, count: usize) -> bool {
        match self.row().takes {
            Takes::Nothing => count == 0,
            Takes::Stream | Takes::UncheckedStream => count == 1,
            Takes::Streams => count > 0,
        }
    }

    /// The stream after this operator.
    fn flow(&self, inputs: &[&Flow]) -> Result<Flow> {
        let Row {
            spec,
            gives,
            may_follow,
            ..
        } = self.row();
        let is_distributed = inputs.iter().any(|input| input.is_distributed);
        let keeps_outputs = inputs.iter().any(|input| input.keeps_outputs);
        match may_follow {
            MayFollow::Undivided if is_distributed => return Err(Error::DividedAlready),
            MayFollow::BeforeDistribute | MayFollow::BeforeOutputs if is_distributed => {
                return Err(Error::AfterDistribute { op: self.name() });
            }
            MayFollow::EqualRanks if is_distributed => {
                return Err(Error::DropsAfterDistribute { op: self.name() });
            }
            MayFollow::BeforeOutputs if keeps_outputs => {
                return Err(Error::AfterOutputs { op: self.name() });
            }
            _ => spec.check(inputs)?,
        }
        let num_ranks = inputs.iter().map(|input| input.num_ranks).max();
        let is_endless = spec.is_endless(inputs);
        let has_endless_lanes = match spec.num_ranks() {
            Some(_) => is_endless,
            None => inputs.iter().any(|input| input.has_endless_lanes),
        };
        Ok(Flow {
            is_endless,
            has_endless_lanes,
            is_batched: match gives {
                Gives::Batches => true,
                Gives::Same => inputs.iter().any(|input| input.is_batched),
                Gives::Records | Gives::Samples => false,
            },
            is_distributed: is_distributed || spec.num_ranks().is_some(),
            keeps_outputs: keeps_outputs || spec.keeps_outputs(),
            num_ranks: spec.num_ranks().or(num_ranks).unwrap_or(1),
            on_bad_document: spec.on_bad_document(inputs),
            has_records: gives == Gives::Records,
        })
    }

    /// The name in messages, which is that in JSON.
    fn name(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        json["op"].as_str().unwrap_or_default().to_owned()
    }
}

/// An operator, and the numbers of the steps that it reads from.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    #[serde(skip_serializing)]
    from: Vec<usize>,
    #[serde(flatten)]
    operator: Operator,
}

/// A stream as a list of steps. Each step comes after the steps that it reads from, and the last
/// step is the stream. The serialized form is the description of the stream in a state.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<Step>")]
pub struct Spec {
    steps: Vec<Step>,
    /// The stream after each step.
    flows: Vec<Flow>,
}

impl Spec {
    /// The specification in `json`, a list of objects.
    ///
    /// # Errors
    /// It is not valid, or a step cannot follow another.
    pub fn from_json(json: &str) -> Result<Self> {
        let steps: Vec<Step> = serde_json::from_str(json).map_err(Error::Spec)?;
        Self::try_from(steps)
    }

    /// What is known of the stream before it runs.
    ///
    /// # Panics
    /// Never: there is at least one step.
    pub fn flow(&self) -> &Flow {
        &self.flows[self.flows.len() - 1]
    }

    /// Builds the node of the stream.
    pub(super) fn build(
        &self,
        objects: &dyn Objects,
        num_threads: usize,
        report: Arc<Report>,
        tick: Arc<StopCheck>,
    ) -> Result<Box<dyn Node>> {
        let steps = self.steps.iter().zip(&self.flows).map(|(step, flow)| {
            let Row { spec, takes, .. } = step.operator.row();
            PlannedStep {
                operator: spec,
                inputs: &step.from,
                takes_records: takes == Takes::UncheckedStream,
                flow,
            }
        });
        Builder::new(steps.collect(), objects, num_threads, report, tick).build()
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.steps.serialize(serializer)
    }
}

impl TryFrom<Vec<Step>> for Spec {
    type Error = Error;

    fn try_from(steps: Vec<Step>) -> Result<Self> {
        let mut flows: Vec<Flow> = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let inputs: Option<Vec<_>> = step.from.iter().map(|&from| flows.get(from)).collect();
            let inputs = inputs.filter(|inputs| step.operator.takes_inputs(inputs.len()));
            let inputs = inputs.ok_or(Error::StepInputs { number })?;
            flows.push(step.operator.flow(&inputs)?);
        }
        if steps.is_empty() {
            return Err(Error::StepInputs { number: 0 });
        }
        Ok(Self { steps, flows })
    }
}

/// Yields the samples of a source of the caller.
#[derive(Debug, Serialize, Deserialize)]
struct SamplesSpec {
    /// The number of the source.
    #[serde(skip_serializing)]
    object: usize,
    #[serde(flatten)]
    source: SamplesSource,
}

/// The kind of a source of the caller, with what a state records of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
enum SamplesSource {
    Sequence {
        length: u64,
        repeat: bool,
        shuffle_seed: Option<u64>,
    },
    Iterable {
        repeat: bool,
    },
    Huggingface {
        features: String,
        repeat: bool,
    },
    Mosaicml {
        repeat: bool,
    },
    /// The samples of another stream, kept in memory.
    Cache {
        recipe: Spec,
        repeat: bool,
    },
}

impl OperatorSpec for SamplesSpec {
    fn check(&self, _: &[&Flow]) -> Result<()> {
        let SamplesSource::Cache { recipe, .. } = &self.source else {
            return Ok(());
        };
        if recipe.flow().is_endless {
            return Err(Error::EndlessCache);
        }
        if recipe.flow().is_distributed {
            return Err(Error::CacheAfterDistribute);
        }
        Ok(())
    }

    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let samples = site.objects().samples(self.object, site.shard())?;
        let policy = site.flow().on_bad_document;
        Ok(Box::new(SamplesNode::new(samples, policy)))
    }

    fn is_endless(&self, _: &[&Flow]) -> bool {
        match self.source {
            SamplesSource::Sequence { repeat, .. }
            | SamplesSource::Iterable { repeat }
            | SamplesSource::Huggingface { repeat, .. }
            | SamplesSource::Mosaicml { repeat }
            | SamplesSource::Cache { repeat, .. } => repeat,
        }
    }

    fn on_bad_document(&self, _: &[&Flow]) -> OnBadDocument {
        match &self.source {
            SamplesSource::Cache { recipe, .. } => recipe.flow().on_bad_document,
            _ => OnBadDocument::Fail,
        }
    }
}
