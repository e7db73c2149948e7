//! The pattern of o200k, a SIMD block at a time:
//!
//! ```text
//! P?U*L+C?|P?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! P = [^\r\n\p{L}\p{N}]   U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]   L = [\p{Ll}\p{Lm}\p{Lo}\p{M}]
//! C = (?i:'s|'t|'re|'ve|'m|'ll|'d)
//! ```
//!
//! Mistral's tekken has no C, and each number is a word. Kimi K2's pattern has no slash, and is otherwise the same for
//! texts without Chinese characters.
//!
//! Numbers, symbols and white space are split as in `cl100k`, but slashes after the newlines that follow symbols
//! belong to the symbols too. Letters, including marks, are uppercase (in U only), lowercase (in L only), or both,
//! such as those of scripts without case:
//!
//! ```text
//! text     H T T P S e r v e r   語 a B   語 A B .   語 A b
//! begins   1 . . . . . . . . .   1  . 1   1  1 . 1   1  . .
//! ```
//!
//! - A word starts with an uppercase letter after a lowercase one, or after letters that are both and follow a
//!   lowercase one.
//! - Uppercase letters after letters that are both belong to them if a letter follows that is not uppercase: L+ needs
//!   one at the end. Otherwise the word ends with the last letter that is both, and the uppercase letters are another
//!   word. If only a later SIMD block shows that, they are pending.
//! - A word includes a contraction, after which another word starts.
//! - Marks after two symbols, or after a space and a symbol, are symbols: the word of these symbols includes them.

use super::bits::{before, last_whitespace, reached};
use super::cl100k::{lone_symbols, numbers, whitespace_words};
use super::contractions::contraction_in_any_case;
use super::pattern_rules::{Carry, PatternRules};
use crate::engines::simd::{Masks, SIMD_BLOCK_BYTES};

#[derive(Clone, Copy)]
pub(super) struct O200k {
    pub(super) is_tekken: bool,
    /// Whether slashes after the newlines that follow symbols belong to them.
    pub(super) takes_slashes: bool,
}

impl PatternRules for O200k {
    const NEEDS_CASE: bool = true;

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
            number,
            whitespace,
            newline,
            space,
            case,
            ..
        } = *masks;
        let slash = if self.takes_slashes { case.slash } else { 0 };
        let Symbols {
            taken,
            symbol,
            marks,
        } = symbols(masks, slash, carry);
        let (letter, both) = (masks.letter & !marks, case.both & !marks);
        let (upper, lower) = (case.upper, letter & !case.upper & !both);
        let line_whitespace = whitespace & !newline;

        let others = symbol & !before(symbol, carry.other) & !before(space, carry.space);
        let prefix = lone_symbols(others, masks, carry);
        let apostrophes = if self.is_tekken {
            0
        } else {
            masks.apostrophe & before(letter, carry.letter)
        };
        let (contracted, after_contractions) = contractions(text, at, apostrophes, carry);

        let line_whitespace_before = before(line_whitespace, carry.whitespace & !carry.newline);
        let letters = letter
            & !before(letter, carry.letter)
            & !line_whitespace_before
            & !before(prefix, carry.prefix);
        let after_lower = both & before(lower, carry.lowered) & !after_contractions;
        let lowered = lower | reached(after_lower, both);
        let after_lowered = upper & before(lowered, carry.lowered);
        let after_both = upper & before(both & !lowered, carry.both & !carry.lowered);
        let (uppers, earlier_uppers) = if after_both == 0 && carry.pending_upper.is_none() {
            (0, None)
        } else {
            words_of_upper(at, after_both, upper, letter, next, carry)
        };
        let numbers = numbers(if self.is_tekken { 1 } else { 3 }, masks, carry);

        let last = last_whitespace(masks, next) & !newline;
        let (whitespace_starts, earlier) = whitespace_words(at, taken, last, masks, next, carry);

        let begins = letters | after_lowered | uppers | numbers | others | whitespace_starts;
        carry.letter = letter >> 63;
        carry.lowered = lowered >> 63;
        carry.both = both >> 63;
        carry.number = number >> 63;
        carry.other = symbol >> 63;
        carry.whitespace = whitespace >> 63;
        carry.newline = newline >> 63;
        carry.space = space >> 63;
        carry.taken = taken >> 63;
        carry.prefix = prefix >> 63;
        // White space and letters are never pending together, because whichever is pending contains
        // the last byte of the SIMD block.
        let begins = begins & !contracted | after_contractions;
        (begins, earlier.or(earlier_uppers))
    }
}

/// The parts of words of symbols.
struct Symbols {
    symbol: u64,
    /// Newlines and slashes after them.
    taken: u64,
    /// Marks that count as symbols.
    marks: u64,
}

