//! Texts that no pattern splits, cut wherever no token reaches across, a block at a time.
//!
//! A merge gives a token. Where no token has the two bytes around a place next to each other, nothing is ever merged
//! across that place, and what is on either side can be merged on its own (`cuts.rs`). Not all places are looked at:
//! tokens go on from letter to letter most often. Those looked at are where a character is of another kind than the
//! one before it, and those beside numbers and newlines, but not those between a blank and a letter.
//!
//! ```text
//! text        t h e   c a t , \n i n   2 0 1 9
//! looked at         1       1 1 1     1 1 1 1
//! ```

use super::super::cuts::Pairs;
use super::super::lane::Masks;
use super::blocks::{Carry, Rules, before};

#[derive(Clone, Copy)]
pub(super) struct Pieces<'a> {
    pub(super) pairs: &'a Pairs,
    /// Whether a word begins at every blank, whatever the tokens.
    pub(super) each_blank: bool,
}

impl Rules for Pieces<'_> {
    const ASKS_BEYOND_ASCII: bool = false;

    #[inline(always)]
    fn begins(
        self,
        text: &[u8],
        at: usize,
        block: &Masks,
        _next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let Masks {
            letter,
            number,
            newline,
            blank,
            wide,
            ..
        } = *block;
        let letter_before = before(letter, carry.letter);
        let blank_before = before(blank, carry.blank);
        let alone =
            number | before(number, carry.number) | newline | before(newline, carry.newline);
        let changes =
            letter ^ letter_before | blank ^ blank_before | wide ^ before(wide, carry.wide);
        let mut places = (changes | alone) & !(blank_before & letter);
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.newline = newline >> 63;
        carry.blank = blank >> 63;
        carry.wide = wide >> 63;
        let mut begins = if self.each_blank { blank } else { 0 };
        while places != 0 {
            let i = places.trailing_zeros() as usize;
            places &= places - 1;
            // Neither the first byte of the text nor what is behind its last has two.
            if let Some(&[left, right]) = text.get((at + i).wrapping_sub(1)..=at + i) {
                begins |= u64::from(!self.pairs.has(left, right)) << i;
            }
        }
        (begins, None)
    }
}
