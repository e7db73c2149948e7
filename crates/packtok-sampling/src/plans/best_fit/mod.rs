//! Best-fit-decreasing packing: documents into blocks with as little padding as can be found quickly.
//!
//! Responsible for cutting long documents, for working in windows so that memory is bounded, and for the
//! order of blocks and pieces. Which piece goes into which block is decided in `bins`.

mod bins;
mod rooms;

use std::ops::Range;

use crate::error::Result;
use crate::plans::plan::{Piece, check_block_tokens};

/// Pieces that are packed together. A few blocks of each window stay half full: with 2^18 pieces padding is
/// 0.003 % at 2048 tokens and 0.03 % at 131,072, with 2^16 it is 0.006 % and 0.12 %; more pieces leave the
/// caches (`cargo bench --bench best_fit`, 4 Mi documents of log-normal length).
pub const WINDOW_PIECES: usize = 1 << 18;
const NO_BLOCK: u32 = u32::MAX;

/// Packs documents into blocks of at most `context_length` tokens.
///
/// A document longer than that is cut into full blocks and a rest; no other is cut, and every token is in
/// exactly one block. Each window of [`WINDOW_PIECES`] pieces is packed on its own: the pieces by falling
/// length, those of one length in the order of the stream, each into the block with the least room that
/// holds it (of several, the one that a piece went into last), or else a new one. Blocks are emitted by
/// the place of their first token, and so are the pieces of a block. Documents without tokens are nowhere.
///
/// # Errors
/// [`Error::BlockTokens`](crate::Error::BlockTokens), and those of `documents` and `emit`.
pub fn plan_best_fit(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    context_length: u64,
    emit: &mut impl FnMut(&[Piece]) -> Result<()>,
) -> Result<()> {
    plan_in_windows(documents, context_length, WINDOW_PIECES, emit)
}

fn plan_in_windows(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    context_length: u64,
    window_pieces: usize,
    emit: &mut impl FnMut(&[Piece]) -> Result<()>,
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

/// The pieces that are packed together, and room to work in.
struct Window {
    starts: Vec<u64>,
    lens: Vec<u32>,
    bins: bins::Bins,
    block_of_bin: Vec<u32>,
    /// For each block the place after its last piece in `placed`.
    stops: Vec<u32>,
    placed: Vec<Piece>,
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

    /// Packs and emits what is there, and is empty then.
    fn pack(&mut self, emit: &mut impl FnMut(&[Piece]) -> Result<()>) -> Result<()> {
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

    /// Puts the pieces of each block side by side, by their place in the stream.
    fn group(&mut self) {
        let mut first = 0;
        for stop in &mut self.stops {
            let count = *stop;
            *stop = first;
            first += count;
        }
        let empty = Piece {
            start: 0,
            len_tokens: 0,
        };
        self.placed.resize(self.lens.len(), empty);
        let pieces = self.starts.iter().zip(&self.lens);
        for ((&start, &len_tokens), &bin) in pieces.zip(self.bins.of_pieces()) {
            let next = &mut self.stops[self.block_of_bin[bin as usize] as usize];
            self.placed[*next as usize] = Piece { start, len_tokens };
            *next += 1;
        }
    }
}
