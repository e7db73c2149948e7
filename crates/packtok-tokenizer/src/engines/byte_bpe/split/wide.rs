//! The classes of characters beyond ASCII in a SIMD block.

use std::marker::PhantomData;

use super::bits::before;
use super::classes::{CJK, ClassTable, LETTER, LOWER, NUMBER, SYMBOL, UPPER, WHITESPACE};
use super::pattern_rules::PatternRules;
use crate::engines::simd::{Job, Masks, Simd};

/// Characters beyond ASCII of these classes.
#[derive(Clone, Copy, Default)]
pub(super) struct Wide {
    letter: u64,
    number: u64,
    whitespace: u64,
    upper: u64,
    both: u64,
    mark: u64,
    symbol: u64,
    cjk: u64,
}

/// Adds the classes of characters beyond ASCII to the masks: first to the first byte of each
/// character, then to its other bytes.
pub(super) struct Widen<'a, R> {
    pub(super) rules: PhantomData<R>,
    pub(super) last: &'a mut Wide,
    pub(super) table: &'a ClassTable,
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) masks: &'a mut Masks,
}

impl<R: PatternRules> Job for Widen<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: impl Simd) {
        let Self {
            last,
            table,
            text,
            at,
            masks,
            ..
        } = self;
        let first_bytes = masks.wide & !masks.inner;
        let mut begins = Wide::default();
        let decided = if R::NEEDS_CASE {
            let [lower, both] = table.case_by_first_two(simd, text, at);
            begins.both = first_bytes & both;
            lower | both
        } else {
            table.match_first_two(simd, text, at)
        };
        begins.letter = first_bytes & decided;
        let mut undecided = first_bytes & !decided;
        if R::NEEDS_SIGNS {
            begins.cjk = undecided & table.cjk_by_first_two(simd, text, at);
            undecided &= !begins.cjk;
        }
        while undecided != 0 {
            let i = undecided.trailing_zeros();
            undecided &= undecided - 1;
            let classes = table.of_wide(text, at + i as usize);
            begins.number |= u64::from(classes & NUMBER != 0) << i;
            begins.whitespace |= u64::from(classes & WHITESPACE != 0) << i;
            if R::NEEDS_CASE {
                let (is_upper, is_lower) = (classes & UPPER != 0, classes & LOWER != 0);
                let is_both = is_upper & is_lower;
                begins.letter |= u64::from(is_upper | is_lower) << i;
                begins.upper |= u64::from(is_upper & !is_lower) << i;
                begins.both |= u64::from(is_both) << i;
                begins.mark |= u64::from(is_both & (classes & LETTER == 0)) << i;
            } else {
                begins.letter |= u64::from(classes & LETTER != 0) << i;
            }
            if R::NEEDS_SIGNS {
                begins.symbol |= u64::from(classes & SYMBOL != 0) << i;
                begins.cjk |= u64::from(classes & CJK != 0) << i;
            }
        }
        let inner = masks.inner;
        let mut all = Wide {
            letter: with_inner(begins.letter, last.letter, inner),
            number: with_inner(begins.number, last.number, inner),
            whitespace: with_inner(begins.whitespace, last.whitespace, inner),
            ..Wide::default()
        };
        masks.letter |= all.letter;
        masks.number |= all.number;
        masks.whitespace |= all.whitespace;
        if R::NEEDS_CASE {
            all.upper = with_inner(begins.upper, last.upper, inner);
            all.both = with_inner(begins.both, last.both, inner);
            all.mark = with_inner(begins.mark, last.mark, inner);
            masks.case.upper |= all.upper;
            masks.case.both = all.both;
            masks.case.mark = all.mark;
        }
        if R::NEEDS_SIGNS {
            all.symbol = with_inner(begins.symbol, last.symbol, inner);
            all.cjk = with_inner(begins.cjk, last.cjk, inner);
            masks.signs.symbol |= all.symbol;
            masks.signs.cjk = all.cjk;
        }
        *last = Wide {
            letter: all.letter >> 63,
            number: all.number >> 63,
            whitespace: all.whitespace >> 63,
            upper: all.upper >> 63,
            both: all.both >> 63,
            mark: all.mark >> 63,
            symbol: all.symbol >> 63,
            cjk: all.cjk >> 63,
        };
    }
}

/// Extends the bits at first bytes to all bytes of their characters, including a character that
/// started in the previous SIMD block.
#[inline(always)]
fn with_inner(begins: u64, last: u64, inner: u64) -> u64 {
    let mut all = begins;
    let mut after = before(begins, last) & inner;
    for _ in 1..char::MAX.len_utf8() {
        all |= after;
        after = before(after, 0) & inner;
    }
    all
}
