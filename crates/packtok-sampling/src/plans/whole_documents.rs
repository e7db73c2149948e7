//! Blocks of consecutive tokens that start at the start of a document.

use std::ops::Range;

use crate::error::Result;
use crate::plans::plan::{Piece, check_block_tokens};

/// Finds the blocks of `block_size` tokens and returns how many tokens are in none.
///
/// A block starts where a document does. The next starts at the first document that is not wholly inside
/// it, so that the tokens of that document which the block holds are in both; where that is the document
/// that the block itself starts with, it starts at the one after, and the rest of the long document is
/// in no block. A block that would pass the end of the stream is left out. Documents without tokens
/// change nothing.
///
/// `documents` gives the places of all documents, back to back and in order.
///
/// # Errors
/// [`Error::BlockTokens`](crate::Error::BlockTokens), and those of `documents` and `emit`.
pub fn plan_whole_documents(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    block_size: u64,
    emit: &mut impl FnMut(&[Piece]) -> Result<()>,
) -> Result<u64> {
    let block_size = check_block_tokens("block_size", block_size)?;
    let mut blocks = Blocks {
        block_size,
        served_stop: 0,
        num_dropped_tokens: 0,
        emit,
    };
    let mut open: Option<u64> = None;
    let mut num_tokens = 0;
    for document in documents {
        let Range { start, end } = document?;
        if start == end {
            continue;
        }
        num_tokens = end;
        open = match open {
            Some(first) if end <= first + block_size => Some(first),
            Some(first) => {
                blocks.emit(first)?;
                blocks.open_at(start, end)?
            }
            None => blocks.open_at(start, end)?,
        };
    }
    if let Some(first) = open
        && first + block_size == num_tokens
    {
        blocks.emit(first)?;
    }
    Ok(blocks.num_dropped_tokens + num_tokens - blocks.served_stop)
}

/// What was emitted so far.
struct Blocks<'a, E> {
    block_size: u64,
    /// Where the last block ends.
    served_stop: u64,
    /// Tokens before that in no block.
    num_dropped_tokens: u64,
    emit: &'a mut E,
}

impl<E: FnMut(&[Piece]) -> Result<()>> Blocks<'_, E> {
    /// Starts a block at a document; `None` if the document is longer, so that the block is done.
    fn open_at(&mut self, start: u64, end: u64) -> Result<Option<u64>> {
        if end - start <= self.block_size {
            return Ok(Some(start));
        }
        self.emit(start)?;
        Ok(None)
    }

    fn emit(&mut self, start: u64) -> Result<()> {
        self.num_dropped_tokens += start.saturating_sub(self.served_stop);
        self.served_stop = start + self.block_size;
        (self.emit)(&[Piece {
            start,
            len_tokens: self.block_size as u32,
        }])
    }
}
