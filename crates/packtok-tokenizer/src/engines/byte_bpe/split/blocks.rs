//! Finds words 64 bytes at a time: where words start is computed for all bytes of a block at once, by arithmetic on
//! its masks.
//!
//! A pattern depends on what comes before and after a byte. What extends from the block before is carried in
//! [`Carry`]. What comes after is in the next block, whose masks are therefore computed first. The end of a text looks
//! like endless white space: only there, white space is not split before its last character.
//!
//! ```text
//! text       I   c a n ' t   g o        letter & !(letter << 1) & !(space << 1)
//! begins     1 1 0 0 0 1 0 1 0 0        ... and so on, for each class
//! ```

use std::marker::PhantomData;

use super::classes::{CJK, ClassTable, LETTER, LOWER, NUMBER, SYMBOL, UPPER, WHITESPACE};
use crate::engines::lane::{BLOCK, Job, Lane, Masks};

/// Ends of words that are found in one call; a block may add some more. Many, because the remainder forms a group with
/// few prefetches in flight.
const ENDS_PER_CALL: usize = 1024 - BLOCK;
pub(crate) const ROOM: usize = ENDS_PER_CALL + BLOCK + 2;

/// State that extends from one block into the next. A mask is the last bit of the block before, as bit 0, unless
/// stated otherwise.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    pub(super) letter: u64,
    pub(super) number: u64,
    pub(super) other: u64,
    pub(super) whitespace: u64,
    pub(super) newline: u64,
    pub(super) space: u64,
    pub(super) wide: u64,
    /// Newlines, and with some patterns slashes, that belong to the symbols before them.
    pub(super) taken: u64,
    /// A symbol that begins a run of symbols and has no space before it.
    pub(super) prefix: u64,
    /// Bytes of this block at which words after contractions start.
    pub(super) after_contractions: u64,
    /// Bytes of this block that belong to a contraction.
    pub(super) contracted: u64,
    /// Letters that belong to the symbol before them.
    pub(super) joined: u64,
    /// Chinese characters that are split off.
    pub(super) cjk: u64,
    /// Characters of no class, for patterns that have a class of symbols.
    pub(super) unclassed: u64,
    /// Lowercase letters, and letters without case after these.
    pub(super) lowered: u64,
    /// Letters without case, and marks.
    pub(super) both: u64,
    /// Uppercase letters from this position on are a word unless a letter of another kind follows them.
    pub(super) pending_upper: Option<u32>,
    /// Numbers in the current word.
    pub(super) num_digits: u32,
    /// White space from this position on is a word unless a newline follows it.
    pub(super) pending: Option<u32>,
}

/// The rules of a pattern for a block.
pub(super) trait Rules: Copy {
    /// Whether it needs the classes of characters beyond ASCII.
    const NEEDS_BEYOND_ASCII: bool = true;
    /// Whether it needs [`Masks::case`]; marks then count as letters.
    const NEEDS_CASE: bool = false;
    /// Whether it needs [`Masks::signs`]; marks then count as letters, and Chinese characters do not.
    const NEEDS_SIGNS: bool = false;

    /// Where words start in the block at `at`. A word before all of these may start at the second result, if it was
    /// pending.
    fn begins(
        self,
        text: &[u8],
        at: usize,
        block: &Masks,
        next: &Masks,
        carry: &mut Carry,
    ) -> (u64, Option<u32>);
}

/// How far a text has been split.
pub(crate) struct SplitState {
    at: usize,
    /// The masks of the block at `at`.
    block: Masks,
    carry: Carry,
    /// The classes of the last character beyond ASCII of the block before, which may extend into this one.
    last_wide: Wide,
    /// The end of the text, padded with spaces.
    last: [u8; BLOCK],
    is_done: bool,
}

