//! Plans blocks of consecutive tokens that start at the start of a document.

use std::ops::Range;

use crate::error::Result;
use crate::plans::plan::{TokenSpan, check_block_tokens};

/// Plans blocks of `block_size` tokens. Returns the number of tokens that belong to no block.
///
/// A block starts where a document starts. The next block starts at the first document that is not
/// completely inside the block, so the tokens of that document inside the block belong to both
/// blocks. If that document is the block's own first document, the next block starts at the
/// following document, and the rest of the long document belongs to no block. A block that would
/// extend past the end of the stream is dropped. Empty documents have no effect.
///
/// `documents` returns the ranges of all documents, contiguous and in order.
///
/// # Errors
/// [`Error::BlockTokens`](crate::Error::BlockTokens), and the errors of `documents` and `emit`.
pub fn plan_whole_documents(
    documents: impl Iterator<Item = Result<Range<u64>>>,
    block_size: u64,
    emit: &mut impl FnMut(&[TokenSpan]) -> Result<()>,
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

/// The state of the emitted blocks.
struct Blocks<'a, E> {
    block_size: u64,
    /// End of the last block.
    served_stop: u64,
    /// Number of tokens before that in no block.
    num_dropped_tokens: u64,
    emit: &'a mut E,
}

impl<E: FnMut(&[TokenSpan]) -> Result<()>> Blocks<'_, E> {
    /// Starts a block at a document. Returns `None` if the document fills the block, which is then
    /// complete.
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
        (self.emit)(&[TokenSpan {
            start,
            len_tokens: self.block_size as u32,
        }])
    }
}
