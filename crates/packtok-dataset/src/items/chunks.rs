//! Chunk arithmetic: the start and end of chunk `i`. Unlike blocks, chunks cover all tokens, so
//! the last chunks are shorter.

use std::ops::Range;

/// Chunks of equal size and stride that cover a sequence of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkLayout {
    chunk_size: u64,
    stride: u64,
}

impl ChunkLayout {
    /// Chunks of `chunk_size` tokens, each sharing its last `overlap` tokens with the next.
    ///
    /// `None` unless `overlap < chunk_size`.
    pub(crate) fn new(chunk_size: u64, overlap: u64) -> Option<Self> {
        let stride = chunk_size
            .checked_sub(overlap)
            .filter(|&stride| stride > 0)?;
        Some(Self { chunk_size, stride })
    }

    /// Number of tokens of a complete chunk.
    pub(crate) fn chunk_size(&self) -> u64 {
        self.chunk_size
    }

    /// Number of chunks of `num_tokens` tokens: one for every stride that starts among the tokens.
    pub(crate) fn len(&self, num_tokens: u64) -> u64 {
        num_tokens.div_ceil(self.stride)
    }

    /// Tokens of chunk `i`, which must be below [`ChunkLayout::len`] of `num_tokens`.
    pub(crate) fn chunk(&self, i: u64, num_tokens: u64) -> Range<u64> {
        let start = i * self.stride;
        start..start.saturating_add(self.chunk_size).min(num_tokens)
    }

    /// Number of tokens that all chunks of `num_tokens` tokens lack to be complete.
    pub(crate) fn num_padding_tokens(&self, num_tokens: u64) -> u64 {
        let len = self.len(num_tokens);
        // The first incomplete chunk, if there is one.
        let first = (num_tokens + 1)
            .saturating_sub(self.chunk_size)
            .div_ceil(self.stride);
        let num_short = len.saturating_sub(first);
        let starts = num_short * first * self.stride
            + self.stride * (num_short * num_short.saturating_sub(1) / 2);
        (num_short * self.chunk_size + starts).saturating_sub(num_short * num_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_equal_those_of_a_plain_loop() {
        for num_tokens in 0..40u64 {
            for chunk_size in 1..12 {
                for overlap in 0..chunk_size {
                    let layout = ChunkLayout::new(chunk_size, overlap).unwrap();
                    let starts = (0..num_tokens).step_by((chunk_size - overlap) as usize);
                    let expected: Vec<_> = starts
                        .map(|start| start..num_tokens.min(start + chunk_size))
                        .collect();
                    let chunks: Vec<_> = (0..layout.len(num_tokens))
                        .map(|i| layout.chunk(i, num_tokens))
                        .collect();
                    assert_eq!(chunks, expected, "{num_tokens} {chunk_size} {overlap}");
                    let padding: u64 = expected
                        .iter()
                        .map(|chunk| chunk_size - (chunk.end - chunk.start))
                        .sum();
                    assert_eq!(
                        layout.num_padding_tokens(num_tokens),
                        padding,
                        "{num_tokens} {chunk_size} {overlap}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_overlap_of_a_whole_chunk_is_rejected() {
        assert_eq!(ChunkLayout::new(0, 0), None);
        assert_eq!(ChunkLayout::new(3, 3), None);
    }
}
