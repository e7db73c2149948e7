//! Finds the symbol that two symbols merge into, with two loads and without a branch.
//!
//! Each left symbol has a row: a base, which is added to a right symbol to find the slot of their rule. All rows share
//! the slots. The bases are chosen when the table is built, so that no two rules have the same slot.
//!
//! ```text
//! slot        0   1   2   3   4   5   6   7   8      d is 1, h is 2, n is 3, o is 4, r is 5, s is 6
//! row of t            th      to                     base 0
//! row of e                ed              er         base 2
//! row of i                        in          is     base 2
//! ```
//!
//! The left symbol and the slot determine the right symbol, so a lookup never returns the rule of other symbols.
//!
//! Most neighbours have no rule. With the base of a row, 32 bits say which right symbols it has, modulo 32. If the
//! bit is not set, the lookup reads slot 0, which is empty, so that only slots of rules that occur in texts are read,
//! and stay in the nearer caches.

use std::hint::select_unpredictable;

use super::symbol::{NO_SYMBOL, SYMBOL_BITS, Symbol};
use crate::engines::huge_table::{HugeTable, Slots};

/// A slot without a rule: no left symbol has so high a number.
const EMPTY: u64 = u64::MAX;
/// How often the number of slots is doubled if a row finds no place.
const DOUBLINGS: u32 = 4;
const RIGHT_BITS: u32 = 32;
/// Rows of at most this length fill the gaps between longer ones.
const MAX_SHORT_ROW: usize = 8;

pub(super) struct RowTable {
    /// For each left symbol, the base of its row and the bits of its right symbols.
    rows: HugeTable<u64>,
    /// The left symbol above what the symbols merge into.
    slots: HugeTable<u64>,
}

impl RowTable {
    /// Builds the table from all pairs of symbols that merge and the symbols that they merge into. The pairs differ, and
    /// those of each left symbol follow one another. All symbols are below `num_symbols`.
    ///
    /// # Errors
    /// A row finds no place. No known vocabulary causes this.
    pub(super) fn new(
        merges: &[([Symbol; 2], Symbol)],
        num_symbols: usize,
    ) -> Result<Self, String> {
        let mut rows: Vec<_> = merges
            .chunk_by(|before, after| before.0[0] == after.0[0])
            .collect();
        // The longest rows come first, while most slots are free.
        rows.sort_by_key(|row| std::cmp::Reverse(row.len()));
        // `NO_SYMBOL` must share its slots with no symbol.
        let least = (merges.len() * 5 / 4).max(num_symbols + 1).max(64);
        for doublings in 0..DOUBLINGS {
            let num_slots = least.next_power_of_two() << doublings;
            if let Some(table) = Self::with(num_slots, num_symbols, &rows) {
                return Ok(table);
            }
        }
        Err("no table was found for its merges".to_owned())
    }

    fn with(
        num_slots: usize,
        num_symbols: usize,
        rows: &[&[([Symbol; 2], Symbol)]],
    ) -> Option<Self> {
        let mut free = FreeSlots::new(num_slots);
        let mut table = Self {
            rows: HugeTable::new((num_symbols + 1).next_power_of_two()),
            slots: HugeTable::filled(num_slots, EMPTY),
        };
        let (all_rows, slots) = (table.rows.all_mut(), table.slots.all_mut());
        // The next row is tried where the last one was put: rows that are as long have no place before. Searches for
        // longer rows would take too long if they all began at 0.
        let (mut start, mut len) = (0, 0);
        for row in rows {
            if row.len() <= MAX_SHORT_ROW && row.len() != len {
                (start, len) = (0, row.len());
            }
            let rights = row.iter().map(|(pair, _)| pair[1] as usize);
            let base = free.base(start, rights.clone())?;
            start = base / 64;
            let mut bits = 0;
            for (&([left, right], merged), number) in row.iter().zip(rights) {
                let slot = (base + number) % num_slots;
                free.take(slot);
                slots[slot] = u64::from(left) << SYMBOL_BITS | u64::from(merged);
                bits |= 1 << (right % RIGHT_BITS);
            }
            let left = row[0].0[0] as usize;
            all_rows[left] = (base as u64) << RIGHT_BITS | bits;
        }
        Some(table)
    }

