//! Best-fit-decreasing packing: combines documents into blocks with little padding, in linear time.
//!
//! Responsible for splitting long documents, for processing in windows that bound memory, and for
//! the order of blocks and pieces. `bins` assigns pieces to blocks.

mod bins;
mod bitset;

use std::ops::Range;

use crate::error::Result;
use crate::plans::plan::{TokenSpan, check_block_tokens};

/// Number of pieces packed together. A few blocks of each window stay half empty: with 2^18
/// pieces, padding is 0.003 % at 2048 tokens and 0.03 % at 131,072; with 2^16, it is 0.006 % and
/// 0.12 %. More pieces do not fit in the caches (`cargo bench --bench best_fit`, 4 Mi documents of
/// log-normal length).
pub const WINDOW_PIECES: usize = 1 << 18;
const NO_BLOCK: u32 = u32::MAX;

/// Packs documents into blocks of at most `context_length` tokens.
///
/// A document longer than `context_length` is split into full blocks and a remainder. No other
/// document is split, and every token is in exactly one block. Each window of [`WINDOW_PIECES`]
/// pieces is packed independently: pieces in descending order of length, equal lengths in stream
/// order, each into the block with the least sufficient room, or into a new block. Among several
/// such blocks, the block that received a piece last is used. Blocks are emitted in the order of
/// their first token, and so are the pieces of a block. Empty documents are in no block.
///
/// # Errors
/// [`Error::BlockTokens`](crate::Error::BlockTokens), and the errors of `documents` and `emit`.
pub fn plan_best_fit(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    context_length: u64,
    emit: &mut impl FnMut(&[TokenSpan]) -> Result<()>,
) -> Result<()> {
    plan_in_windows(documents, context_length, WINDOW_PIECES, emit)
}

fn plan_in_windows(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    context_length: u64,
    window_pieces: usize,
    emit: &mut impl FnMut(&[TokenSpan]) -> Result<()>,
) -> Result<()> {
    let context_length = check_block_tokens("context_length", context_length)?;
    let mut window = Window::new(context_length as usize);
    for document in documents {
        let Range { mut start, end } = document?;
        while start < end {
            let len_tokens = (end - start).min(context_length);
            window.starts.push(start);
            window.lens.push(len_tokens as u32);
            start += len_tokens;
            if window.lens.len() == window_pieces {
                window.pack(emit)?;
            }
        }
    }
    window.pack(emit)
}

/// The pieces that are packed together, and reusable buffers.
struct Window {
    starts: Vec<u64>,
    lens: Vec<u32>,
    bins: bins::Bins,
    block_of_bin: Vec<u32>,
    /// For each block, the end of its pieces in `placed`.
    stops: Vec<u32>,
    placed: Vec<TokenSpan>,
}

impl Window {
    fn new(context_length: usize) -> Self {
        Self {
            starts: Vec::new(),
            lens: Vec::new(),
            bins: bins::Bins::new(context_length),
            block_of_bin: Vec::new(),
            stops: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Packs and emits the pieces, then clears the window.
    fn pack(&mut self, emit: &mut impl FnMut(&[TokenSpan]) -> Result<()>) -> Result<()> {
        self.bins.place(&self.lens);
        self.number_blocks();
        self.group();
        let mut first = 0;
        for &stop in &self.stops {
            emit(&self.placed[first..stop as usize])?;
            first = stop as usize;
        }
        self.starts.clear();
        self.lens.clear();
        Ok(())
    }

    /// Numbers the bins by their first piece, and counts the pieces of each in `stops`.
    fn number_blocks(&mut self) {
        self.block_of_bin.clear();
        self.block_of_bin.resize(self.bins.len(), NO_BLOCK);
        self.stops.clear();
        for &bin in self.bins.of_pieces() {
            let block = &mut self.block_of_bin[bin as usize];
            if *block == NO_BLOCK {
                *block = self.stops.len() as u32;
                self.stops.push(0);
            }
            self.stops[*block as usize] += 1;
        }
    }

    /// Groups the pieces by block, in stream order.
    fn group(&mut self) {
        let mut first = 0;
        for stop in &mut self.stops {
            let count = *stop;
            *stop = first;
            first += count;
        }
        let empty = TokenSpan {
            start: 0,
            len_tokens: 0,
        };
        self.placed.resize(self.lens.len(), empty);
        let pieces = self.starts.iter().zip(&self.lens);
        for ((&start, &len_tokens), &bin) in pieces.zip(self.bins.of_pieces()) {
            let next = &mut self.stops[self.block_of_bin[bin as usize] as usize];
            self.placed[*next as usize] = TokenSpan { start, len_tokens };
            *next += 1;
        }
    }
}
