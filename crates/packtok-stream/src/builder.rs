//! What an operator is, and how its node is built: with the nodes that it reads from, and in each
//! lane that comes before `distribute`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_jobs::Shard;
use packtok_jobs::splitmix;
use serde::Serialize;

use super::check::Check;
use super::lane_files::{Division, LaneFiles};
use super::node::Node;
use super::numbered::{Numbered, NumberedNode, NumberedOptions, documents_of_lane};
use super::objects::Objects;
use super::parallel::{Limits, Operation, Parallel, StopCheck, Workers};
use super::report::Report;
use crate::error::Result;

/// The arguments of an operator.
pub(super) trait OperatorSpec {
    /// Builds the node that runs the operator.
    ///
    /// # Errors
    /// A file is missing or cannot be read, a lane has nothing to read, or threads cannot be
    /// started.
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>>;

    /// Checks the arguments against the streams that the operator reads from.
    ///
    /// # Errors
    /// The arguments do not fit these streams.
    fn check(&self, _inputs: &[&Flow]) -> Result<()> {
        Ok(())
    }

    /// Whether the samples have no end. By default, they end with the first of the inputs.
    fn is_endless(&self, inputs: &[&Flow]) -> bool {
        inputs.iter().all(|input| input.is_endless)
    }

    /// The action for a document without text: by default, that of the inputs, and
    /// [`OnBadDocument::Fail`] if they differ.
    fn on_bad_document(&self, inputs: &[&Flow]) -> OnBadDocument {
        let skips = |input: &&Flow| input.on_bad_document == OnBadDocument::Skip;
        if !inputs.is_empty() && inputs.iter().all(skips) {
            OnBadDocument::Skip
        } else {
            OnBadDocument::Fail
        }
    }

    /// Whether states hold outputs of the operator.
    fn keeps_outputs(&self) -> bool {
        false
    }

    /// Number of ranks among which the operator divides the samples, if it divides them.
    fn num_ranks(&self) -> Option<u64> {
        None
    }
}

/// What is known of a stream before it runs.
#[derive(Debug, Serialize)]
pub struct Flow {
    /// Whether the samples have no end.
    pub is_endless: bool,
    /// Whether samples are batches of this crate, which no function has seen yet.
    pub is_batched: bool,
    /// Whether the samples are divided among ranks.
    pub is_distributed: bool,
    /// Whether the samples are divided among ranks, and no lane ends.
    pub has_endless_lanes: bool,
    /// Whether states hold outputs of a function.
    pub keeps_outputs: bool,
    /// Number of ranks that share the samples; 1 before `distribute`.
    #[serde(skip)]
    pub(super) num_ranks: u64,
    /// The action for a document without text.
    #[serde(skip)]
    pub(super) on_bad_document: OnBadDocument,
    /// Whether samples are records of files that were not checked.
    #[serde(skip)]
    pub(super) has_records: bool,
}

/// A step of a stream, ready to be built.
pub(super) struct PlannedStep<'a> {
    pub(super) operator: &'a dyn OperatorSpec,
    /// The steps that it reads from, all before it.
    pub(super) inputs: &'a [usize],
    /// Whether it takes records of files as they were read. For other operators, records are
    /// checked, because no later step checks them.
    pub(super) takes_records: bool,
    /// The stream after this step.
    pub(super) flow: &'a Flow,
}

/// The state that the nodes of a stream share while they are built.
pub(super) struct Builder<'a> {
    steps: Vec<PlannedStep<'a>>,
    objects: &'a dyn Objects,
    num_threads: usize,
    report: Arc<Report>,
    tick: Arc<StopCheck>,
    workers: SharedByLanes<Arc<Workers>>,
    lane_files: SharedByLanes<Arc<LaneFiles>>,
    numbered: SharedByLanes<Arc<dyn Numbered>>,
}

/// A value of each step that has one. All lanes share it.
struct SharedByLanes<T>(RefCell<BTreeMap<usize, T>>);

impl<T: Clone> SharedByLanes<T> {
    fn new() -> Self {
        Self(RefCell::default())
    }

    /// The value of a step, which `make` makes for the first lane.
    fn get_or_make(&self, step: usize, make: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(value) = self.0.borrow().get(&step) {
            return Ok(value.clone());
        }
        let value = make()?;
        self.0.borrow_mut().insert(step, value.clone());
        Ok(value)
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        steps: Vec<PlannedStep<'a>>,
        objects: &'a dyn Objects,
        num_threads: usize,
        report: Arc<Report>,
        tick: Arc<StopCheck>,
    ) -> Self {
        Self {
            steps,
            objects,
            num_threads,
            report,
            tick,
            workers: SharedByLanes::new(),
            lane_files: SharedByLanes::new(),
            numbered: SharedByLanes::new(),
        }
    }

    /// Builds the node of the last step, with all nodes before it.
    ///
    /// # Errors
    /// As [`OperatorSpec::build`].
    ///
    /// # Panics
    /// If there are no steps.
    pub(super) fn build(&self) -> Result<Box<dyn Node>> {
        let site = Site {
            builder: self,
            step: self.steps.len() - 1,
            lane: None,
        };
        site.checked_node()
    }
}