impl SplitState {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            block: Masks::default(),
            carry: Carry::default(),
            last_wide: Wide::default(),
            last: [b' '; BLOCK],
            is_done: false,
        }
    }

    /// Writes the ends of the next words to `ends` and returns their number; 0 at the end.
    #[inline(always)]
    pub(super) fn fill(
        &mut self,
        lane: impl Lane,
        rules: impl Rules,
        table: &ClassTable,
        text: &str,
        ends: &mut [u32; ROOM],
    ) -> usize {
        let text = text.as_bytes();
        if self.is_done || text.is_empty() {
            return 0;
        }
        // What changes with every block is kept in registers.
        let (mut at, mut carry) = (self.at, self.carry);
        let mut block = match at {
            0 => self.masks(lane, rules, table, text, 0),
            _ => self.block,
        };
        let mut num_ends = 0;
        while at < text.len() && num_ends <= ENDS_PER_CALL {
            let next = self.masks(lane, rules, table, text, at + BLOCK);
            let (mut begins, earlier) = rules.begins(text, at, &block, &next, &mut carry);
            if let Some(at) = earlier {
                ends[num_ends] = at;
                num_ends += 1;
            }
            if at == 0 {
                // No word ends where the first one starts.
                begins &= !1;
            }
            let left = text.len() - at;
            if left < BLOCK {
                begins &= (1 << left) - 1;
            }
            num_ends = emit(lane, begins, at as u32, ends, num_ends);
            block = next;
            at += BLOCK;
        }
        (self.at, self.block, self.carry) = (at, block, carry);
        if at < text.len() {
            return num_ends;
        }
        self.is_done = true;
        let last = [carry.pending, Some(text.len() as u32)];
        for end in last.into_iter().flatten() {
            if num_ends == 0 || ends[num_ends - 1] < end {
                ends[num_ends] = end;
                num_ends += 1;
            }
        }
        num_ends
    }

    /// The masks of the block at `at`, padded with spaces after the end of the text.
    #[inline(always)]
    fn masks<R: Rules>(
        &mut self,
        lane: impl Lane,
        _rules: R,
        table: &ClassTable,
        text: &[u8],
        at: usize,
    ) -> Masks {
        let block = match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(block) => block,
            None => {
                self.last = last_block(text, at);
                &self.last
            }
        };
        let mut masks = lane.ascii(block);
        if R::NEEDS_CASE {
            masks.case.upper = lane.within(block, b'A', 26);
            masks.case.slash = lane.within(block, b'/', 1);
        }
        if R::NEEDS_SIGNS {
            let visible = lane.within(block, b'!', b'~' - b'!' + 1);
            masks.signs.symbol = visible & !(masks.letter | masks.number);
        }
        if R::NEEDS_BEYOND_ASCII && masks.wide != 0 {
            lane.run(Widen {
                rules: PhantomData::<R>,
                last: &mut self.last_wide,
                table,
                text,
                at,
                masks: &mut masks,
            });
        }
        masks
    }
}

/// Characters beyond ASCII of these classes.
#[derive(Clone, Copy, Default)]
struct Wide {
    letter: u64,
    number: u64,
    whitespace: u64,
    upper: u64,
    both: u64,
    mark: u64,
    symbol: u64,
    cjk: u64,
}

/// Adds the classes of characters beyond ASCII to the masks: first for the first byte of each, then for its other
/// bytes.
struct Widen<'a, R> {
    rules: PhantomData<R>,
    last: &'a mut Wide,
    table: &'a ClassTable,
    text: &'a [u8],
    at: usize,
    masks: &'a mut Masks,
}

impl<R: Rules> Job for Widen<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
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
            let [lower, both] = table.case_by_first_two(lane, text, at);
            begins.both = first_bytes & both;
            lower | both
        } else {
            table.match_first_two(lane, text, at)
        };
        begins.letter = first_bytes & decided;
        let mut undecided = first_bytes & !decided;
        if R::NEEDS_SIGNS {
            begins.cjk = undecided & table.cjk_by_first_two(lane, text, at);
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

/// Extends the bits at first bytes to all bytes of their characters, and continues a character from the block before.
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

/// The rest of a text, padded with spaces.
#[cold]
#[inline(never)]
fn last_block(text: &[u8], at: usize) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    if let Some(rest) = text.get(at..) {
        block[..rest.len()].copy_from_slice(rest);
    }
    block
}

