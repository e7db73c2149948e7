//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, a block at a time.
//!
//! A word is a run of letters, of numbers or of others, with the blank before it if there is one. White space
//! is a word up to its last character, and that one is a word, unless it is such a blank or the text ends.

use super::super::lane::Masks;
use super::blocks::{Carry, Rules, before, behind, last_spaces, with_contractions};
use super::plain::contraction;

#[derive(Clone, Copy)]
pub(super) struct Gpt2;

impl Rules for Gpt2 {
    #[inline(always)]
    fn begins(
        self,
        text: &[u8],
        at: usize,
        block: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let (letter, number, space) = (block.letter, block.number, block.space);
        let other = !(letter | number | space);
        let without_blank = !before(block.blank, carry.blank);
        let others = other & !before(other, carry.other) & without_blank;
        let runs = letter & !before(letter, carry.letter) | number & !before(number, carry.number);
        let spaces = space & !before(space, carry.space) | last_spaces(block, next);
        let begins = runs & without_blank | others | spaces;
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.other = other >> 63;
        carry.space = space >> 63;
        carry.blank = block.blank >> 63;
        // Any contraction is a word that begins with its apostrophe, and a letter behind it is no new one.
        let apostrophes = block.apostrophe & others & behind(letter, next.letter);
        let begins = with_contractions(begins, apostrophes, carry, |i| {
            contraction(text, at + i, |byte| byte)
        });
        (begins, None)
    }
}
