//! One automaton for all steps that are applied one after the other. Its states are what all of them know between two
//! characters (`held.rs`).
//!
//! ```text
//! text      The cat, on | the mat.  | ...       three parts, which end where the text can be cut
//!           T             t           r         read at the same time, a group of bytes of each after the other
//! ends      . . . 1 . . . 1 1 .                 a bit for each byte of a group
//! ```

use std::collections::HashMap;
use std::ops::Range;

use super::classes::WIDE;
use super::dfa::StepDfa;
use super::held::{MAX_HELD, State, StepsInARow};
use crate::engines::byte_bpe::split::char_table::CharTable;

/// Transitions into further states are missing.
const MAX_STATES: usize = 600;

/// A transition: a bit for each place at which a word ends, and above that where the row of the next state starts.
type Packed = u32;

/// Places at which a word may end: before the character that is read, and before each one that may be held back.
const NUM_ENDS: usize = MAX_HELD + 1;

const ENDS: Packed = (1 << NUM_ENDS) - 1;

/// The row after a transition that does not exist; it leads to itself.
const NO_ROW: Packed = 0;

/// Bytes whose ends of words are one number. It also has the [`MAX_HELD`] bytes before them.
const GROUP: usize = 56;

const MAX_GROUPS: usize = 16;

/// Bytes of a part that is read at once.
pub(super) const MAX_PART_BYTES: usize = MAX_GROUPS * GROUP;

/// The automaton.
pub(super) struct Cascade {
    /// The symbol of each byte. Of those that begin characters beyond ASCII, [`WIDE`]; of the other bytes of these,
    /// unless there are steps on bytes, the symbol that changes nothing.
    of_byte: [u8; 256],
    of_char: CharTable,
    /// By state and symbol, a row for each state; first, [`NO_ROW`].
    transitions: Vec<Packed>,
    /// The row of the state that has read nothing.
    start: Packed,
    /// For each state, whether the end of a match is assumed.
    assumes_end: Vec<bool>,
    /// The symbol that changes nothing.
    nothing: u8,
    /// The symbol of the end of a text.
    end: usize,
}

/// How far a text, or a part of it, is read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) at: usize,
    /// The row of the current state, or `None` at the start of a text or of a part that is split as a text of its own.
    row: Option<Packed>,
}

impl Reading {
    pub(super) fn new(at: usize) -> Self {
        Self { at, row: None }
    }

    /// Whether a part is being read.
    pub(super) fn is_within_part(&self) -> bool {
        self.row.is_some()
    }
}

/// The result of reading a part of a text.
pub(super) struct PartRead {
    /// The row before each group.
    rows: [Packed; MAX_GROUPS + 1],
    /// The ends of words in each group.
    ends: [u64; MAX_GROUPS],
}

impl Cascade {
    /// `None` if the steps tell too many characters apart.
    pub(super) fn new(steps: &[StepDfa]) -> Option<Self> {
        let (steps, mut of_byte, of_char) = StepsInARow::new(steps)?;
        let (nothing, end) = (steps.num_symbols(), steps.num_symbols() + 1);
        let row_len = end + 1;
        if end >= usize::from(WIDE) {
            return None;
        }
        if !steps.have_bytes() {
            of_byte[0x80..0xc0].fill(nothing as u8);
        }
        let row = |number: usize| ((number + 1) * row_len) as Packed;
        let mut numbers = HashMap::from([(steps.start(), 0)]);
        let mut states = vec![steps.start()];
        let mut transitions = vec![NO_ROW << NUM_ENDS; row_len];
        let mut number = 0;
        while number < states.len() {
            for symbol in 0..row_len {
                if symbol == nothing {
                    transitions.push(row(number) << NUM_ENDS);
                    continue;
                }
                let read = (symbol != end).then_some(symbol as u8);
                let Ok((after, mut ends)) = steps.after(&states[number], read) else {
                    transitions.push(NO_ROW << NUM_ENDS);
                    continue;
                };
                if number == 0 {
                    // No word ends at the start of the text.
                    ends = 0;
                }
                let next = match numbers.get(&after) {
                    _ if symbol == end => Some(0),
                    Some(&next) => Some(next),
                    None if states.len() == MAX_STATES => None,
                    None => {
                        numbers.insert(after.clone(), states.len());
                        states.push(after);
                        Some(states.len() - 1)
                    }
                };
                transitions.push(next.map_or(NO_ROW, row) << NUM_ENDS | ends);
            }
            number += 1;
        }
        let assumes_end = |of_steps: &Vec<State>| of_steps.iter().any(State::assumes_end);
        Some(Self {
            of_byte,
            of_char: CharTable::new(&of_char),
            transitions,
            start: row(0),
            assumes_end: states.iter().map(assumes_end).collect(),
            nothing: nothing as u8,
            end,
        })
    }

    /// Reads parts of a text at the same time: each character waits for the one before it, but not for those of other
    /// parts. The first part continues a reading; before the others, the text can be cut.
    pub(super) fn read<const N: usize>(
        &self,
        text: &[u8],
        first: Reading,
        parts: &[Range<usize>; N],
    ) -> [PartRead; N] {
        let num_groups = parts.iter().map(num_groups).max().unwrap_or(0);
        let mut rows = [self.start; N];
        rows[0] = first.row.unwrap_or(self.start);
        let mut results = rows.map(|row| PartRead {
            rows: [row; MAX_GROUPS + 1],
            ends: [0; MAX_GROUPS],
        });
        for group in 0..num_groups {
            let mut bytes = [&[0; GROUP]; N];
            let mut are_ascii = true;
            for (bytes, part) in bytes.iter_mut().zip(parts) {
                match group_of(text, part, group).first_chunk() {
                    Some(of_group) => *bytes = of_group,
                    None => are_ascii = false,
                }
                are_ascii &= bytes.is_ascii();
            }
            let ends = if are_ascii {
                let symbol = |part: usize, i: usize| self.of_byte[usize::from(bytes[part][i])];
                self.read_group(&mut rows, symbol)
            } else {
                let symbols: [_; N] =
                    std::array::from_fn(|part| self.symbols(text, &parts[part], group));
                self.read_group(&mut rows, |part, i| symbols[part][i])
            };
            for (result, (row, ends)) in results.iter_mut().zip(rows.into_iter().zip(ends)) {
                result.rows[group + 1] = row;
                result.ends[group] = ends;
            }
        }
        results
    }

