//! The vector instructions that a processor has, of which the best are chosen when a tokenizer is loaded.
//!
//! A lane is one set of them. All that encodes a text is compiled once for each ([`Lane::run`]), so that what it does
//! with vectors is no call; they differ in nothing but speed, and `tests` below holds each against the portable one.
//!
//! # Masks
//!
//! 64 bytes of a text at once, as one bit for each in each class: a block.
//!
//! ```text
//! text       I   c a n ' t   g o   4   2 \n     bit 0 is the first byte
//! letter     1 0 1 1 1 0 1 0 1 1 0 0 0 0 0
//! number     0 0 0 0 0 0 0 0 0 0 0 1 0 1 0
//! space      0 1 0 0 0 0 0 1 0 0 1 0 1 0 1      and so on
//! ```
//!

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod first_two;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;

pub(super) use self::first_two::FirstTwo;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use self::neon::Neon;
use self::portable::Portable;
#[cfg(target_arch = "x86_64")]
use self::{avx2::Avx2, avx512::Avx512};
use super::word_key::{SHORT, Word};

/// Words that are asked together whether they are long.
pub(super) const SOME: usize = 16;

/// Words that are made together.
pub(super) const EIGHT: usize = 8;

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;

/// The classes of the bytes of a block; all bytes of a character have its classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) letter: u64,
    pub(super) number: u64,
    /// White space.
    pub(super) space: u64,
    /// `\r` and `\n`.
    pub(super) newline: u64,
    /// U+0020, the only white space that words of symbols begin with.
    pub(super) blank: u64,
    /// `'`
    pub(super) apostrophe: u64,
    /// Bytes of characters beyond ASCII.
    pub(super) wide: u64,
    /// Bytes that begin no character.
    pub(super) inner: u64,
    /// What is asked for by rules that tell upper from lower case, and else nothing.
    pub(super) case: Case,
    /// What is asked for by rules that tell symbols from characters of no class, and else nothing.
    pub(super) signs: Signs,
}

/// More classes of the bytes of a block; letters and marks that are in none of the first two are lower ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Case {
    /// Letters of upper or title case.
    pub(super) upper: u64,
    /// Letters without case, and marks.
    pub(super) both: u64,
    /// Marks.
    pub(super) mark: u64,
    /// `/`
    pub(super) slash: u64,
}

/// More classes of the bytes of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// Punctuation and symbols.
    pub(super) symbol: u64,
    /// Chinese characters that are kept apart, and kana.
    pub(super) cjk: u64,
}

/// Something that is done in a lane.
pub(super) trait Job {
    type Done;

    /// Does it. `inline(always)`, so that it is compiled for the lane.
    fn run(self, lane: impl Lane) -> Self::Done;
}

/// One set of vector instructions.
pub(super) trait Lane: Copy {
    /// Does what is asked for with these instructions. This is a call, so that each job has the registers to itself.
    fn run<J: Job>(self, job: J) -> J::Done;

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
    /// `behind` are the bytes behind those of `block`. A lane may tell of none.
    #[inline(always)]
    fn told(self, _block: &[u8; BLOCK], _behind: &[u8; BLOCK], _first_two: &FirstTwo) -> u64 {
        0
    }

    /// Where the bits are, counted from `base`; what is behind them is written over.
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
    fn words(
        self,
        text: &[u8],
        bounds: &[u32; EIGHT + 1],
        shift: u32,
        words: &mut [Word; EIGHT],
        hashes: &mut [u32; EIGHT],
    ) {
        for (i, (word, hash)) in words.iter_mut().zip(hashes).enumerate() {
            *word = Word::at(text, bounds[i] as usize, bounds[i + 1] as usize);
            *hash = (word.hash() >> shift) as u32;
        }
    }

    /// Which of some words are long, a bit for each; they begin at each of `bounds` and end at the next, which is not
    /// before it.
    #[inline(always)]
    fn long(self, bounds: &[u32; SOME + 1]) -> u32 {
        let mut long = 0;
        for i in 0..SOME {
            let is_long = (bounds[i + 1] - bounds[i]) as usize > SHORT;
            long |= u32::from(is_long) << i;
        }
        long
    }

    /// Which of two pairs of numbers is this one: 1 for the first, 4 for the second, 0 for neither.
    fn which(self, pairs: &[u64; 4], pair: [u64; 2]) -> usize;