    /// A view for lookups: making slices of the tables takes longer than a lookup.
    #[inline]
    pub(super) fn view(&self) -> RowTableView<'_> {
        RowTableView {
            rows: self.rows.slots(),
            slots: self.slots.slots(),
        }
    }
}

/// The slots that no row has taken.
struct FreeSlots {
    /// A bit for each slot.
    bits: Vec<u64>,
}

impl FreeSlots {
    fn new(num_slots: usize) -> Self {
        let mut bits = vec![u64::MAX; num_slots / 64];
        bits[0] ^= 1;
        Self { bits }
    }

    /// A base at which all these right symbols have free slots. The search begins at the base `64 * start`, and tries
    /// 64 bases at once.
    fn base(&self, start: usize, rights: impl Iterator<Item = usize> + Clone) -> Option<usize> {
        let num_words = self.bits.len();
        let mut starts = (start..num_words).chain(0..start);
        starts.find_map(|start| {
            let mut bases = u64::MAX;
            for right in rights.clone() {
                let (word, shift) = (start + right / 64, right % 64);
                let [low, high] = [word, word + 1].map(|word| self.bits[word % num_words]);
                bases &= ((u128::from(high) << 64 | u128::from(low)) >> shift) as u64;
                if bases == 0 {
                    return None;
                }
            }
            Some(start * 64 + bases.trailing_zeros() as usize)
        })
    }

    fn take(&mut self, slot: usize) {
        self.bits[slot / 64] &= !(1 << (slot % 64));
    }
}

/// A view of a [`RowTable`] for lookups.
#[derive(Clone, Copy)]
pub(super) struct RowTableView<'a> {
    rows: Slots<'a, u64>,
    slots: Slots<'a, u64>,
}

/// The only slot in which the rule of two symbols can be.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    slot: usize,
    left: Symbol,
}

impl RowTableView<'_> {
    /// Computes where the rule of two neighbours would be.
    #[inline(always)]
    pub(super) fn probe(self, left: Symbol, right: Symbol) -> Probe {
        let row = *self.rows.at(left as usize);
        let is_there = row >> (right % RIGHT_BITS) & 1 == 1;
        let slot = (row >> RIGHT_BITS) + u64::from(right);
        // The condition is unpredictable, so this must not compile to a branch.
        let slot = select_unpredictable(is_there, slot as usize, 0);
        Probe { slot, left }
    }

    /// Reads the symbol at a probe; [`NO_SYMBOL`] if the slot holds the rule of other symbols.
    #[inline(always)]
    pub(super) fn read(self, probe: Probe) -> Symbol {
        let slot = *self.slots.at(probe.slot);
        let is_it = slot >> SYMBOL_BITS == u64::from(probe.left);
        select_unpredictable(is_it, slot as u32 & NO_SYMBOL, NO_SYMBOL)
    }
}
#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(merges: &HashMap<[Symbol; 2], Symbol>, others: &[[Symbol; 2]]) {
        let mut list: Vec<_> = merges.iter().map(|(&pair, &merge)| (pair, merge)).collect();
        list.sort_unstable();
        let table = RowTable::new(&list, 1 << 20).expect("there is a table");
        let view = table.view();
        for pair in merges.keys().chain(others) {
            let expected = merges.get(pair).copied().unwrap_or(NO_SYMBOL);
            assert_eq!(
                view.read(view.probe(pair[0], pair[1])),
                expected,
                "{pair:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_was_put_is_found_and_nothing_else(
            merges in prop::collection::hash_map([0..1u32 << 20, 0..1u32 << 20], 0..NO_SYMBOL, 0..400),
            others in prop::collection::vec([0..1u32 << 20, 0..1u32 << 20], 0..400),
        ) {
            check(&merges, &others);
        }
    }

    #[test]
    fn a_vocabulary_of_a_million_merges_has_a_table() {
        let merges = (0..1u32 << 20).map(|i| ([i & 0x3ff, i >> 10], i));
        let others: Vec<_> = (0..1000).map(|i| [1024 + i, 1024]).collect();
        check(&merges.collect(), &others);
    }
}
