//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, a block at a time.
//!
//! A word is a run of letters, of numbers or of others, with the blank before it if there is one. White space
//! is a word up to its last character, and that one is a word, unless it is such a blank or the text ends.
//!
//! Where numbers are apart, each is a word, and what is between them is split as texts of their own.

use super::blocks::{Carry, Rules, after, before, contraction, last_spaces, with_contractions};
use crate::engines::lane::Masks;

#[derive(Clone, Copy)]
pub(super) struct Gpt2 {
    pub(super) numbers_apart: bool,
}

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
        let letters = letter & !before(letter, carry.letter) & without_blank;
        let (numbers, last) = match self.numbers_apart {
            true => {
                // A number after white space is the end of a text.
                let [block, next] = [block, next].map(|masks| Masks {
                    space: masks.space | masks.number,
                    ..*masks
                });
                (number & !block.inner, last_spaces(&block, &next) & space)
            }
            false => (
                number & !before(number, carry.number) & without_blank,
                last_spaces(block, next),
            ),
        };
        let spaces = space & !before(space, carry.space) | last;
        let begins = letters | numbers | others | spaces;
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.other = other >> 63;
        carry.space = space >> 63;
        carry.blank = block.blank >> 63;
        // Any contraction is a word that begins with its apostrophe, and a letter after it is no new one.
        let apostrophes = block.apostrophe & others & after(letter, next.letter);
        let begins = with_contractions(begins, apostrophes, carry, |i| {
            contraction(text, at + i, |byte| byte)
        });
        (begins, None)
    }
}