/// The lane that is built.
#[derive(Clone, Copy)]
pub(super) struct BuiltLane {
    pub(super) shard: Shard,
    /// The rule that divides files among lanes.
    pub(super) division: Division,
    /// Number of the lanes that this rank reads.
    num_read: usize,
}

/// The step that is built, in a lane if it comes before `distribute`.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    builder: &'a Builder<'a>,
    step: usize,
    lane: Option<BuiltLane>,
}

impl<'a> Site<'a> {
    pub(super) fn objects(&self) -> &'a dyn Objects {
        self.builder.objects
    }

    pub(super) fn report(&self) -> Arc<Report> {
        Arc::clone(&self.builder.report)
    }

    pub(super) fn lane(&self) -> Option<BuiltLane> {
        self.lane
    }

    pub(super) fn shard(&self) -> Option<Shard> {
        self.lane.map(|lane| lane.shard)
    }

    fn planned(&self) -> &'a PlannedStep<'a> {
        &self.builder.steps[self.step]
    }

    /// The stream after this step.
    pub(super) fn flow(&self) -> &'a Flow {
        self.planned().flow
    }

    /// The seed of the lane. The first lane uses the seed of the specification; the seeds of other
    /// lanes are unrelated.
    pub(super) fn seed(&self, seed: u64) -> u64 {
        match self.shard().map_or(0, Shard::index) {
            0 => seed,
            index => splitmix::mixed(seed ^ splitmix::mixed(index)),
        }
    }

    /// The nodes that this step reads from.
    pub(super) fn inputs(&self) -> Result<Vec<Box<dyn Node>>> {
        let planned = self.planned();
        let input = |&step: &usize| {
            let site = Site { step, ..*self };
            if planned.takes_records {
                site.node()
            } else {
                site.checked_node()
            }
        };
        planned.inputs.iter().map(input).collect()
    }

    /// The node that this step reads from.
    ///
    /// # Panics
    /// If the step is a source.
    pub(super) fn input(&self) -> Result<Box<dyn Node>> {
        let mut inputs = self.inputs()?;
        Ok(inputs.remove(0))
    }

    /// The node that this step reads from, in each of the lanes with these numbers.
    pub(super) fn lanes(
        &self,
        numbers: &[u64],
        num_lanes: u64,
        division: Division,
    ) -> Result<Vec<(u64, Box<dyn Node>)>> {
        let build = |&number: &u64| {
            let lane = Some(BuiltLane {
                shard: Shard::new(number, num_lanes)?,
                division,
                num_read: numbers.len(),
            });
            Ok((number, Site { lane, ..*self }.input()?))
        };
        let lanes = numbers.iter().map(build).collect::<Result<_>>()?;
        let files = self.builder.lane_files.0.borrow();
        let shares = files.values().filter_map(|files| files.shares()).collect();
        self.builder.report.set_lane_shares(shares);
        Ok(lanes)
    }

    fn node(&self) -> Result<Box<dyn Node>> {
        self.planned().operator.build(self)
    }

    /// The node of this step, after a check if it yields records of files.
    fn checked_node(&self) -> Result<Box<dyn Node>> {
        let node = self.node()?;
        if !self.flow().has_records {
            return Ok(node);
        }
        let report = self.report();
        self.parallel(node, None, || Ok(Arc::new(Check { report })))
    }

    /// A node that works on the samples of `upstream` on threads, which all lanes share. By
    /// default, the limits follow from the number of threads of the stream.
    pub(super) fn parallel(
        &self,
        upstream: Box<dyn Node>,
        limits: Option<Limits>,
        operation: impl FnOnce() -> Result<Arc<dyn Operation>>,
    ) -> Result<Box<dyn Node>> {
        let builder = self.builder;
        let start = || {
            let num_lanes = self.lane.map_or(1, |lane| lane.num_read);
            let of_threads = Limits::of_threads(builder.num_threads, num_lanes);
            let workers = Workers::new(operation()?, limits.unwrap_or(of_threads));
            Ok(Arc::new(workers?))
        };
        let workers = builder.workers.get_or_make(self.step, start)?;
        let lane = self.shard().map_or(0, Shard::index);
        let tick = Arc::clone(&builder.tick);
        Ok(Box::new(Parallel::new(upstream, lane, workers, tick)))
    }

    /// The files of this step, which are divided among lanes.
    pub(super) fn lane_files(
        &self,
        divide: impl FnOnce() -> Result<LaneFiles>,
    ) -> Result<Arc<LaneFiles>> {
        let files = &self.builder.lane_files;
        files.get_or_make(self.step, || Ok(Arc::new(divide()?)))
    }

    /// The node of a source whose documents have numbers.
    pub(super) fn numbered(
        &self,
        options: NumberedOptions,
        open: impl FnOnce() -> Result<Arc<dyn Numbered>>,
    ) -> Result<Box<dyn Node>> {
        let documents = self.builder.numbered.get_or_make(self.step, open)?;
        let options = NumberedOptions {
            shuffle_seed: options.shuffle_seed.map(|seed| self.seed(seed)),
            ..options
        };
        let range = documents_of_lane(&*documents, self.shard())?;
        Ok(Box::new(NumberedNode::new(documents, range, options)))
    }
}
