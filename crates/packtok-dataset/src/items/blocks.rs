//! Block arithmetic: the start and end of block `i`. No other code computes them.

use std::ops::Range;

/// Blocks of equal size and stride over a sequence of tokens. Tokens after the last full block
/// belong to no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLayout {
    block_size: u64,
    stride: u64,
    len: u64,
}

impl BlockLayout {
    /// Blocks of `block_size` tokens over `num_tokens`, each sharing its last `overlap` tokens with
    /// the next.
    ///
    /// `None` unless `overlap < block_size`.
    pub fn new(num_tokens: u64, block_size: u64, overlap: u64) -> Option<Self> {
        let stride = block_size
            .checked_sub(overlap)
            .filter(|&stride| stride > 0)?;
        let len = match num_tokens.checked_sub(block_size) {
            Some(rest) => rest / stride + 1,
            None => 0,
        };
        Some(Self {
            block_size,
            stride,
            len,
        })
    }

    /// Number of tokens of a block.
    pub fn block_size(&self) -> u64 {
        self.block_size
    }

    /// Number of full blocks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no full block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tokens of block `i`, which must be below [`BlockLayout::len`].
    pub fn block(&self, i: u64) -> Range<u64> {
        let start = i * self.stride;
        start..start + self.block_size
    }

    /// Number of tokens that are in a block.
    pub fn num_tokens_in_blocks(&self) -> u64 {
        match self.len {
            0 => 0,
            len => self.block(len - 1).end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The starts of all blocks, computed one after the other.
    fn walked(num_tokens: u64, block_size: u64, stride: u64) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut start = 0;
        while start + block_size <= num_tokens {
            starts.push(start);
            start += stride;
        }
        starts
    }

    #[test]
    fn blocks_equal_those_of_a_plain_loop() {
        for num_tokens in 0..40 {
            for block_size in 1..12 {
                for overlap in 0..block_size {
                    let layout = BlockLayout::new(num_tokens, block_size, overlap).unwrap();
                    let starts = walked(num_tokens, block_size, block_size - overlap);
                    let blocks: Vec<_> = (0..layout.len()).map(|i| layout.block(i)).collect();
                    let expected: Vec<_> = starts.iter().map(|&s| s..s + block_size).collect();
                    assert_eq!(blocks, expected, "{num_tokens} {block_size} {overlap}");
                    let covered = expected.last().map_or(0, |last| last.end);
                    assert_eq!(layout.num_tokens_in_blocks(), covered);
                }
            }
        }
    }

    #[test]
    fn an_overlap_of_a_whole_block_is_rejected() {
        assert_eq!(BlockLayout::new(10, 0, 0), None);
        assert_eq!(BlockLayout::new(10, 3, 3), None);
        assert_eq!(BlockLayout::new(10, 3, 4), None);
    }

    #[test]
    fn the_longest_possible_file_has_blocks() {
        let layout = BlockLayout::new(u64::MAX, 2, 1).unwrap();
        assert_eq!(layout.len(), u64::MAX - 1);
        assert_eq!(layout.block(layout.len() - 1), u64::MAX - 2..u64::MAX);
    }
}
