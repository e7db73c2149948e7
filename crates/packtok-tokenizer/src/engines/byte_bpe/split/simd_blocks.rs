//! Finds words 64 bytes at a time. Arithmetic on the masks of a SIMD block computes the word starts
//! for all its bytes at once.
//!
//! A pattern depends on the bytes before and after a position. [`Carry`] holds the state from the
//! previous SIMD block. The masks of the next SIMD block are computed first, because a pattern
//! looks ahead. The end of a text acts like endless white space: only there, white space is not
//! split before its last character.
//!
//! ```text
//! text       I   c a n ' t   g o        letter & !(letter << 1) & !(space << 1)
//! begins     1 1 0 0 0 1 0 1 0 0        ... and so on, for each class
//! ```

use std::marker::PhantomData;

use super::automaton::{Steps, StepsProgress};
use super::classes::ClassTable;
use super::pattern_rules::{Carry, PatternRules};
use super::wide::{ClassifyWide, Wide};
use crate::engines::simd::{Masks, SIMD_BLOCK_BYTES, Simd, SimdBlock};

/// Number of word ends found in one call; a SIMD block may add some more. The number is high,
/// because the remainder forms a group with few prefetches in flight.
const ENDS_PER_CALL: usize = 1024 - SIMD_BLOCK_BYTES;
pub(crate) const ROOM: usize = ENDS_PER_CALL + SIMD_BLOCK_BYTES + 2;

/// The progress of splitting a text.
pub(crate) struct SplitState {
    at: usize,
    /// The masks of the SIMD block at `at`.
    masks: Masks,
    carry: Carry,
    /// The classes of the last character beyond ASCII of the previous SIMD block. The character may
    /// extend into this SIMD block.
    last_wide: Wide,
    /// The end of the text, padded with spaces.
    last: SimdBlock,
    is_done: bool,
    /// The progress of patterns that an automaton applies.
    steps: StepsProgress,
    /// Whether the text has Chinese characters, if that was asked for.
    has_han: Option<bool>,
}

impl SplitState {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            masks: Masks::default(),
            carry: Carry::default(),
            last_wide: Wide::default(),
            last: [b' '; SIMD_BLOCK_BYTES],
            is_done: false,
            steps: StepsProgress::default(),
            has_han: None,
        }
    }

    /// Whether the text takes too long to split, and another engine must encode it.
    pub(crate) fn has_given_up(&self) -> bool {
        self.steps.has_given_up()
    }

    /// Whether the text has Chinese characters.
    pub(super) fn has_han(&mut self, classes: &ClassTable, text: &str) -> bool {
        *self
            .has_han
            .get_or_insert_with(|| classes.has_han(text.as_bytes()))
    }

    /// As [`SplitState::fill`], with automata.
    pub(super) fn fill_steps(
        &mut self,
        steps: &Steps,
        text: &str,
        ends: &mut [u32; ROOM],
    ) -> usize {
        steps.fill(text.as_bytes(), &mut self.steps, &mut ends[..ENDS_PER_CALL])
    }

    /// Writes the ends of the next words to `ends` and returns their number; 0 at the end.
    #[inline(always)]
    pub(super) fn fill(
        &mut self,
        simd: impl Simd,
        rules: impl PatternRules,
        table: &ClassTable,
        text: &str,
        ends: &mut [u32; ROOM],
    ) -> usize {
        let text = text.as_bytes();
        if self.is_done || text.is_empty() {
            return 0;
        }
        // State that changes with every SIMD block is kept in registers.
        let (mut at, mut carry) = (self.at, self.carry);
        let mut masks = match at {
            0 => self.masks(simd, rules, table, text, 0),
            _ => self.masks,
        };
        let mut num_ends = 0;
        while at < text.len() && num_ends <= ENDS_PER_CALL {
            let next = self.masks(simd, rules, table, text, at + SIMD_BLOCK_BYTES);
            let (mut begins, earlier) = rules.begins(text, at, &masks, &next, &mut carry);
            if let Some(at) = earlier {
                ends[num_ends] = at;
                num_ends += 1;
            }
            if at == 0 {
                // The first word has no predecessor that could end at its start.
                begins &= !1;
            }
            let left = text.len() - at;
            if left < SIMD_BLOCK_BYTES {
                begins &= (1 << left) - 1;
            }
            num_ends = emit(simd, begins, at as u32, ends, num_ends);
            masks = next;
            at += SIMD_BLOCK_BYTES;
        }
        (self.at, self.masks, self.carry) = (at, masks, carry);
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

    /// The masks of the SIMD block at `at`, padded with spaces after the end of the text.
    #[inline(always)]
    fn masks<R: PatternRules>(
        &mut self,
        simd: impl Simd,
        _rules: R,
        table: &ClassTable,
        text: &[u8],
        at: usize,
    ) -> Masks {
        let block = match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(block) => block,
            None => {
                self.last = last_simd_block(text, at);
                &self.last
            }
        };
        let mut masks = simd.ascii(block);
        if R::NEEDS_CASE {
            masks.case.upper = simd.within(block, b'A', 26);
            masks.case.slash = simd.within(block, b'/', 1);
        }
        if R::NEEDS_SIGNS {
            let visible = simd.within(block, b'!', b'~' - b'!' + 1);
            masks.signs.symbol = visible & !(masks.letter | masks.number);
        }
        if R::NEEDS_BEYOND_ASCII && masks.wide != 0 {
            let wide = simd.run(ClassifyWide {
                rules: PhantomData::<R>,
                last: &mut self.last_wide,
                table,
                text,
                at,
                wide: masks.wide,
                inner: masks.inner,
            });
            wide.add_to::<R>(&mut masks);
        }
        masks
    }
}

/// The rest of a text, padded with spaces.
#[cold]
#[inline(never)]
fn last_simd_block(text: &[u8], at: usize) -> SimdBlock {
    let mut block = [b' '; SIMD_BLOCK_BYTES];
    if let Some(rest) = text.get(at..) {
        block[..rest.len()].copy_from_slice(rest);
    }
    block
}

/// Appends the positions of the bits.
#[inline(always)]
fn emit(simd: impl Simd, bits: u64, base: u32, ends: &mut [u32; ROOM], num_ends: usize) -> usize {
    let room = ends.get_mut(num_ends..);
    let Some(room) = room.and_then(|room| room.first_chunk_mut()) else {
        unreachable!("there is room for the ends of a SIMD block")
    };
    simd.positions(bits, base, room);
    num_ends + bits.count_ones() as usize
}
