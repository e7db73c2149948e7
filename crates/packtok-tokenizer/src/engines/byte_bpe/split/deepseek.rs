//! DeepSeek's three patterns, applied one after the other, a SIMD block at a time: `\p{N}{1,3}`;
//! `C+`; and in the text between these
//!
//! ```text
//! A|[^\r\n\p{L}S]?L+| ?S+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! C = [一-龥぀-ゟ゠-ヿ]   L = [\p{L}\p{M}]   S = [\p{P}\p{S}]   A = [!-/:-@\[-`{-~][A-Za-z]+
//! ```
//!
//! White space is split as in `cl100k`, but numbers and Chinese characters after it end a text. Letters (those outside
//! C, and marks) include one character of no class before them, such as a control character. Of several of these only
//! the last is included, and the others are a word.
//!
//! ```text
//! text     f ( a , b )   . c d é   . . e   ␀ ␀ g
//! begins   1 1 . 1 . 1   1 . . 1   1 . 1   1 1 .
//! ```
//!
//! - An ASCII symbol without a symbol or a space before it includes the ASCII letters after it. Any other letter after
//!   these starts a word.
//! - Symbols include a space before them and the newlines after them.

use super::bits::{before, last_whitespace, reached};
use super::cl100k::{numbers, whitespace_words};
use super::pattern_rules::{Carry, PatternRules};
use crate::engines::simd::{Masks, Signs};

#[derive(Clone, Copy)]
pub(super) struct Deepseek;

impl PatternRules for Deepseek {
    const NEEDS_SIGNS: bool = true;

    #[inline(always)]
    fn begins(
        self,
        _text: &[u8],
        at: usize,
        masks: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>) {
        let Masks {
            letter,
            number,
            whitespace,
            newline,
            space,
            wide,
            signs: Signs { symbol, cjk },
            ..
        } = *masks;
        let unclassed = unclassed(masks);
        let line_whitespace = whitespace & !newline;

        let others = symbol & !before(symbol, carry.other) & !before(space, carry.space);
        let ascii_letter = letter & !wide;
        // For a symbol beyond ASCII, `others` only has its first byte, so `before` never reaches a
        // letter after it.
        let after_prefix = before(others, carry.prefix);
        let joined = reached(after_prefix | carry.joined, ascii_letter);
        let line_whitespace_before = before(line_whitespace, carry.whitespace & !carry.newline);
        let letters = letter
            & !before(letter & !joined, carry.letter & !carry.joined)
            & !joined
            & !line_whitespace_before
            & !before(unclassed, carry.unclassed);
        let with_letters = match unclassed {
            0 => 0,
            _ => unclassed_before_letters(unclassed, masks, next),
        };
        let unclassed_runs = unclassed & !before(unclassed, carry.unclassed);
        let cjk_runs = cjk & !before(cjk, carry.cjk);
        let numbers = numbers(3, masks, carry);

        let first_taken = newline & before(symbol, carry.other) | carry.taken;
        let taken = reached(first_taken, newline);
        // Numbers and CJK characters end a text for white space. At the end of a text, white space
        // is not split before its last character, so both classes are treated as white space here.
        let [with_ends, next_with_ends] = [masks, next].map(|masks| Masks {
            whitespace: masks.whitespace | masks.number | masks.signs.cjk,
            ..*masks
        });
        let last = last_whitespace(&with_ends, &next_with_ends) & line_whitespace;
        let (whitespace_starts, earlier) = whitespace_words(at, taken, last, masks, next, carry);

        carry.letter = letter >> 63;
        carry.joined = joined >> 63;
        carry.number = number >> 63;
        carry.other = symbol >> 63;
        carry.cjk = cjk >> 63;
        carry.unclassed = unclassed >> 63;
        carry.whitespace = whitespace >> 63;
        carry.newline = newline >> 63;
        carry.space = space >> 63;
        carry.taken = taken >> 63;
        carry.prefix = others >> 63;
        let begins = letters
            | with_letters
            | unclassed_runs
            | cjk_runs
            | numbers
            | others
            | whitespace_starts;
        (begins, earlier)
    }
}

#[inline(always)]
fn unclassed(masks: &Masks) -> u64 {
    !(masks.letter | masks.number | masks.whitespace | masks.signs.symbol | masks.signs.cjk)
}

/// First bytes of the characters of no class that a letter follows.
#[cold]
fn unclassed_before_letters(unclassed: u64, masks: &Masks, next: &Masks) -> u64 {
    let after = |mask: u64, next: u64, n: usize| mask >> n | next << (64 - n);
    let mut goes_on = unclassed & !masks.inner;
    let mut before_letters = 0;
    for len in 1..=char::MAX.len_utf8() {
        let inner = after(masks.inner, next.inner, len);
        before_letters |= goes_on & !inner & after(masks.letter, next.letter, len);
        goes_on &= inner;
    }
    before_letters
}
