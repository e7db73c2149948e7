//! Splits texts without a pattern where no token crosses, a SIMD block at a time.
//!
//! Every merge produces a token. If no token contains the two bytes around a position, no merge crosses it, and both
//! sides can be merged independently (`piece_bounds.rs`). Not all positions are considered, because tokens often
//! continue from letter to letter: those between different kinds of characters, and those next to numbers and
//! newlines, but not those between a space and a letter or symbol.
//!
//! ```text
//! text        t h e   c a t , \n i n   2 0 1 9
//! considered        1       1 1 1     1 1 1 1
//! ```
//!
//! Most of them need no check of the two bytes: no token has a space after another character, or two numbers, so the
//! kinds are enough ([`Table`]). In prose, one of the 16 considered positions of a SIMD block is
//! left.

use super::bits::before;
use super::pattern_rules::{Carry, PatternRules};
use crate::engines::byte_pairs::Pairs;
use crate::engines::simd::Masks;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteKind {
    Letter,
    Number,
    Newline,
    Space,
    Wide,
    Other,
}

const NUM_KINDS: usize = 6;

impl ByteKind {
    pub(super) fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letter,
            b'0'..=b'9' => Self::Number,
            b'\r' | b'\n' => Self::Newline,
            b' ' => Self::Space,
            0x80.. => Self::Wide,
            _ => Self::Other,
        }
    }
}

/// The pairs of bytes inside tokens.
pub(super) struct Table {
    pub(super) pairs: Pairs,
    /// For each kind and each following kind: all bits set if no token has the two kinds next to
    /// each other, else zero. Padded to whole vectors.
    apart: [[u64; NUM_KINDS + 2]; NUM_KINDS],
}

impl Table {
    pub(super) fn new(pairs: Pairs) -> Self {
        let mut apart = [[u64::MAX; NUM_KINDS + 2]; NUM_KINDS];
        for left in 0..=u8::MAX {
            for right in (0..=u8::MAX).filter(|&right| pairs.has(left, right)) {
                apart[ByteKind::of(left) as usize][ByteKind::of(right) as usize] = 0;
            }
        }
        Self { pairs, apart }
    }

    /// Positions at which no token has the two kinds next to each other: the kind before a byte,
    /// and the kind of the byte. Both arguments have one mask per kind.
    #[inline(always)]
    fn apart(&self, before: [u64; NUM_KINDS], kinds: [u64; NUM_KINDS]) -> u64 {
        let mut after_apart = [0; NUM_KINDS + 2];
        for (before, apart) in before.iter().zip(&self.apart) {
            for (all, apart) in after_apart.iter_mut().zip(apart) {
                *all |= before & apart;
            }
        }
        let of_kinds = after_apart.iter().zip(kinds);
        of_kinds.fold(0, |all, (apart, kind)| all | apart & kind)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Pieces<'a> {
    pub(super) table: &'a Table,
    /// Whether a word starts at every space, whatever the tokens.
    pub(super) each_space: bool,
}

impl PatternRules for Pieces<'_> {
    const NEEDS_BEYOND_ASCII: bool = false;

    #[inline(always)]
    fn begins(
        self,
        text: &[u8],
        at: usize,
        masks: &Masks,
        _next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let Masks {
            letter,
            number,
            newline,
            space,
            wide,
            ..
        } = *masks;
        let other = !(letter | number | newline | space | wide);
        let kinds = [letter, number, newline, space, wide, other];
        let kinds_before = [
            before(letter, carry.letter),
            before(number, carry.number),
            before(newline, carry.newline),
            before(space, carry.space),
            before(wide, carry.wide),
            before(other, carry.other),
        ];
        let [
            letter_before,
            number_before,
            newline_before,
            space_before,
            wide_before,
            _,
        ] = kinds_before;
        let alone = number | number_before | newline | newline_before;
        let changes = letter ^ letter_before | space ^ space_before | wide ^ wide_before;
        let looked_at = (changes | alone) & !(space_before & (letter | other));
        let apart = self.table.apart(kinds_before, kinds);
        let mut places = looked_at & !apart;
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.newline = newline >> 63;
        carry.space = space >> 63;
        carry.wide = wide >> 63;
        carry.other = other >> 63;
        let mut begins = looked_at & apart;
        if self.each_space {
            begins |= space;
        }
        while places != 0 {
            let i = places.trailing_zeros() as usize;
            places &= places - 1;
            // At the start of the text and at its end, a position has only one neighbour.
            if let Some(&[left, right]) = text.get((at + i).wrapping_sub(1)..=at + i) {
                begins |= u64::from(!self.table.pairs.has(left, right)) << i;
            }
        }
        (begins, None)
    }
}
