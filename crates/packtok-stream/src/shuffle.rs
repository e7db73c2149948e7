//! Shuffles samples through a buffer.
//!
//! First the buffer is filled. Then each step returns a random sample and replaces it by the next
//! one. At the end, the buffer is drained. A state contains the mark of each sample in the buffer,
//! not the sample; loading a state recomputes these samples and no others.

use packtok_jobs::splitmix;
use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::node::{History, Node};
use super::position::{Numbers, Position, damaged};
use crate::error::Result;

/// Shuffles samples through a buffer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ShuffleSpec {
    /// Samples in the buffer, at least 1.
    buffer_size: usize,
    seed: u64,
}

impl OperatorSpec for ShuffleSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        let (upstream, seed) = (site.input()?, site.seed(self.seed));
        Ok(Box::new(Shuffle::new(upstream, self.buffer_size, seed)))
    }
}

/// The node that shuffles.
struct Shuffle {
    upstream: History,
    size: usize,
    seed: u64,
    buffer: Vec<Slot>,
    /// Samples that left the buffer.
    num_drawn: u64,
}

struct Slot {
    number: u64,
    mark: Vec<u8>,
    sample: Sample,
}

impl Shuffle {
    /// A buffer of `size` samples, at least 1.
    fn new(upstream: Box<dyn Node>, size: usize, seed: u64) -> Self {
        Self {
            upstream: History::new(upstream),
            size,
            seed,
            buffer: Vec::new(),
            num_drawn: 0,
        }
    }

    /// Adds the next sample to the buffer; false at the end.
    fn read_sample(&mut self) -> Result<bool> {
        let number = self.upstream.number();
        let mut mark = Numbers::default();
        let Some(sample) = self.upstream.pull(&mut mark)? else {
            return Ok(false);
        };
        self.buffer.push(Slot {
            number,
            mark: mark.into_bytes(),
            sample,
        });
        Ok(true)
    }

    /// The slot that leaves next: uniform, and a function of the seed and the number of draws.
    fn drawn_slot(&self) -> usize {
        let word = self
            .seed
            .wrapping_add(self.num_drawn.wrapping_mul(splitmix::GAMMA));
        let random = splitmix::mixed(splitmix::mixed(word).wrapping_add(splitmix::GAMMA));
        // The high half of the product is below the length; its bias is below 2^-40.
        ((u128::from(random) * self.buffer.len() as u128) >> 64) as usize
    }

    fn oldest(&self) -> u64 {
        let numbers = self.buffer.iter().map(|slot| slot.number);
        numbers.min().unwrap_or(self.upstream.number())
    }
}

impl Node for Shuffle {
    fn next(&mut self) -> Result<Option<Sample>> {
        while self.buffer.len() < self.size && self.read_sample()? {}
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let i = self.drawn_slot();
        self.num_drawn += 1;
        let slot = self.buffer.swap_remove(i);
        if self.num_drawn.is_multiple_of(self.size as u64) {
            let oldest = self.oldest();
            self.upstream.forget_before(oldest);
        }
        Ok(Some(slot.sample))
    }

    fn mark(&self, mark: &mut Numbers) {
        mark.push(self.num_drawn);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let target = mark.number()?;
        while self.num_drawn < target {
            if self.next()?.is_none() {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        let oldest = self.oldest();
        self.upstream.save(oldest, state);
        state.push(self.num_drawn);
        state.push(oldest);
        state.push(self.upstream.number() - oldest);
        let mut next = Numbers::default();
        self.upstream.mark(&mut next);
        state.push_bytes(next.bytes());
        state.push(self.buffer.len() as u64);
        for slot in &self.buffer {
            state.push(slot.number - oldest);
            state.push_bytes(&slot.mark);
        }
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.upstream.set_recomputing(true);
        self.upstream.load(state)?;
        self.num_drawn = state.number()?;
        let oldest = state.number()?;
        let number_of = |distance: u64| oldest.checked_add(distance).ok_or_else(damaged);
        let next_number = number_of(state.number()?)?;
        let next_mark = state.bytes()?;
        let len = state.number_to(self.size as u64)? as usize;
        let mut slots = Vec::with_capacity(len);
        for i in 0..len {
            slots.push((number_of(state.number()?)?, state.bytes()?, i));
        }
        slots.sort_unstable();
        self.buffer.clear();
        for (number, mark, _) in &slots {
            self.upstream.advance(*number, mark)?;
            if !self.read_sample()? {
                return Err(damaged());
            }
        }
        self.upstream.advance(next_number, next_mark)?;
        self.upstream.set_recomputing(false);
        // Back from the order in which they were read to their places in the buffer.
        let read = std::mem::take(&mut self.buffer);
        let mut placed: Vec<_> = slots.iter().map(|&(_, _, i)| i).zip(read).collect();
        placed.sort_unstable_by_key(|&(i, _)| i);
        self.buffer = placed.into_iter().map(|(_, slot)| slot).collect();
        Ok(())
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        self.upstream.set_recomputing(is_recomputing);
    }
}
