//! DeepSeek's three patterns, one after the other, a block at a time: `\p{N}{1,3}`; C+; and of each text between these
//! `A|[^\r\n\p{L}S]?L+| ?S+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` with C = `[一-龥぀-ゟ゠-ヿ]`, L = `[\p{L}\p{M}]`,
//! S = `[\p{P}\p{S}]` and A = ``[!-/:-@\[-`{-~][A-Za-z]+``.
//!
//! White space is as in `cl100k`, but numbers and Chinese characters after it are the end of a text. Letters, which
//! here are those that C lacks and marks, take with them what is in no class, such as a control character; of several
//! of these only the last, and the others are a word.
//!
//! ```text
//! text     f ( a , b )   . c d é   . . e   ␀ ␀ g
//! begins   1 1 . 1 . 1   1 . . 1   1 . 1   1 1 .
//! ```
//!
//! - A symbol of ASCII that has neither a symbol nor a blank before it takes the letters of ASCII after it. Any other
//!   letter after these begins a word.
//! - Symbols take a blank before them, and the newlines after them.

use super::blocks::{Carry, Rules, before, last_spaces, reached};
use super::cl100k::{numbers, white_space};
use crate::engines::lane::{Masks, Signs};

#[derive(Clone, Copy)]
pub(super) struct Deepseek;

impl Rules for Deepseek {
    const ASKS_SIGNS: bool = true;

    #[inline(always)]
    fn begins(
        self,
        _text: &[u8],
        at: usize,
        block: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let Masks {
            letter,
            number,
            space,
            newline,
            blank,
            wide,
            signs: Signs { symbol, cjk },
            ..
        } = *block;
        let unclassed = unclassed(block);
        let line_space = space & !newline;

        let others = symbol & !before(symbol, carry.other) & !before(blank, carry.blank);
        let ascii_letter = letter & !wide;
        // Of a symbol beyond ASCII only the first byte is among others, and no letter is after that.
        let after_prefix = before(others, carry.prefix);
        let joined = reached(after_prefix | carry.joined, ascii_letter);
        let line_space_before = before(line_space, carry.space & !carry.newline);
        let letters = letter
            & !before(letter & !joined, carry.letter & !carry.joined)
            & !joined
            & !line_space_before
            & !before(unclassed, carry.unclassed);
        let with_letters = match unclassed {
            0 => 0,
            _ => unclassed_before_letters(unclassed, block, next),
        };
        let unclassed_runs = unclassed & !before(unclassed, carry.unclassed);
        let cjk_runs = cjk & !before(cjk, carry.cjk);
        let numbers = numbers(3, block, carry);

        let first_taken = newline & before(symbol, carry.other) | carry.taken;
        let taken = reached(first_taken, newline);
        // What is kept apart ends a text: it is not cut before the last white space, as if that went on.
        let [with_ends, next_with_ends] = [block, next].map(|masks| Masks {
            space: masks.space | masks.number | masks.signs.cjk,
            ..*masks
        });
        let last = last_spaces(&with_ends, &next_with_ends) & line_space;
        let (spaces, earlier) = white_space(at, taken, last, block, next, carry);

        carry.letter = letter >> 63;
        carry.joined = joined >> 63;
        carry.number = number >> 63;
        carry.other = symbol >> 63;
        carry.cjk = cjk >> 63;
        carry.unclassed = unclassed >> 63;
        carry.space = space >> 63;
        carry.newline = newline >> 63;
        carry.blank = blank >> 63;
        carry.taken = taken >> 63;
        carry.prefix = others >> 63;
        let begins = letters | with_letters | unclassed_runs | cjk_runs | numbers | others | spaces;
        (begins, earlier)
    }
}

#[inline(always)]
fn unclassed(block: &Masks) -> u64 {
    !(block.letter | block.number | block.space | block.signs.symbol | block.signs.cjk)
}

/// The first bytes of characters of no class that have a letter after them.
#[cold]
fn unclassed_before_letters(unclassed: u64, block: &Masks, next: &Masks) -> u64 {
    let after = |mask: u64, next: u64, n: usize| mask >> n | next << (64 - n);
    let mut goes_on = unclassed & !block.inner;
    let mut before_letters = 0;
    for len in 1..=char::MAX.len_utf8() {
        let inner = after(block.inner, next.inner, len);
        before_letters |= goes_on & !inner & after(block.letter, next.letter, len);
        goes_on &= inner;
    }
    before_letters
}
