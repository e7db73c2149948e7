//! Groups samples into batches.

use super::Sample;
use super::node::{Node, Operator};
use super::sample::TokenForm;
use crate::error::Result;

/// Groups samples into batches. A batch is a sample whose [`Sample::rows`] are samples of the node
/// before.
pub(super) struct Batches {
    /// The number of samples in a batch, at least 1.
    pub(super) size: usize,
    pub(super) drop_last: bool,
    /// Whether columns of tokens are stacked. As lists, they would become one tensor per position.
    pub(super) stacks: bool,
}

impl Operator for Batches {
    fn next(&mut self, upstream: &mut dyn Node) -> Result<Option<Sample>> {
        let mut rows = Vec::with_capacity(self.size);
        while rows.len() < self.size {
            match upstream.next()? {
                Some(mut row) => {
                    if self.stacks && row.form == TokenForm::List {
                        row.form = TokenForm::Tensor;
                    }
                    rows.push(row);
                }
                None if self.drop_last || rows.is_empty() => return Ok(None),
                None => break,
            }
        }
        Ok(Some(Sample {
            rows: Some(rows),
            ..Sample::default()
        }))
    }
}
