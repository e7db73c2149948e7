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

impl Wide {
    /// The classes of the last byte, at bit 0.
    fn of_last_byte(self) -> Self {
        Self {
            letter: self.letter >> 63,
            number: self.number >> 63,
            whitespace: self.whitespace >> 63,
            upper: self.upper >> 63,
            both: self.both >> 63,
            mark: self.mark >> 63,
            symbol: self.symbol >> 63,
            cjk: self.cjk >> 63,
        }
    }

    /// Adds the classes that the rules need to the masks.
    #[inline(always)]
    pub(super) fn add_to<R: PatternRules>(&self, masks: &mut Masks) {
        masks.letter |= self.letter;
        masks.number |= self.number;
        masks.whitespace |= self.whitespace;
        if R::NEEDS_CASE {
            masks.case.upper |= self.upper;
            masks.case.both = self.both;
            masks.case.mark = self.mark;
        }
        if R::NEEDS_SIGNS {
            masks.signs.symbol |= self.symbol;
            masks.signs.cjk = self.cjk;
        }
    }
}

/// The classes of characters beyond ASCII in a SIMD block: first of the first byte of each character, then of its other
/// bytes.
///
/// They are returned, because masks that are passed by reference would be kept in memory and not in registers.
pub(super) struct ClassifyWide<'a, R> {
    pub(super) rules: PhantomData<R>,
    /// The classes of the last byte of the previous SIMD block, which is replaced by the last byte of this one.
    pub(super) last: &'a mut Wide,
    pub(super) table: &'a ClassTable,
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// [`Masks::wide`]
    pub(super) wide: u64,
    /// [`Masks::inner`]
    pub(super) inner: u64,
}

impl<R: PatternRules> Job for ClassifyWide<'_, R> {
    type Output = Wide;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> Wide {
        let Self {
            last,
            table,
            text,
            at,
            wide,
            inner,
            ..
        } = self;
        let first_bytes = wide & !inner;
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
        let mut all = Wide {
            letter: with_inner(begins.letter, last.letter, inner),
            number: with_inner(begins.number, last.number, inner),
            whitespace: with_inner(begins.whitespace, last.whitespace, inner),
            ..Wide::default()
        };
        if R::NEEDS_CASE {
            all.upper = with_inner(begins.upper, last.upper, inner);
            all.both = with_inner(begins.both, last.both, inner);
            all.mark = with_inner(begins.mark, last.mark, inner);
        }
        if R::NEEDS_SIGNS {
            all.symbol = with_inner(begins.symbol, last.symbol, inner);
            all.cjk = with_inner(begins.cjk, last.cjk, inner);
        }
        *last = all.of_last_byte();
        all
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
