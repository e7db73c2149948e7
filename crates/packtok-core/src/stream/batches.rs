//! Groups samples into batches.

use super::Sample;
use super::node::Node;
use super::position::{Numbers, Position};
use crate::error::Result;

/// The node that makes batches: samples whose [`Sample::rows`] are those of the node before.
pub(super) struct Batches {
    upstream: Box<dyn Node>,
    size: usize,
    drop_last: bool,
}

impl Batches {
    /// Batches of `size` samples, at least 1.
    pub(super) fn new(upstream: Box<dyn Node>, size: usize, drop_last: bool) -> Self {
        Self {
            upstream,
            size,
            drop_last,
        }
    }
}

impl Node for Batches {
    fn next(&mut self) -> Result<Option<Sample>> {
        let mut rows = Vec::with_capacity(self.size);
        while rows.len() < self.size {
            match self.upstream.next()? {
                Some(row) => rows.push(row),
                None if self.drop_last || rows.is_empty() => return Ok(None),
                None => break,
            }
        }
        Ok(Some(Sample {
            rows: Some(rows),
            ..Sample::default()
        }))
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
