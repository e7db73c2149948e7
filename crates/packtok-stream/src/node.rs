//! A node of a stream, nodes without state, and the history that a node with a buffer keeps of the
//! node before it.

use std::collections::VecDeque;

use super::Sample;
use super::position::{Numbers, Position, damaged};
use crate::error::Result;

/// One step of a stream. Its samples depend only on the specification and the position.
pub(super) trait Node: Send {
    /// The next sample, or `None` at the end. After an error, every call returns an error.
    fn next(&mut self) -> Result<Option<Sample>>;

    /// Appends the mark of the next sample: enough for [`Node::advance`].
    fn mark(&self, mark: &mut Numbers);

    /// Advances to a mark of this position or of a later one. Computes as little as possible.
    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()>;

    /// Appends the state before the next sample.
    fn save(&self, state: &mut Numbers);

    /// Continues at a state of the same stream.
    fn load(&mut self, state: &mut Position<'_>) -> Result<()>;

    /// Enters or leaves recomputing mode, in which no work runs ahead on other threads, because
    /// samples are only recomputed for a buffer. The modes may be nested; the first one is entered
    /// before the first sample.
    fn set_recomputing(&mut self, is_recomputing: bool);
}

/// The behaviour of a node without a state of its own.
pub(super) trait Transform: Send {
    /// The next sample, made from the next samples of the node before; as [`Node::next`].
    fn next(&mut self, upstream: &mut dyn Node) -> Result<Option<Sample>>;
}

/// A node without a state of its own. Its position is the position of the node before.
pub(super) struct Stateless<T> {
    upstream: Box<dyn Node>,
    transform: T,
}

impl<T: Transform> Stateless<T> {
    pub(super) fn new(upstream: Box<dyn Node>, transform: T) -> Self {
        Self {
            upstream,
            transform,
        }
    }
}

impl<T: Transform> Node for Stateless<T> {
    fn next(&mut self) -> Result<Option<Sample>> {
        self.transform.next(&mut *self.upstream)
    }

    fn mark(&self, mark: &mut Numbers) {
        self.upstream.mark(mark);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.upstream.advance(mark)
    }

    fn save(&self, state: &mut Numbers) {
        self.upstream.save(state);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.upstream.load(state)
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        self.upstream.set_recomputing(is_recomputing);
    }
}

/// Number of pulls between two states that [`History`] keeps. Advancing from a state to a later
/// mark costs reading, but no tokenizing.
const SPACING: u64 = 64;

/// A node, and states from which each of its samples that is still needed can be reached.
pub(super) struct History {
    node: Box<dyn Node>,
    /// Number of the next sample, counted from the start of the stream.
    number: u64,
    /// States, each with the number of the sample after it, in order.
    states: VecDeque<(u64, Numbers)>,
}

impl History {
    pub(super) fn new(node: Box<dyn Node>) -> Self {
        Self {
            node,
            number: 0,
            states: VecDeque::new(),
        }
    }

    /// Number of the next sample.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next sample, after its mark was appended to `mark`.
    pub(super) fn pull(&mut self, mark: &mut Numbers) -> Result<Option<Sample>> {
        let last = self.states.back();
        if last.is_none_or(|(at, _)| self.number >= at + SPACING) {
            let mut state = Numbers::default();
            self.node.save(&mut state);
            self.states.push_back((self.number, state));
        }
        self.node.mark(mark);
        let sample = self.node.next()?;
        self.number += u64::from(sample.is_some());
        Ok(sample)
    }

    /// Removes the states that only samples before number `oldest` need.
    pub(super) fn forget_before(&mut self, oldest: u64) {
        while self.states.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.states.pop_front();
        }
    }

    /// Appends the mark of the next sample.
    pub(super) fn mark(&self, mark: &mut Numbers) {
        self.node.mark(mark);
    }

    /// Advances to sample `number`, whose mark is `mark`.
    pub(super) fn advance(&mut self, number: u64, mark: &[u8]) -> Result<()> {
        if number < self.number {
            return Err(damaged());
        }
        let mut mark = Position::new(mark);
        self.node.advance(&mut mark)?;
        self.number = number;
        mark.finish()
    }

    /// Appends a state from which sample `number` can be reached.
    pub(super) fn save(&self, number: u64, state: &mut Numbers) {
        let after = self.states.partition_point(|(at, _)| *at <= number);
        match after.checked_sub(1).map(|last| &self.states[last]) {
            Some((at, before)) if number < self.number => {
                state.push(*at);
                state.append(before);
            }
            _ => {
                state.push(self.number);
                self.node.save(state);
            }
        }
    }

    /// Continues at a state that [`History::save`] wrote.
    pub(super) fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.states.clear();
        self.number = state.number()?;
        self.node.load(state)
    }

    /// As [`Node::set_recomputing`].
    pub(super) fn set_recomputing(&mut self, is_recomputing: bool) {
        self.node.set_recomputing(is_recomputing);
    }
}
