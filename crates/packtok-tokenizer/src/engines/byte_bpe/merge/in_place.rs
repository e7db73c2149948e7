//! Merges short words in a few registers' worth of memory. Several words are merged side by side, because each step of
//! a word waits for the step before it.
//!
//! ```text
//! place      0   1   2   3   4   5       alive: a bit for each place that has a symbol
//! symbols    -   h   e   l   l   o       place 0 stands for both ends of the word and never merges
//! ranks      .   .   3   1   .   .       rank of the merge of each symbol with the next, and its place in the low bits
//! new_ids    .   .  id  id   .   .       the id that this merge gives
//! ```

use super::rule::{MergeRule, NO_ID, NO_RULE, id_of, rank_of};
use super::rules::MergeRulesView;

/// Words that are merged side by side.
const NUM_IN_FLIGHT: usize = 4;

/// Bits for the place of a symbol.
const PLACE_BITS: u32 = 6;
/// At least this if two symbols do not merge.
const NO_RANK: u32 = rank_of(NO_RULE) << PLACE_BITS;

/// A word of less than `PLACES` symbols. `PLACES` is a power of two below 64.
#[derive(Clone, Copy)]
pub(super) struct InPlaceMerge<const PLACES: usize> {
    symbols: [u32; PLACES],
    ranks: [u32; PLACES],
    new_ids: [u32; PLACES],
    alive: u64,
}

impl<const PLACES: usize> InPlaceMerge<PLACES> {
    const NOTHING: Self = Self {
        symbols: [NO_ID; PLACES],
        ranks: [NO_RANK; PLACES],
        new_ids: [NO_ID; PLACES],
        alive: 1,
    };

    /// Appends the ids of a word.
    #[inline(always)]
    pub(super) fn encode(rules: MergeRulesView<'_>, word: &[u8], ids: &mut Vec<u32>) {
        let mut word_merge = Self::NOTHING;
        word_merge.begin(rules, word);
        while word_merge.step(rules) {}
        let (all, num_ids) = word_merge.ids();
        ids.extend_from_slice(&all[..num_ids]);
    }

    /// Calls `put` with the number of each word, its ids and their count, in any order.
    #[inline(always)]
    pub(super) fn encode_all<'a>(
        rules: MergeRulesView<'_>,
        words: impl Iterator<Item = &'a [u8]>,
        mut put: impl FnMut(usize, &[u32; PLACES], usize),
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
                    let (ids, num_ids) = word_merge.ids();
                    put(number, &ids, num_ids);
                }
                *word_merge = Self::NOTHING;
                *number = words.next().map(|(number, word)| {
                    word_merge.begin(rules, word);
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
            |at, id| self.symbols[(at + 1) % PLACES] = id,
            |at, merge| {
                let at = (at + 1) % PLACES;
                (self.ranks[at], self.new_ids[at]) = (rank_at(merge, at), id_of(merge));
            },
        );
        self.alive = (2 << num_symbols) - 1;
    }

    /// Performs the merge of lowest rank, leftmost first; `false` if none is left.
    #[inline(always)]
    fn step(&mut self, rules: MergeRulesView<'_>) -> bool {
        let first = self
            .ranks
            .iter()
            .fold(NO_RANK, |first, &rank| first.min(rank));
        if first >= NO_RANK {
            return false;
        }
        let at = first as usize % PLACES;
        let id = self.new_ids[at];
        let after = self.alive & (!1 << at);
        let rest = after & after.wrapping_sub(1);
        let gone = after.trailing_zeros() as usize % PLACES;
        // If no bit is set, this is 64, which is place 0 modulo `PLACES`.
        let next = rest.trailing_zeros() as usize % PLACES;
        let before = (self.alive & ((1 << at) - 1) | 1).ilog2() as usize % PLACES;
        let with_before = rules.by_ids.probe(self.symbols[before], id);
        let with_next = rules.by_ids.probe(id, self.symbols[next]);
        self.alive ^= after ^ rest;
        self.symbols[at] = id;
        self.ranks[gone] = NO_RANK;
        let merge = rules.by_ids.read(with_before);
        (self.ranks[before], self.new_ids[before]) = (rank_at(merge, before), id_of(merge));
        let merge = rules.by_ids.read(with_next);
        (self.ranks[at], self.new_ids[at]) = (rank_at(merge, at), id_of(merge));
        true
    }

    /// The ids that remain, and how many.
    #[inline(always)]
    fn ids(&self) -> ([u32; PLACES], usize) {
        let mut alive = self.alive & !1;
        let (mut ids, mut num_ids) = ([0; PLACES], 0);
        while alive != 0 {
            ids[num_ids % PLACES] = self.symbols[alive.trailing_zeros() as usize % PLACES];
            num_ids += 1;
            alive &= alive - 1;
        }
        (ids, num_ids)
    }
}

/// The rank of a merge with its place in the low bits, so that the minimum is the next merge; at least [`NO_RANK`] if
/// there is none.
#[inline(always)]
fn rank_at(merge: MergeRule, at: usize) -> u32 {
    rank_of(merge) << PLACE_BITS | at as u32
}
