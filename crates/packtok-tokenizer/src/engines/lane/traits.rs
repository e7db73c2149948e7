//! What a lane computes, and what runs in one.

use super::first_two::FirstTwo;
use super::masks::{BLOCK, Masks};
use crate::engines::word_key::{SHORT, WordKey};

/// Words that are asked together whether they are long.
pub(in crate::engines) const LEN_BATCH: usize = 16;

/// Words that are made together.
pub(in crate::engines) const KEY_BATCH: usize = 8;

/// Something that is done in a lane.
pub(in crate::engines) trait Job {
    type Output;

    /// Does it. `inline(always)`, so that it is compiled for the lane.
    fn run(self, lane: impl Lane) -> Self::Output;
}

/// One set of vector instructions.
pub(in crate::engines) trait Lane: Copy {
    /// Does what is asked for with these instructions. This is a call, so that each job has the registers to itself.
    fn run<J: Job>(self, job: J) -> J::Output;

    /// The masks of ASCII characters, and where others are: `wide` and `inner`.
    fn ascii(self, block: &[u8; BLOCK]) -> Masks;

    /// Where the bytes of `first..first + len` are.
    #[inline(always)]
    fn within(self, block: &[u8; BLOCK], first: u8, len: u8) -> u64 {
        let mut is_within = [0; BLOCK];
        for (is_within, byte) in is_within.iter_mut().zip(block) {
            *is_within = u8::from(byte.wrapping_sub(first) < len);
        }
        self.having(&is_within, 1)
    }

    /// Where a byte has this class, one bit of each.
    fn having(self, classes: &[u8; BLOCK], class: u8) -> u64;

    /// Where the first two bytes of a character tell that it is one; only if a character beyond ASCII begins there.
    /// `after` are the bytes after those of `block`. A lane may tell of none.
    #[inline(always)]
    fn match_first_two(
        self,
        _block: &[u8; BLOCK],
        _after: &[u8; BLOCK],
        _first_two: &FirstTwo,
    ) -> u64 {
        0
    }

    /// Where the bits are, counted from `base`; what is after them is written over.
    #[inline(always)]
    fn positions(self, mut bits: u64, base: u32, positions: &mut [u32; BLOCK]) {
        let count = bits.count_ones();
        let mut next = || {
            let position = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            position
        };
        // Most often without asking how many there are.
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

    /// Eight words of a text, which begin at each of `bounds` and end at the next, and of the hash of each what is left
    /// when its lowest bits have been shifted out.
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

    /// Which of some words are long, a bit for each; they begin at each of `bounds` and end at the next, which is not
    /// before it.
    #[inline(always)]
    fn long_words(self, bounds: &[u32; LEN_BATCH + 1]) -> u32 {
        let mut long = 0;
        for i in 0..LEN_BATCH {
            let is_long = (bounds[i + 1] - bounds[i]) as usize > SHORT;
            long |= u32::from(is_long) << i;
        }
        long
    }

    /// Which of two pairs of numbers is this one: 1 for the first, 4 for the second, 0 for neither.
    fn match_pair(self, pairs: &[u64; 4], pair: [u64; 2]) -> usize;

    /// Five numbers of 24 bits, one after the other in 15 bytes, into five of 32; what is after them is
    /// written over.
    fn unpack_ids(self, packed: [u64; 2], numbers: &mut [u32; 8]);
}
