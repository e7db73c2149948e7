//! Groups samples into batches: `batch`.

use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{Flow, OperatorSpec, Site};
use super::node::{Node, Stateless, Transform};
use super::sample::TokenForm;
use crate::error::{Error, Result};

/// Groups samples into batches.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BatchSpec {
    /// Samples of a batch of one rank, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<u64>,
    drop_last: bool,
    /// The function that combines samples in a state; `None` if their columns are stacked.
    collate_fn: Option<String>,
    /// Samples of a batch of all ranks together, at least 1. It replaces `batch_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    global_batch_size: Option<u64>,
}

impl BatchSpec {
    /// Samples of a batch of one of `num_ranks`.
    fn size(&self, num_ranks: u64) -> Result<u64> {
        match (self.batch_size, self.global_batch_size) {
            (Some(size), None) => Ok(size),
            (None, Some(size)) if size.is_multiple_of(num_ranks) => Ok(size / num_ranks),
            (None, Some(size)) => Err(Error::UnevenBatch { size, num_ranks }),
            _ => Err(Error::BatchSizes),
        }
    }
}

impl OperatorSpec for BatchSpec {
    fn check(&self, inputs: &[&Flow]) -> Result<()> {
        let num_ranks = inputs.iter().map(|input| input.num_ranks).max();
        self.size(num_ranks.unwrap_or(1)).map(drop)
    }

    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let batches = Batches {
            size: self.size(site.flow().num_ranks)? as usize,
            drop_last: self.drop_last,
            stacks: self.collate_fn.is_none(),
        };
        Ok(Box::new(Stateless::new(site.input()?, batches)))
    }
}

/// The transform: a batch is a sample whose [`Sample::rows`] are samples of the node
/// before.
struct Batches {
    size: usize,
    drop_last: bool,
    /// Whether columns of tokens are stacked. As lists, they would become one tensor per position.
    stacks: bool,
}

impl Transform for Batches {
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