#[inline(always)]
fn symbols(masks: &Masks, slash: u64, carry: &Carry) -> Symbols {
    let other = !(masks.letter | masks.number | masks.whitespace);
    if masks.case.mark & before(other, carry.other) != 0 {
        return symbols_and_marks(masks, slash, carry);
    }
    let of_ends = masks.newline | slash;
    let first_taken = masks.newline & before(other, carry.other) | carry.taken;
    let taken = reached(first_taken, of_ends);
    Symbols {
        symbol: other & !taken,
        taken,
        marks: 0,
    }
}

/// [`symbols`] if a mark follows a symbol: byte by byte.
#[cold]
fn symbols_and_marks(masks: &Masks, slash: u64, carry: &Carry) -> Symbols {
    #[derive(Clone, Copy, PartialEq)]
    enum Word {
        /// No position in a word of symbols.
        Other,
        /// After one symbol without a space before it.
        One,
        Symbols,
        Ended,
    }
    let other = !(masks.letter | masks.number | masks.whitespace);
    let mut word = match (carry.taken, carry.prefix, carry.other) {
        (1, ..) => Word::Ended,
        (_, 1, _) => Word::One,
        (.., 1) => Word::Symbols,
        _ => Word::Other,
    };
    let mut is_after_space = carry.space == 1;
    let mut symbols = Symbols {
        symbol: 0,
        taken: 0,
        marks: 0,
    };
    for bit in (0..SIMD_BLOCK_BYTES).map(|i| 1 << i) {
        let is = |mask: u64| mask & bit != 0;
        word = if is(masks.newline) && word != Word::Other || is(slash) && word == Word::Ended {
            Word::Ended
        } else if is(other) {
            match word {
                _ if is(masks.inner) => word,
                Word::Other | Word::Ended if !is_after_space => Word::One,
                _ => Word::Symbols,
            }
        } else if is(masks.case.mark) && word == Word::Symbols {
            symbols.marks |= bit;
            Word::Symbols
        } else {
            Word::Other
        };
        match word {
            Word::Other => {}
            Word::One | Word::Symbols => symbols.symbol |= bit,
            Word::Ended => symbols.taken |= bit,
        }
        is_after_space = is(masks.space);
    }
    symbols
}

/// The bytes of contractions, and the bytes after them.
#[inline(always)]
fn contractions(text: &[u8], at: usize, mut apostrophes: u64, carry: &mut Carry) -> (u64, u64) {
    let (mut contracted, mut after) = (carry.contracted, carry.after_contractions);
    (carry.contracted, carry.after_contractions) = (0, 0);
    while apostrophes != 0 {
        let i = apostrophes.trailing_zeros();
        apostrophes &= apostrophes - 1;
        // A word starts after a contraction. If that word starts with an apostrophe, it is not
        // another contraction.
        if after >> i & 1 == 1 {
            continue;
        }
        if let Some(len) = contraction_in_any_case(text, at + i as usize) {
            let first = 1u128 << i;
            let end = first << len;
            let inside = end - first;
            contracted |= inside as u64;
            after |= end as u64;
            carry.contracted |= (inside >> SIMD_BLOCK_BYTES) as u64;
            carry.after_contractions |= (end >> SIMD_BLOCK_BYTES) as u64;
        }
    }
    (contracted, after)
}

/// The starts of words among the runs of uppercase letters at `after_both`, and the start of a run
/// that was pending.
#[cold]
fn words_of_upper(
    at: usize,
    after_both: u64,
    upper: u64,
    letter: u64,
    next: &Masks,
    carry: &mut Carry,
) -> (u64, Option<u32>) {
    // `None` if the run continues in the next SIMD block; otherwise, whether another letter follows
    // the run.
    let goes_on = |first: u32| {
        let end = first + (upper >> first).trailing_ones();
        match end {
            64 if next.case.upper & 1 == 1 => None,
            64 => Some(next.letter & 1 == 1),
            _ => Some(letter >> end & 1 == 1),
        }
    };
    let mut earlier = None;
    if let Some(pending) = carry.pending_upper
        && let Some(goes_on) = goes_on(0)
    {
        carry.pending_upper = None;
        earlier = (!goes_on).then_some(pending);
    }
    let (mut words, mut runs) = (0, after_both);
    while runs != 0 {
        let first = runs.trailing_zeros();
        runs &= runs - 1;
        match goes_on(first) {
            None => carry.pending_upper = Some(at as u32 + first),
            Some(goes_on) => words |= u64::from(!goes_on) << first,
        }
    }
    (words, earlier)
}