/// Appends the positions of the bits.
#[inline(always)]
fn emit(lane: impl Lane, bits: u64, base: u32, ends: &mut [u32; ROOM], num_ends: usize) -> usize {
    let room = ends.get_mut(num_ends..);
    let Some(room) = room.and_then(|room| room.first_chunk_mut()) else {
        unreachable!("there is room for a block's")
    };
    lane.positions(bits, base, room);
    num_ends + bits.count_ones() as usize
}

/// For each byte, the bit of the byte before it.
#[inline(always)]
pub(super) fn before(mask: u64, carried: u64) -> u64 {
    mask << 1 | carried
}

/// For each byte, the bit of the byte after it.
#[inline(always)]
pub(super) fn after(mask: u64, next: u64) -> u64 {
    mask >> 1 | next << 63
}

/// The bits of `through` that follow a bit of `from` in the same run.
///
/// The carry of an addition runs from a bit to the end of its run. If several bits are in one run, the addition leaves
/// the later ones as they are.
#[inline(always)]
pub(super) fn reached(from: u64, through: u64) -> u64 {
    let from = from & through;
    (through.wrapping_add(from) ^ through | from) & through
}

/// First bytes of white space characters after which no white space follows.
#[inline(always)]
pub(super) fn last_whitespace(block: &Masks, next: &Masks) -> u64 {
    let first_bytes = block.whitespace & !block.inner;
    if block.whitespace & block.wide == 0 {
        return first_bytes & !after(block.whitespace, next.whitespace);
    }
    // White space beyond ASCII has two or three bytes.
    let inner = after(block.inner, next.inner);
    let inner_too = inner & (block.inner >> 2 | next.inner << 62);
    let whitespace_after = |n: u32| block.whitespace >> n | next.whitespace << (64 - n);
    let goes_on = !inner & whitespace_after(1)
        | inner & !inner_too & whitespace_after(2)
        | inner_too & whitespace_after(3);
    first_bytes & !goes_on
}

/// Splits off contractions: `apostrophes` are the candidates, and `length` gives the length of the contraction at a
/// byte of the block.
#[inline(always)]
pub(super) fn with_contractions(
    begins: u64,
    mut apostrophes: u64,
    carry: &mut Carry,
    length: impl Fn(usize) -> Option<usize>,
) -> u64 {
    let carried = (carry.contracted, carry.after_contractions);
    (carry.contracted, carry.after_contractions) = (0, 0);
    let (mut contracted, mut after) = carried;
    while apostrophes != 0 {
        let i = apostrophes.trailing_zeros() as usize;
        apostrophes &= apostrophes - 1;
        if let Some(len) = length(i) {
            let first_letter = 2u128 << i;
            let end = 1u128 << (i + len);
            contracted |= first_letter as u64;
            after |= end as u64;
            carry.contracted |= (first_letter >> 64) as u64;
            carry.after_contractions |= (end >> 64) as u64;
        }
    }
    begins & !contracted | after
}

/// Length of `'s|'t|'re|'ve|'m|'ll|'d` at an apostrophe.
#[inline]
pub(super) fn contraction(bytes: &[u8], at: usize, fold: impl Fn(u8) -> u8) -> Option<usize> {
    let letter = |i: usize| bytes.get(at + i).copied().map(&fold);
    match (letter(1)?, letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(2),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(3),
        _ => None,
    }
}

/// Length of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at `at`, if it matches.
#[inline]
pub(super) fn contraction_in_any_case(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\'') {
        return None;
    }
    // `(?i:s)` also matches the long s.
    if bytes[at + 1..].starts_with("ſ".as_bytes()) {
        return Some(1 + "ſ".len());
    }
    contraction(bytes, at, |byte| byte.to_ascii_lowercase())
}
