//! Merges short words in a few registers' worth of memory. Several words are merged side by side, because each step of
//! a word waits for the step before it.
//!
//! ```text
//! place      0   1   2   3   4   5       alive: a bit for each place that has a symbol
//! symbols    -   h   e   l   l   o       place 0 stands for both ends of the word and never merges
//! merged     -   -  he   -  ll   -       what each symbol and the next merge into, and its place in the low bits
//! ```

use super::rules::MergeRulesView;
use super::symbol::{NO_SYMBOL, Symbol};
use crate::engines::word_key::{SHORT, WordKey};

/// Words that are merged side by side.
const NUM_IN_FLIGHT: usize = 4;

/// Bits for the place of a symbol.
const PLACE_BITS: u32 = 6;
/// At least this if two symbols do not merge.
const NOT_MERGED: u32 = NO_SYMBOL << PLACE_BITS;

/// A word of less than `PLACES` symbols. `PLACES` is a power of two below 64.
#[derive(Clone, Copy)]
pub(super) struct InPlaceMerge<const PLACES: usize> {
    symbols: [Symbol; PLACES],
    merged: [u32; PLACES],
    alive: u64,
}

impl<const PLACES: usize> InPlaceMerge<PLACES> {
    const NOTHING: Self = Self {
        symbols: [NO_SYMBOL; PLACES],
        merged: [NOT_MERGED; PLACES],
        alive: 1,
    };

    /// Appends the ids of a word.
    #[inline(always)]
    pub(super) fn encode(rules: MergeRulesView<'_>, word: &[u8], ids: &mut Vec<u32>) {
        let mut word_merge = Self::NOTHING;
        word_merge.begin(rules, word);
        while word_merge.step(rules) {}
        let (all, num_ids) = word_merge.ids(rules);
        ids.extend_from_slice(&all[..num_ids]);
    }

    /// Calls `put` with the number of each short word, its ids and their count, in any order.
    #[inline(always)]
    pub(super) fn encode_all(
        rules: MergeRulesView<'_>,
        words: impl Iterator<Item = WordKey>,
        mut put: impl FnMut(usize, &[u32; SHORT], usize),
    ) {
        let mut words = words.enumerate();
        let mut in_flight = [Self::NOTHING; NUM_IN_FLIGHT];
        let mut numbers = [None; NUM_IN_FLIGHT];
        loop {
            for (word_merge, number) in in_flight.iter_mut().zip(&mut numbers) {
                if word_merge.step(rules) {
                    continue;
                }
                if let Some(number) = *number {
                    let (ids, num_ids) = word_merge.ids(rules);
                    let ids = ids.first_chunk().expect("there are more places than bytes");
                    put(number, ids, num_ids);
                }
                *word_merge = Self::NOTHING;
                *number = words.next().map(|(number, word)| {
                    word_merge.begin(rules, &word.bytes()[..word.len()]);
                    number
                });
            }
            if numbers == [None; NUM_IN_FLIGHT] {
                return;
            }
        }
    }

    #[inline(always)]
    fn begin(&mut self, rules: MergeRulesView<'_>, word: &[u8]) {
        let num_symbols = rules.begin(
            word,
            |at, symbol| self.symbols[(at + 1) % PLACES] = symbol,
            |at, merged| {
                let at = (at + 1) % PLACES;
                self.merged[at] = merged_at(merged, at);
            },
        );
        self.alive = (2 << num_symbols) - 1;
    }

    /// Performs the merge into the lowest symbol, leftmost first; `false` if none is left.
    #[inline(always)]
    fn step(&mut self, rules: MergeRulesView<'_>) -> bool {
        let first = self
            .merged
            .iter()
            .fold(NOT_MERGED, |first, &merged| first.min(merged));
        if first >= NOT_MERGED {
            return false;
        }
        let at = first as usize % PLACES;
        let symbol = first >> PLACE_BITS;
        let after = self.alive & (!1 << at);
        let rest = after & after.wrapping_sub(1);
        let gone = after.trailing_zeros() as usize % PLACES;
        // If no bit is set, this is 64, which is place 0 modulo `PLACES`.
        let next = rest.trailing_zeros() as usize % PLACES;
        let before = (self.alive & ((1 << at) - 1) | 1).ilog2() as usize % PLACES;
        let with_before = rules.by_symbols.probe(self.symbols[before], symbol);
        let with_next = rules.by_symbols.probe(symbol, self.symbols[next]);
        self.alive ^= after ^ rest;
        self.symbols[at] = symbol;
        self.merged[gone] = NOT_MERGED;
        self.merged[before] = merged_at(rules.by_symbols.read(with_before), before);
        self.merged[at] = merged_at(rules.by_symbols.read(with_next), at);
        true
    }

    /// The ids that remain, and how many.
    #[inline(always)]
    fn ids(&self, rules: MergeRulesView<'_>) -> ([u32; PLACES], usize) {
        let mut alive = self.alive & !1;
        let (mut ids, mut num_ids) = ([0; PLACES], 0);
        while alive != 0 {
            let symbol = self.symbols[alive.trailing_zeros() as usize % PLACES];
            ids[num_ids % PLACES] = rules.id(symbol);
            num_ids += 1;
            alive &= alive - 1;
        }
        (ids, num_ids)
    }
}

/// A merged symbol with its place in the low bits, so that the minimum is the next merge; at least [`NOT_MERGED`] if
/// there is none.
#[inline(always)]
fn merged_at(merged: Symbol, at: usize) -> u32 {
    merged << PLACE_BITS | at as u32
}
