//! The pattern of cl100k, a SIMD block at a time:
//!
//! ```text
//! (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! - Letters include one character before them: white space except newlines, which always starts a word there, or a
//!   symbol without another symbol or a space before it.
//! - Numbers are words of up to three.
//! - Symbols include a space before them and the newlines after them.
//! - Of the remaining white space, everything up to the last newline is a word. The rest is a word up to its last
//!   character, and that character starts a word.

use super::bits::{after, before, last_whitespace, reached};
use super::contractions::{contraction_in_any_case, with_contractions};
use super::pattern_rules::{Carry, PatternRules};
use crate::engines::simd::Masks;

#[derive(Clone, Copy)]
pub(super) struct Cl100k {
    pub(super) digits: usize,
}

impl PatternRules for Cl100k {
    #[inline(always)]
    fn begins(
        self,
        text: &[u8],
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
            ..
        } = *masks;
        let other = !(letter | number | whitespace);
        let line_whitespace = whitespace & !newline;

        let others = other & !before(other, carry.other) & !before(masks.space, carry.space);
        let prefix = lone_symbols(others, masks, carry);
        let line_whitespace_before = before(line_whitespace, carry.whitespace & !carry.newline);
        let letters = letter
            & !before(letter, carry.letter)
            & !line_whitespace_before
            & !before(prefix, carry.prefix);
        let numbers = numbers(self.digits, masks, carry);

        let first_taken = newline & before(other, carry.other) | carry.taken;
        let taken = reached(first_taken, newline);
        let last = last_whitespace(masks, next) & !newline;
        let (whitespace_starts, earlier) = whitespace_words(at, taken, last, masks, next, carry);

        let begins = letters | numbers | others | whitespace_starts;
        carry.letter = letter >> 63;
        carry.number = number >> 63;
        carry.other = other >> 63;
        carry.whitespace = whitespace >> 63;
        carry.newline = newline >> 63;
        carry.space = masks.space >> 63;
        carry.taken = taken >> 63;
        carry.prefix = prefix >> 63;
        let apostrophes = masks.apostrophe & others & after(letter, next.letter);
        let begins = with_contractions(begins, apostrophes, carry, |i| {
            contraction_in_any_case(text, at + i)
        });
        (begins, earlier)
    }
}

/// All bytes of the symbols that start at `others`, and of a symbol that started at the end of the
/// previous SIMD block. A letter after one of these symbols belongs to the same word.
#[inline(always)]
pub(super) fn lone_symbols(others: u64, masks: &Masks, carry: &Carry) -> u64 {
    let mut symbols = others | carry.prefix & masks.inner;
    if masks.inner != 0 {
        for _ in 1..char::MAX.len_utf8() {
            symbols |= symbols << 1 & masks.inner;
        }
    }
    symbols
}

/// Where words of at most `digits` numbers start.
#[inline(always)]
pub(super) fn numbers(digits: usize, masks: &Masks, carry: &mut Carry) -> u64 {
    let number = masks.number;
    if digits == 1 {
        return number & !masks.inner;
    }
    let runs = number & !before(number, carry.number);
    let longer_than_three = number & number << 1 & number << 2 & number << 3;
    let goes_on = number & carry.number;
    if longer_than_three | goes_on | number & masks.wide == 0 {
        carry.num_digits = number.leading_ones();
        return runs;
    }
    count(digits, masks, runs, carry)
}

/// [`numbers`], one number at a time.
#[cold]
fn count(digits: usize, masks: &Masks, mut begins: u64, carry: &mut Carry) -> u64 {
    let mut numbers = masks.number & !masks.inner;
    while numbers != 0 {
        let number = numbers & numbers.wrapping_neg();
        numbers &= numbers - 1;
        if begins & number != 0 || carry.num_digits as usize == digits {
            begins |= number;
            carry.num_digits = 0;
        }
        carry.num_digits += 1;
    }
    begins
}

/// The starts of white-space words, excluding white space that symbols have `taken`, and the start
/// of a word that was pending. Before each character in `last`, white space is split.
#[inline(always)]
pub(super) fn whitespace_words(
    at: usize,
    taken: u64,
    last: u64,
    masks: &Masks,
    next: &Masks,
    carry: &mut Carry,
) -> (u64, Option<u32>) {
    let Masks {
        whitespace,
        newline,
        ..
    } = *masks;
    let line_whitespace = whitespace & !newline;
    let whitespace_starts = whitespace & !before(whitespace, carry.whitespace) & !taken
        | line_whitespace & before(taken, carry.taken)
        | last;
    let after_newline = line_whitespace & before(newline & !taken, carry.newline & !carry.taken);
    let (after_lines, earlier) = after_lines(
        at,
        after_newline,
        line_whitespace,
        newline,
        last,
        next,
        carry,
    );
    (whitespace_starts | after_lines, earlier)
}

/// White space after the newlines of a word is a word unless another newline follows. The word is
/// pending if only the next SIMD block can show this.
#[inline(always)]
fn after_lines(
    at: usize,
    mut after_newline: u64,
    line_whitespace: u64,
    newline: u64,
    last: u64,
    next: &Masks,
    carry: &mut Carry,
) -> (u64, Option<u32>) {
    let mut earlier = None;
    let next_is_newline = next.newline & 1 == 1;
    // A last character of two or three bytes may end in the next SIMD block.
    let next_goes_on = next.whitespace & !next.newline & 1 == 1 && last >> 62 == 0;
    if let Some(pending) = carry.pending {
        let end = line_whitespace.trailing_ones();
        let is_decided = end < 64 || !next_goes_on;
        if is_decided {
            carry.pending = None;
            let is_line = match end {
                64 => next_is_newline,
                _ => newline >> end & 1 == 1,
            };
            earlier = (!is_line).then_some(pending);
        }
    }
    // The carry runs through the white space and stops after it.
    let (sum, reaches_next) = line_whitespace.overflowing_add(after_newline);
    let mut ends_of_lines = sum & !line_whitespace & newline;
    while ends_of_lines != 0 {
        let before_end = (ends_of_lines & ends_of_lines.wrapping_neg()) - 1;
        ends_of_lines &= ends_of_lines - 1;
        after_newline &= !last_bit(after_newline & before_end);
    }
    if reaches_next && (next_goes_on || next_is_newline) {
        let last = last_bit(after_newline);
        if next_goes_on {
            carry.pending = Some(at as u32 + last.trailing_zeros());
        }
        after_newline &= !last;
    }
    (after_newline, earlier)
}

/// The highest set bit; 0 if no bit is set.
fn last_bit(mask: u64) -> u64 {
    match mask {
        0 => 0,
        _ => 1 << mask.ilog2(),
    }
}
