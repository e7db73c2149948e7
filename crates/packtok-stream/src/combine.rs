//! Combines several streams: one after the other, or interleaved in fixed proportions.

use packtok_dataset::order::mixture::Mixture;
use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{Flow, OperatorSpec, Site};
use super::node::Node;
use super::position::{Numbers, Position, damaged};
use crate::error::{Error, Result};

/// Yields several streams one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConcatSpec {}

impl OperatorSpec for ConcatSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        Ok(Box::new(Concat::new(site.inputs()?)))
    }

    fn is_endless(&self, inputs: &[&Flow]) -> bool {
        inputs.iter().any(|input| input.is_endless)
    }
}

/// The node that yields several streams.
struct Concat {
    upstreams: Vec<Box<dyn Node>>,
    current: usize,
}

impl Concat {
    fn new(upstreams: Vec<Box<dyn Node>>) -> Self {
        Self {
            upstreams,
            current: 0,
        }
    }

    /// Reads the index of the current stream.
    fn read_current(&self, position: &mut Position<'_>) -> Result<usize> {
        let current = position.number_to(self.upstreams.len() as u64)? as usize;
        if current >= self.current {
            Ok(current)
        } else {
            Err(damaged())
        }
    }
}

impl Node for Concat {
    fn next(&mut self) -> Result<Option<Sample>> {
        while let Some(upstream) = self.upstreams.get_mut(self.current) {
            match upstream.next()? {
                Some(sample) => return Ok(Some(sample)),
                None => self.current += 1,
            }
        }
        Ok(None)
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.current as u64);
        if let Some(upstream) = self.upstreams.get(self.current) {
            upstream.mark(mark);
        }
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.current = self.read_current(mark)?;
        match self.upstreams.get_mut(self.current) {
            Some(upstream) => upstream.advance(mark),
            None => Ok(()),
        }
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.current as u64);
        if let Some(upstream) = self.upstreams.get(self.current) {
            upstream.save(state);
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.current = self.read_current(state)?;
        match self.upstreams.get_mut(self.current) {
            Some(upstream) => upstream.load(state),
            None => Ok(()),
        }
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        for upstream in &mut self.upstreams {
            upstream.set_recomputing(is_recomputing);
        }
    }
}

/// Draws computed at once.
const DRAWS: u64 = 1024;

/// Interleaves streams in fixed proportions, up to the end of the first that ends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InterleaveSpec {
    /// The weight of each stream.
    weights: Vec<u64>,
}

impl OperatorSpec for InterleaveSpec {
    fn check(&self, inputs: &[&Flow]) -> Result<()> {
        if self.weights.len() == inputs.len() {
            Ok(())
        } else {
            Err(Error::Weights {
                num_weights: self.weights.len(),
                num_streams: inputs.len(),
            })
        }
    }

    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let mixture = Mixture::new(&self.weights)?;
        Ok(Box::new(Interleave::new(site.inputs()?, mixture)))
    }
}

/// The node that interleaves streams.
struct Interleave {
    upstreams: Vec<Box<dyn Node>>,
    mixture: Mixture,
    number: u64,
    /// The sources of samples from `first_drawn` on.
    drawn: Vec<usize>,
    first_drawn: u64,
}

impl Interleave {
    /// The mixture has as many sources as there are streams.
    fn new(upstreams: Vec<Box<dyn Node>>, mixture: Mixture) -> Self {
        Self {
            upstreams,
            mixture,
            number: 0,
            drawn: Vec::new(),
            first_drawn: 0,
        }
    }

    fn source_of_next(&mut self) -> usize {
        let is_drawn = self.number >= self.first_drawn
            && self.number - self.first_drawn < self.drawn.len() as u64;
        if !is_drawn {
            self.first_drawn = self.number;
            let draws = self.mixture.draws(self.number..self.number + DRAWS);
            self.drawn = draws.iter().map(|draw| draw.source).collect();
        }
        self.drawn[(self.number - self.first_drawn) as usize]
    }
}

impl Node for Interleave {
    fn next(&mut self) -> Result<Option<Sample>> {
        let source = self.source_of_next();
        let sample = self.upstreams[source].next()?;
        self.number += u64::from(sample.is_some());
        Ok(sample)
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.number);
        for upstream in &self.upstreams {
            upstream.mark(mark);
        }
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        self.number = mark.number()?;
        for upstream in &mut self.upstreams {
            upstream.advance(mark)?;
        }
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        state.push(self.number);
        for upstream in &self.upstreams {
            upstream.save(state);
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.number = state.number()?;
        for upstream in &mut self.upstreams {
            upstream.load(state)?;
        }
        Ok(())
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        for upstream in &mut self.upstreams {
            upstream.set_recomputing(is_recomputing);
        }
    }
}
