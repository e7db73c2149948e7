//! The operations of a back end, and jobs that run on one.

use super::first_two::FirstTwo;
use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use crate::engines::huge_table::Slots;
use crate::engines::word_key::{SHORT, WordKey};

/// Number of words whose lengths are compared together.
pub(crate) const LEN_BATCH: usize = 16;

/// Number of words whose keys are computed together.
pub(crate) const KEY_BATCH: usize = 8;

/// Numbers in [`Lanes`].
pub(crate) const NUM_LANES: usize = 16;

/// Sixteen numbers, for which AVX-512 has registers.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [u32; NUM_LANES]);

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
        if self.word_keys_within(text, bounds, shift, words, hashes) {
            return;
        }
        for (i, (word, hash)) in words.iter_mut().zip(hashes).enumerate() {
            *word = WordKey::at(text, bounds[i] as usize, bounds[i + 1] as usize);
            *hash = (word.hash() >> shift) as u32;
        }
    }

    /// [`Simd::word_keys`], if at least 16 bytes of text follow the start of each word. Otherwise returns `false` and
    /// writes nothing. A back end may always return `false`.
    #[inline(always)]
    fn word_keys_within(
        self,
        _text: &[u8],
        _bounds: &[u32; KEY_BATCH + 1],
        _shift: u32,
        _words: &mut [WordKey; KEY_BATCH],
        _hashes: &mut [u32; KEY_BATCH],
    ) -> bool {
        false
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

    /// Whether the back end has registers for [`Lanes`].
    const HAS_LANES: bool = false;

    /// The least of the numbers, which are below 2^28, and the first lane that has it.
    #[inline(always)]
    fn least(self, lanes: &Lanes) -> (u32, usize) {
        let numbers = (0..).zip(lanes.0).map(|(lane, number)| (number, lane));
        numbers.min().expect("there are lanes")
    }

    /// Removes the number of a lane after the first: the numbers of the lanes after it move to the lane before theirs, and the last
    /// lane gets the number of the first.
    #[inline(always)]
    fn remove(self, lanes: &mut Lanes, lane: usize) {
        lanes.0.copy_within(lane + 1.., lane);
        lanes.0[NUM_LANES - 1] = lanes.0[0];
    }

    /// Replaces the number of a lane.
    #[inline(always)]
    fn replace(self, lanes: &mut Lanes, lane: usize, number: u32) {
        lanes.0[lane % NUM_LANES] = number;
    }

    /// For a short word: its bytes, and each byte above the byte after it, as numbers. Byte `i` is in lane `i + 1`; the
    /// numbers of the other lanes are undefined.
    #[inline(always)]
    fn bytes_and_pairs(self, word: WordKey) -> [Lanes; 2] {
        let (mut bytes, mut pairs) = (Lanes([0; NUM_LANES]), Lanes([0; NUM_LANES]));
        let of_word = word.bytes();
        for at in 0..SHORT {
            bytes.0[at + 1] = u32::from(of_word[at]);
            pairs.0[at + 1] = u32::from(of_word[at]) << 8 | u32::from(of_word[at + 1]);
        }
        [bytes, pairs]
    }

    /// The numbers of a table at these places, modulo the size of the table, for the lanes whose bits are set;
    /// `otherwise` for the others.
    #[inline(always)]
    fn look_up(self, table: Slots<'_, u32>, places: &Lanes, bits: u16, otherwise: u32) -> Lanes {
        let mut numbers = Lanes([otherwise; NUM_LANES]);
        for lane in (0..NUM_LANES).filter(|lane| bits >> lane & 1 == 1) {
            numbers.0[lane] = *table.at(places.0[lane] as usize);
        }
        numbers
    }
}
