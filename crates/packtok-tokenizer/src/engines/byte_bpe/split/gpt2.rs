//! The pattern of GPT-2, a SIMD block at a time:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```
//!
//! A word is a run of letters, of numbers or of other characters, including one space before it. White space is a word
//! up to its last character. That character is another word, unless it is a space before a word or the text ends.
//!
//! With `numbers_apart`, each number is a word, and the text between numbers is split as a text of its own.

use super::bits::{after, before, last_whitespace};
use super::contractions::{contraction, with_contractions};
use super::pattern_rules::{Carry, PatternRules};
use crate::engines::simd::Masks;

#[derive(Clone, Copy)]
pub(super) struct Gpt2 {
    pub(super) numbers_apart: bool,
}

impl PatternRules for Gpt2 {
    #[inline(always)]
    fn begins(
        self,
        text: &[u8],
        at: usize,
        masks: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let (letter, number, whitespace) = (masks.letter, masks.number, masks.whitespace);
        let other = !(letter | number | whitespace);
        let without_space = !before(masks.space, carry.space);
        let others = other & !before(other, carry.other) & without_space;
        let letters = letter & !before(letter, carry.letter) & without_space;
        let (numbers, last) = if self.numbers_apart {
            // A number after white space ends a text.
            let [masks, next] = [masks, next].map(|masks| Masks {
                whitespace: masks.whitespace | masks.number,
                ..*masks
            });
            (
                number & !masks.inner,
                last_whitespace(&masks, &next) & whitespace,
            )
        } else {
            (
                number & !before(number, carry.number) & without_space,
                last_whitespace(masks, next),
            )
        };
        let whitespace_starts = whitespace & !before(whitespace, carry.whitespace) | last;
        let begins = letters | numbers | others | whitespace_starts;
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.other = other >> 63;
        carry.whitespace = whitespace >> 63;
        carry.space = masks.space >> 63;
        // A contraction is a word that starts with its apostrophe. The letter after the apostrophe
        // does not start a word.
        let apostrophes = masks.apostrophe & others & after(letter, next.letter);
        let begins = with_contractions(begins, apostrophes, carry, |i| {
            contraction(text, at + i, |byte| byte)
        });
        (begins, None)
    }
}
