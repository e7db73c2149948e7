//! Merges long words. Possible merges wait in a heap, lowest symbol first, so n bytes take n log n
//! steps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rules::MergeRulesView;
use super::symbol::{NO_SYMBOL, Symbol};

/// Maximum number of symbols that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// Scratch memory of one thread for long words: 12 bytes per symbol and at least 8 per possible
/// merge.
#[derive(Default)]
pub(crate) struct MergeHeap {
    places: Vec<Place>,
    /// Each entry has the merged symbol in the high bits and the place in the low bits, so the smallest entry is the
    /// next merge.
    merges: BinaryHeap<Reverse<u64>>,
}

#[derive(Clone, Copy)]
struct Place {
    symbol: Symbol,
    /// The place of the symbol before this one; `u32::MAX` for the first.
    before: u32,
    /// The place of the symbol after this one, or the end; `u32::MAX` if this symbol was merged into another.
    after: u32,
}

fn entry(merged: Symbol, at: u32) -> Reverse<u64> {
    Reverse(u64::from(merged) << 32 | u64::from(at))
}

impl MergeHeap {
    /// Appends the ids of a word of less than 2^32 - 1 bytes.
    pub(super) fn encode(&mut self, rules: MergeRulesView<'_>, word: &[u8], ids: &mut Vec<u32>) {
        let end = self.begin(rules, word);
        while let Some(Reverse(entry)) = self.merges.pop() {
            let (merged, at) = ((entry >> 32) as u32, entry as u32);
            let place = self.places[at as usize];
            // The entry is stale if one of its two symbols has been merged; a merged symbol has no successor.
            if place.after < end
                && rules.merged(place.symbol, self.places[place.after as usize].symbol) == merged
            {
                self.merge(rules, merged, at, end);
            }
        }
        let mut at = 0;
        while at < end {
            let place = self.places[at as usize];
            ids.push(rules.id(place.symbol));
            at = place.after;
        }
        if self.places.capacity() > MAX_RETAINED {
            *self = Self::default();
        }
    }

    /// Initializes the symbols of a word and the heap. Returns the number of symbols.
    fn begin(&mut self, rules: MergeRulesView<'_>, word: &[u8]) -> u32 {
        self.places.clear();
        let mut entries = std::mem::take(&mut self.merges).into_vec();
        entries.clear();
        let num_symbols = rules.begin(
            word,
            |at, symbol| {
                let at = at as u32;
                self.places.push(Place {
                    symbol,
                    before: at.wrapping_sub(1),
                    after: at + 1,
                });
            },
            |at, merged| {
                if merged != NO_SYMBOL {
                    entries.push(entry(merged, at as u32));
                }
            },
        );
        self.merges = entries.into();
        num_symbols as u32
    }

    /// Replaces the symbol at `at` and the one after it by this one.
    fn merge(&mut self, rules: MergeRulesView<'_>, symbol: Symbol, at: u32, end: u32) {
        let Place { before, after, .. } = self.places[at as usize];
        let gone = &mut self.places[after as usize];
        let after = std::mem::replace(&mut gone.after, u32::MAX);
        self.places[at as usize].symbol = symbol;
        self.places[at as usize].after = after;
        if after < end {
            self.places[after as usize].before = at;
            let merged = rules.merged(symbol, self.places[after as usize].symbol);
            if merged != NO_SYMBOL {
                self.merges.push(entry(merged, at));
            }
        }
        if before < end {
            let merged = rules.merged(self.places[before as usize].symbol, symbol);
            if merged != NO_SYMBOL {
                self.merges.push(entry(merged, before));
            }
        }
    }
}
