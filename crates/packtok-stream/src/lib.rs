//! Streams: documents are read, tokenized, made into rows, shuffled and batched while the caller
//! consumes them.
//!
//! The caller describes a stream as a list of operators in JSON (`spec.rs`), from which a chain of
//! nodes is built (`node.rs`, `builder.rs`). The caller's thread pulls samples through the chain;
//! only tokenizing and functions run ahead on other threads (`parallel.rs`). The samples depend on
//! the specification only.
//!
//! A state contains positions and no data. It is complete at any time, because every node can name
//! the position from which it can recompute its next sample (`position.rs`).
#![forbid(unsafe_code)]

mod batches;
mod builder;
mod check;
mod combine;
mod counting;
mod each;
mod error;
mod files;
mod fit;
mod function;
mod lane_files;
mod lanes;
mod locate;
mod node;
mod numbered;
mod objects;
mod parallel;
mod position;
mod report;
mod ring;
mod rows;
mod sample;
mod shuffle;
mod spec;
mod tokenize;
mod value;

use std::sync::Arc;

pub use builder::Flow;
pub use error::{Error, Result};
pub use lane_files::LaneShares;
pub use locate::{LocatedRow, take_located};
use node::Node;
pub use objects::{Function, Objects, SampleKey, Samples};
pub use parallel::StopCheck;
pub use position::LaneStates;
use position::{Numbers, Position, packed, unpacked};
use report::Report;
pub use report::{Bad, StreamCounts};
pub use sample::{
    DocumentPart, ForeignSample, LabelKind, Name, OriginFiles, RowFields, RowLayout, Sample,
    SampleOrigin, SourceRecord, TokenForm,
};
pub use spec::Spec;
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
    /// A file is missing or cannot be read, a lane has nothing to read, threads cannot be started,
    /// or the state belongs to another stream.
    pub fn new(
        spec: &Spec,
        objects: &dyn Objects,
        num_threads: usize,
        state: Option<&StreamState>,
        tick: Arc<StopCheck>,
    ) -> Result<Self> {
        let report = Arc::default();
        let mut node = spec.build(objects, num_threads, Arc::clone(&report), tick)?;
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
            report,
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
