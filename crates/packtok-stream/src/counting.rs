//! Operators that count samples: `take`, `skip`, `stride` and `enumerate`.

use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{Flow, OperatorSpec, Site};
use super::node::Node;
use super::position::{Numbers, Position};
use super::sample::Name;
use super::value::Value;
use crate::error::Result;

/// Ends after the first samples.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TakeSpec {
    max_count: u64,
}

impl OperatorSpec for TakeSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        counter(site, Counting::Take(self.max_count))
    }

    fn is_endless(&self, _: &[&Flow]) -> bool {
        false
    }
}

/// Passes over the first samples.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SkipSpec {
    count: u64,
}

impl OperatorSpec for SkipSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        counter(site, Counting::Skip(self.count))
    }
}

/// Yields the samples whose number is `offset` modulo `interval`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StrideSpec {
    /// At least 1.
    interval: u64,
    /// Below `interval`.
    offset: u64,
}

impl OperatorSpec for StrideSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let &Self { interval, offset } = self;
        counter(site, Counting::Stride { interval, offset })
    }
}

/// Adds the number of each sample as a column.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EnumerateSpec {
    column: String,
}

impl OperatorSpec for EnumerateSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        counter(site, Counting::Enumerate(self.column.as_str().into()))
    }
}

fn counter(site: &Site<'_>, counting: Counting) -> Result<Box<dyn Node>> {
    Ok(Box::new(Counter {
        upstream: site.input()?,
        counting,
        count: 0,
    }))
}

/// What is done with a sample, given its number.
enum Counting {
    Take(u64),
    Skip(u64),
    Stride { interval: u64, offset: u64 },
    Enumerate(Name),
}

/// The node that counts.
struct Counter {
    upstream: Box<dyn Node>,
    counting: Counting,
    /// Samples of the node before so far.
    count: u64,
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
                Counting::Skip(count) if number < *count => {}
                Counting::Skip(_) => return Ok(Some(sample)),
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