    /// Five numbers of 24 bits, one behind the other in 15 bytes, into five of 32; what is behind them is
    /// written over.
    fn spread(self, packed: [u64; 2], numbers: &mut [u32; 8]);
}

/// The lane that is used.
#[derive(Clone, Copy)]
pub(super) enum AnyLane {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(Neon),
    Portable,
}

impl AnyLane {
    /// The best that the processor has; builds for measurements name another with `--cfg packtok_lane`.
    pub(super) fn detect() -> Self {
        let all = Self::all();
        let named = match (cfg!(packtok_lane = "avx2"), cfg!(packtok_lane = "portable")) {
            (true, _) => "avx2",
            (_, true) => "portable",
            _ => return all[0],
        };
        let found = all.into_iter().find(|lane| lane.name() == named);
        found.expect("the processor has what the build names")
    }

    /// All that the processor has, the best first.
    pub(super) fn all() -> Vec<Self> {
        let mut lanes = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            lanes.extend(Avx512::detect().map(Self::Avx512));
            lanes.extend(Avx2::detect().map(Self::Avx2));
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        lanes.extend(Neon::detect().map(Self::Neon));
        lanes.push(Self::Portable);
        lanes
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(_) => "neon",
            Self::Portable => "portable",
        }
    }

    /// Does what is asked for in this lane.
    #[inline(always)]
    pub(super) fn run<J: Job>(self, job: J) -> J::Done {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lane) => lane.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lane) => lane.run(job),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(lane) => lane.run(job),
            Self::Portable => Portable.run(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Agree;

    impl Job for Agree {
        type Done = ();

        fn run(self, lane: impl Lane) {
            agree(lane);
        }
    }

    fn agree(lane: impl Lane) {
        let pair = [0x0123_4567_89ab_cdef, 0x05aa_bbcc_ddee_ff00];
        for (other, bit) in [(0, 0), (1, 1 << 63), (2, 1), (3, 1 << 40)] {
            let mut pairs = [pair[0], pair[1], pair[0], pair[1]];
            pairs[other] ^= bit;
            let expected = if bit == 0 { 5 } else { 4 >> (other & 2) };
            assert_eq!(lane.which(&pairs, pair), expected, "{other} {bit:x}");
            assert_eq!(lane.which(&pairs.map(|number| !number), pair), 0);
        }
        for bits in [
            0,
            1,
            1 << 63,
            0x8000_0001_0001_0101,
            0x5555_5555_5555_5555,
            u64::MAX,
        ] {
            let mut positions = [0; BLOCK];
            lane.positions(bits, 1000, &mut positions);
            let expected: Vec<u32> = (0..64).filter(|bit| bits >> bit & 1 == 1).collect();
            let found = positions[..expected.len()].iter().map(|at| at - 1000);
            assert!(found.eq(expected), "{bits:x}");
        }
        agree_on_told(lane);
        agree_on_words(lane);
        let (mut numbers, mut expected) = ([0; 8], [0; 8]);
        lane.spread(pair, &mut numbers);
        Portable.spread(pair, &mut expected);
        assert_eq!(numbers[..5], expected[..5]);
        assert_eq!(
            numbers[..5],
            [0xab_cdef, 0x45_6789, 0x00_0123, 0xdd_eeff, 0xaa_bbcc]
        );
        for first in (0..=255u8).step_by(64) {
            for turn in [1, 3, 7, 63] {
                let block: [u8; BLOCK] =
                    std::array::from_fn(|i| first.wrapping_add((i * turn) as u8));
                assert_eq!(lane.ascii(&block), Portable.ascii(&block), "{block:?}");
                for (first, len) in [(b'A', 26), (b'/', 1), (0, 255), (200, 56)] {
                    let expected = Portable.within(&block, first, len);
                    assert_eq!(lane.within(&block, first, len), expected);
                }
                for bit in 0..8 {
                    assert_eq!(
                        lane.having(&block, 1 << bit),
                        Portable.having(&block, 1 << bit)
                    );
                }
            }
        }
    }

    /// All pairs of bytes beyond ASCII, some of which begin letters only.
    fn agree_on_told(lane: impl Lane) {
        let are_letters = |first: usize, second: usize| match first % 3 {
            0 => true,
            1 => !second.is_multiple_of(first + 2),
            _ => false,
        };
        let first_two = FirstTwo::new(are_letters, |_| 1);
        let (mut tells_some, mut tells_all) = (false, true);
        for first in 0xc0..=0xff_usize {
            for turn in 0..64 {
                let bytes: [u8; BLOCK + 1] = std::array::from_fn(|i| match (i + turn) % 2 {
                    0 => first as u8,
                    _ => 0x80 | (i + turn / 2) as u8 & 0x3f,
                });
                let (block, behind) = (bytes.first_chunk().unwrap(), bytes.last_chunk().unwrap());
                let told = lane.told(block, behind, &first_two);
                let begins = bytes.windows(2).enumerate();
                for (i, two) in begins.filter(|(_, two)| two[0] >= 0xc0) {
                    let (is_told, is_letter) =
                        (told >> i & 1 == 1, first_two.tells(two[0], two[1]));
                    assert!(is_letter || !is_told, "{two:x?}");
                    tells_some |= is_told;
                    tells_all &= is_told == is_letter;
                }
            }
        }
        assert!(tells_all || !tells_some, "a lane tells of all, or of none");
    }

    /// Words of all lengths, and near the end of a text.
    fn agree_on_words(lane: impl Lane) {
        for longest in [0, 1, 15, 16, 17, 1 << 20] {
            for turn in 0..SOME as u32 {
                let bounds: [u32; SOME + 1] =
                    std::array::from_fn(|i| 7 + (i as u32 + turn) / SOME as u32 * longest);
                let expected = if longest > 15 {
                    1 << (SOME as u32 - 1 - turn)
                } else {
                    0
                };
                assert_eq!(lane.long(&bounds), expected);
            }
        }
        let text: Vec<u8> = (0..200).map(|i: u32| (i * i) as u8 | 1).collect();
        for text_len in 0..=text.len() {
            for step in [0, 1, 7, 13] {
                let bounds: [u32; EIGHT + 1] = std::array::from_fn(|i| {
                    let i = i as u32;
                    (3 + i * i * step / 3).min(text_len as u32)
                });
                let (mut words, mut hashes) = ([Word::default(); EIGHT], [0; EIGHT]);
                lane.words(&text[..text_len], &bounds, 40, &mut words, &mut hashes);
                for (i, word) in words.iter().enumerate() {
                    let bytes = &text[bounds[i] as usize..bounds[i + 1] as usize];
                    let mut expected = [0; 16];
                    let num_bytes = bytes.len().min(15);
                    expected[..num_bytes].copy_from_slice(&bytes[..num_bytes]);
                    expected[15] = bytes.len().min(16) as u8;
                    let expected = u128::from_le_bytes(expected);
                    assert_eq!(
                        [word.low, word.high],
                        [expected as u64, (expected >> 64) as u64]
                    );
                    assert_eq!(word.is_short(), bytes.len() < 16);
                    assert_eq!(u64::from(hashes[i]), word.hash() >> 40);
                }
            }
        }
    }

    #[test]
    fn the_portable_lane_is_what_the_standard_library_says() {
        for first in (0..=255u8).step_by(64) {
            let block: [u8; BLOCK] = std::array::from_fn(|i| first + i as u8);
            let masks = Portable.ascii(&block);
            for (i, &byte) in block.iter().enumerate() {
                let has = |mask: u64| mask >> i & 1 == 1;
                assert_eq!(has(masks.letter), byte.is_ascii_alphabetic());
                assert_eq!(has(masks.number), byte.is_ascii_digit());
                assert_eq!(has(masks.space), matches!(byte, 9..=13 | b' '));
                assert_eq!(has(masks.newline), matches!(byte, b'\r' | b'\n'));
                assert_eq!(has(masks.blank), byte == b' ');
                assert_eq!(has(masks.apostrophe), byte == b'\'');
                assert_eq!(has(masks.wide), !byte.is_ascii());
                assert_eq!(has(masks.inner), byte & 0xc0 == 0x80);
                assert_eq!(
                    has(Portable.within(&block, b'A', 26)),
                    byte.is_ascii_uppercase()
                );
                for bit in 0..8 {
                    assert_eq!(has(Portable.having(&block, 1 << bit)), byte >> bit & 1 == 1);
                }
            }
        }
    }

    #[test]
    fn the_lanes_agree() {
        for lane in AnyLane::all() {
            lane.run(Agree);
        }
    }
}
