//! Streams: documents are read, tokenized, made into rows, shuffled and batched while the caller
//! consumes them.
//!
//! A stream is a chain of nodes (`node.rs`). The caller's thread pulls samples through the chain;
//! only tokenizing and functions run ahead on other threads (`parallel.rs`). The samples depend on
//! the recipe only.
//!
//! A state contains positions and no data. It is complete at any time, because every node can name
//! the position from which it can recompute its next sample (`position.rs`).
#![forbid(unsafe_code)]

mod batches;
mod check;
mod combine;
mod counting;
mod each;
mod error;
mod fit;
mod function;
mod lane_files;
mod lanes;
mod locate;
mod node;
mod numbered;
mod parallel;
mod position;
mod recipe;
mod report;
mod ring;
mod rows;
mod sample;
mod shuffle;
mod spec;
mod tokenize;
mod value;

use std::sync::Arc;

pub use counting::Counting;
pub use each::Change;
pub use error::{Error, Result};
pub use function::{Function, SampleKey, Samples};
pub use lane_files::LaneShares;
pub use lanes::Ranks;
pub use locate::{LocatedRow, take_located};
use node::Node;
pub use numbered::{Numbered, NumberedOptions};
pub use parallel::{Limits, StopCheck};
pub use position::LaneStates;
use position::{Numbers, Position, packed, unpacked};
use recipe::Context;
pub use recipe::{Recipe, Step, Work, WorkKind};
use report::Report;
pub use report::{Bad, StreamCounts};
pub use ring::RingOptions;
pub use rows::{RowOptions, RowsOf};
pub use sample::{
    DocumentPart, ForeignSample, LabelKind, Name, OriginFiles, RowFields, RowLayout, Sample,
    SampleOrigin, SourceRecord, TokenForm,
};
pub use spec::{Objects, RecipeSpec};
pub use tokenize::TokenizeOptions;
pub use value::{Found, Value};

/// The state of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamState {
    /// The position, which is the same on all ranks.
    pub position: Vec<u8>,
    /// The positions in the lanes that this rank reads.
    pub lanes: LaneStates,
}

/// A running stream.
pub struct Stream {
    node: Box<dyn Node>,
    report: Arc<Report>,
    failure: Option<String>,
}

impl Stream {
    /// Starts a stream at its beginning, or at `state`. `tick` is called while the caller waits.
    ///
    /// # Errors
    /// Threads cannot be started, or the state belongs to another recipe.
    pub fn new(
        recipe: Recipe,
        num_threads: usize,
        state: Option<&StreamState>,
        tick: Arc<StopCheck>,
    ) -> Result<Self> {
        let context = Context {
            num_threads,
            lane: 0,
            num_lanes: 1,
            report: Arc::default(),
            tick,
        };
        let mut node = recipe.build(&context)?;
        if let Some(state) = state {
            let shared = unpacked(&state.position)?;
            let mut position = Position::new(&shared);
            position.lanes = Some(&state.lanes);
            node.set_recomputing(true);
            node.load(&mut position)?;
            position.finish()?;
            node.set_recomputing(false);
        }
        Ok(Self {
            node,
            report: context.report,
            failure: None,
        })
    }

    /// The next sample; `None` at the end.
    ///
    /// # Errors
    /// A source cannot be read, a document is bad, or a function failed. Every later call is an
    /// error, too.
    pub fn next_sample(&mut self) -> Result<Option<Sample>> {
        if let Some(failure) = &self.failure {
            return Err(Error::Failed(failure.clone()));
        }
        let next = loop {
            match self.node.next() {
                Ok(Some(sample)) if sample.is_absent => {}
                next => break next,
            }
        };
        if let Err(error) = &next {
            self.failure = Some(packtok_pbin::chain(error));
        }
        next
    }

    /// Ends the stream: every later call of [`Stream::next_sample`] is an error with this reason.
    pub fn fail(&mut self, reason: String) {
        self.failure.get_or_insert(reason);
    }

    /// The state before the next sample.
    pub fn state(&self) -> StreamState {
        let mut state = Numbers::default();
        self.node.save(&mut state);
        let lanes = std::mem::take(&mut state.lanes).into_iter();
        StreamState {
            lanes: lanes.map(|(lane, own)| (lane, packed(own))).collect(),
            position: packed(state.into_bytes()),
        }
    }

    /// Counts of the documents and tokens that were dropped so far.
    pub fn counts(&self) -> StreamCounts {
        self.report.counts()
    }
}

#[cfg(test)]
mod tests;
