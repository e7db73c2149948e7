//! Nodes that count samples: `take`, `stride` and `enumerate`.

use super::Sample;
use super::node::Node;
use super::position::{Numbers, Position};
use super::sample::Name;
use super::value::Value;
use crate::error::Result;

/// The samples to keep, selected by their number.
#[derive(Debug, Clone)]
pub enum Counting {
    /// The first samples, this many.
    Take(u64),
    /// The samples whose number is `offset` modulo `interval`.
    Stride {
        /// At least 1.
        interval: u64,
        /// Below `interval`.
        offset: u64,
    },
    /// All samples, with their number in this column.
    Enumerate(Name),
}

/// The node that counts.
pub(super) struct Counter {
    upstream: Box<dyn Node>,
    counting: Counting,
    /// Samples of the node before so far.
    count: u64,
}

impl Counter {
    pub(super) fn new(upstream: Box<dyn Node>, counting: Counting) -> Self {
        Self {
            upstream,
            counting,
            count: 0,
        }
    }
}

impl Node for Counter {
    fn next(&mut self) -> Result<Option<Sample>> {
        loop {
            if matches!(self.counting, Counting::Take(limit) if self.count >= limit) {
                return Ok(None);
            }
            let Some(mut sample) = self.upstream.next()? else {
                return Ok(None);
            };
            // After lanes, the rows of all ranks count, except for a stride.
            let own = (self.count, self.count + 1);
            let (number, round, may_be_short) = match (&self.counting, sample.row) {
                (Counting::Stride { .. }, _) | (_, None) => (own.0, own, false),
                (_, Some(row)) => (row.number, row.round, row.may_be_short),
            };
            self.count = round.1;
            match &self.counting {
                &Counting::Take(limit) if round.1 > limit => {
                    if round.0 >= limit || !may_be_short {
                        return Ok(None);
                    }
                    sample.is_absent |= number >= limit;
                    return Ok(Some(sample));
                }
                Counting::Take(_) => return Ok(Some(sample)),
                Counting::Stride { interval, offset } if number % interval != *offset => {}
                Counting::Stride { .. } => return Ok(Some(sample)),
                Counting::Enumerate(column) => {
                    sample.set(column, Value::Integer(number as i64));
                    return Ok(Some(sample));
                }
            }
        }
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.count);
        self.upstream.mark(mark);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.count = mark.number()?;
        self.upstream.advance(mark)
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.count);
        self.upstream.save(state);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.count = state.number()?;
        self.upstream.load(state)
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        self.upstream.set_recomputing(is_recomputing);
    }
}