    /// Appends the ends of the words of a part. Returns whether all of it was read: if not, there is no transition for the
    /// next character.
    pub(super) fn append(
        &self,
        text: &[u8],
        result: &PartRead,
        part: &Range<usize>,
        reading: &mut Reading,
        ends: &mut Vec<u32>,
    ) -> bool {
        let num_groups = num_groups(part);
        let mut at = part.start;
        for group in 0..num_groups {
            if result.rows[group + 1] == NO_ROW {
                let row = Some(result.rows[group]);
                let symbols = self.symbols(text, part, group);
                *reading = self.read_one_by_one(&symbols, Reading { at, row }, ends);
                return false;
            }
            push_ends(result.ends[group], at, ends);
            at += GROUP;
        }
        *reading = Reading {
            at: part.end,
            row: Some(result.rows[num_groups]),
        };
        true
    }

    /// The symbols of a group, and after the end of the part [`Cascade::nothing`].
    #[inline]
    fn symbols(&self, text: &[u8], part: &Range<usize>, group: usize) -> [u8; GROUP] {
        let mut symbols = [self.nothing; GROUP];
        let mut wide = 0;
        for (i, (symbol, &byte)) in symbols
            .iter_mut()
            .zip(group_of(text, part, group))
            .enumerate()
        {
            *symbol = self.of_byte[usize::from(byte)];
            wide |= u64::from(*symbol == WIDE) << i;
        }
        while wide != 0 {
            let i = wide.trailing_zeros() as usize;
            wide &= wide - 1;
            symbols[i] = self.of_char.of_wide(text, part.start + group * GROUP + i);
        }
        symbols
    }

    /// Reads a group of each part, and returns the ends of words.
    #[inline(always)]
    fn read_group<const N: usize>(
        &self,
        rows: &mut [Packed; N],
        symbol: impl Fn(usize, usize) -> u8,
    ) -> [u64; N] {
        let mut ends = [0; N];
        for i in 0..GROUP {
            for part in 0..N {
                let symbol = usize::from(symbol(part, i));
                let transition = self.transitions[rows[part] as usize + symbol];
                // The bits of the characters before it move down.
                ends[part] =
                    ends[part] >> 1 | u64::from(transition) << (u64::BITS as usize - NUM_ENDS);
                rows[part] = transition >> NUM_ENDS;
            }
        }
        ends.map(|ends| ends >> (u64::BITS as usize - MAX_HELD - GROUP))
    }

    /// Whether the last ends that were found are certain.
    pub(super) fn is_certain(&self, reading: &Reading) -> bool {
        let row_len = self.end + 1;
        // The first row is not that of a state.
        let state = |row: Packed| row as usize / row_len - 1;
        reading.row.is_none_or(|row| !self.assumes_end[state(row)])
    }

    /// Reads the characters of a group that have a transition.
    #[cold]
    fn read_one_by_one(
        &self,
        symbols: &[u8; GROUP],
        mut reading: Reading,
        ends: &mut Vec<u32>,
    ) -> Reading {
        for &symbol in symbols {
            let row = reading.row.unwrap_or(self.start);
            let transition = self.transitions[row as usize + usize::from(symbol)];
            if transition >> NUM_ENDS == NO_ROW {
                break;
            }
            push_ends(u64::from(transition & ENDS), reading.at, ends);
            reading = Reading {
                at: reading.at + 1,
                row: Some(transition >> NUM_ENDS),
            };
        }
        reading
    }

    /// Reads the end of the text, or of a part of it, and appends the ends of the last words. Returns whether there is a
    /// transition.
    pub(super) fn read_end(&self, reading: &Reading, ends: &mut Vec<u32>) -> bool {
        let row = reading.row.unwrap_or(self.start);
        let transition = self.transitions[row as usize + self.end];
        let is_known = transition >> NUM_ENDS != NO_ROW;
        if is_known {
            push_ends(u64::from(transition & ENDS), reading.at, ends);
            ends.push(reading.at as u32);
        }
        is_known
    }
}

fn num_groups(part: &Range<usize>) -> usize {
    part.len().div_ceil(GROUP)
}

/// The bytes of a group, fewer at the end of the part.
fn group_of<'t>(text: &'t [u8], part: &Range<usize>, group: usize) -> &'t [u8] {
    let start = part.end.min(part.start + group * GROUP);
    &text[start..part.end.min(start + GROUP)]
}

/// Appends the positions of bits, the first of which is that of the first byte that may have been held back before `at`.
#[inline]
fn push_ends(mut bits: u64, at: usize, ends: &mut Vec<u32>) {
    let first = (at as u32).wrapping_sub(MAX_HELD as u32);
    let num_ends = ends.len() + bits.count_ones() as usize;
    while bits != 0 {
        // Some more than there are, so that most groups take the same number of rounds.
        let some: [u32; 8] = std::array::from_fn(|_| {
            let end = first.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
            end
        });
        ends.extend_from_slice(&some);
    }
    ends.truncate(num_ends);
}
