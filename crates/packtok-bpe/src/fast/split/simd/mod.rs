//! 64 bytes of a text at once, as one bit for each in each class: a block.
//!
//! ```text
//! text       I   c a n ' t   g o   4   2 \n     bit 0 is the first byte
//! letter     1 0 1 1 1 0 1 0 1 1 0 0 0 0 0
//! number     0 0 0 0 0 0 0 0 0 0 0 1 0 1 0
//! space      0 1 0 0 0 0 0 1 0 0 1 0 1 0 1      and so on
//! ```
//!
//! There are three lanes, of which the best that the processor has is chosen when a tokenizer is loaded. They
//! differ in nothing but speed; `tests` below holds each against the table of classes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use self::{
    avx2::{Avx2, fill as fill_avx2},
    avx512::{Avx512, fill as fill_avx512},
};
pub(super) use portable::Portable;

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
}

/// One way to find the masks of a block.
pub(super) trait Lane: Copy {
    /// The masks of ASCII characters, and where others are: `wide` and `inner`.
    fn ascii(self, block: &[u8; BLOCK]) -> Masks;

    /// Where a byte has this class, one bit of each.
    fn having(self, classes: &[u8; BLOCK], class: u8) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(lane: impl Lane) {
        for first in (0..=255u8).step_by(64) {
            for turn in [1, 3, 7, 63] {
                let block: [u8; BLOCK] =
                    std::array::from_fn(|i| first.wrapping_add((i * turn) as u8));
                assert_eq!(lane.ascii(&block), Portable.ascii(&block), "{block:?}");
                for bit in 0..8 {
                    assert_eq!(
                        lane.having(&block, 1 << bit),
                        Portable.having(&block, 1 << bit)
                    );
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
                for bit in 0..8 {
                    assert_eq!(has(Portable.having(&block, 1 << bit)), byte >> bit & 1 == 1);
                }
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_lanes_agree() {
        Avx512::detect().into_iter().for_each(agree);
        Avx2::detect().into_iter().for_each(agree);
    }
}
