//! The operations of a back end, and jobs that run on one.

use super::first_two::FirstTwo;
use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use crate::engines::word_key::{SHORT, WordKey};

/// Number of words whose lengths are compared together.
pub(crate) const LEN_BATCH: usize = 16;

/// Number of words whose keys are computed together.
pub(crate) const KEY_BATCH: usize = 8;

/// Something that runs on a back end.
pub(crate) trait Job {
    type Output;

    /// Runs the job. Implementations are `inline(always)`, so that they are compiled for the back
    /// end.
    fn run(self, simd: impl Simd) -> Self::Output;
}

/// One set of vector instructions.
pub(crate) trait Simd: Copy {
    /// Runs a job with these instructions. The job is a function call, so it has the registers to
    /// itself.
    fn run<J: Job>(self, job: J) -> J::Output;

    /// The masks of ASCII characters, and `wide` and `inner` for all others.
    fn ascii(self, block: &SimdBlock) -> Masks;

    /// Bytes in `first..first + len`.
    #[inline(always)]
    fn within(self, block: &SimdBlock, first: u8, len: u8) -> u64 {
        let mut is_within = [0; SIMD_BLOCK_BYTES];
        for (is_within, byte) in is_within.iter_mut().zip(block) {
            *is_within = u8::from(byte.wrapping_sub(first) < len);
        }
        self.having(&is_within, 1)
    }

    /// Bytes of `classes` that have this class, a single bit.
    fn having(self, classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64;

    /// Bytes that start a character which has the property of `first_two`, decided by its first
    /// two bytes. Only valid at the first bytes of characters beyond ASCII. `after` is the text of
    /// `block`, shifted by one byte. A back end may match none.
    #[inline(always)]
    fn match_first_two(self, _block: &SimdBlock, _after: &SimdBlock, _first_two: &FirstTwo) -> u64 {
        0
    }

    /// Writes the positions of the set bits, counted from `base`. Garbage may follow them.
    #[inline(always)]
    fn positions(self, mut bits: u64, base: u32, positions: &mut [u32; SIMD_BLOCK_BYTES]) {
        let count = bits.count_ones();
        let mut next = || {
            let position = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            position
        };
        // Most often, no branch on the exact number is needed.
        let (few, more) = positions.split_at_mut(16);
        few.fill_with(&mut next);
        if count > 16 {
            let (few, more) = more.split_at_mut(16);
            few.fill_with(&mut next);
            if count > 32 {
                more.fill_with(&mut next);
            }
        }
    }

    /// The keys of eight words, and their hashes shifted right by `shift`. Word `i` is
    /// `bounds[i]..bounds[i + 1]`.
    #[inline(always)]
    fn word_keys(
        self,
        text: &[u8],
        bounds: &[u32; KEY_BATCH + 1],
        shift: u32,
        words: &mut [WordKey; KEY_BATCH],
        hashes: &mut [u32; KEY_BATCH],
    ) {
        for (i, (word, hash)) in words.iter_mut().zip(hashes).enumerate() {
            *word = WordKey::at(text, bounds[i] as usize, bounds[i + 1] as usize);
            *hash = (word.hash() >> shift) as u32;
        }
    }

    /// One bit per word, set if the word is long. Word `i` is `bounds[i]..bounds[i + 1]`.
    #[inline(always)]
    fn long_words(self, bounds: &[u32; LEN_BATCH + 1]) -> u32 {
        let mut long = 0;
        for i in 0..LEN_BATCH {
            let is_long = (bounds[i + 1] - bounds[i]) as usize > SHORT;
            long |= u32::from(is_long) << i;
        }
        long
    }

    /// Which of two pairs equals `pair`: 1 for the first, 4 for the second, 0 for neither.
    fn match_pair(self, pairs: &[u64; 4], pair: [u64; 2]) -> usize;

    /// Unpacks five numbers of 24 bits to 32 bits. Garbage may follow them.
    fn unpack_ids(self, packed: [u64; 2], numbers: &mut [u32; 8]);
}
