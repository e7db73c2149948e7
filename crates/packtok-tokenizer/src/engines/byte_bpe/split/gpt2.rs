//! The pattern of GPT-2, a block at a time:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```
//!
//! A word is a run of letters, of numbers or of other characters, including one space before it. White space is a word
//! up to its last character. That character is another word, unless it is a space before a word or the text ends.
//!
//! With `numbers_apart`, each number is a word, and the text between numbers is split as a text of its own.

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
                // A number after white space ends a text.
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
        // A contraction is a word that starts with its apostrophe; the letter after the apostrophe starts no word.
        let apostrophes = block.apostrophe & others & after(letter, next.letter);
        let begins = with_contractions(begins, apostrophes, carry, |i| {
            contraction(text, at + i, |byte| byte)
        });
        (begins, None)
    }
}
