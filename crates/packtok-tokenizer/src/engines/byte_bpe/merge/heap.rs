//! Merges long words. Possible merges wait in a heap, lowest rank first, so n bytes take n log n
//! steps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rule::{MergeRule, NO_RULE, id_of, rank_of};
use super::rules::MergeRulesView;

/// Maximum number of symbols that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// Scratch memory of one thread for long words: 12 bytes per symbol and at least 8 per possible
/// merge.
#[derive(Default)]
pub(crate) struct MergeHeap {
    symbols: Vec<Symbol>,
    /// Each entry has the rank in the high bits and the position in the low bits, so the smallest
    /// entry is the leftmost merge of the lowest rank.
    merges: BinaryHeap<Reverse<u64>>,
}

#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    /// Position of the symbol before this one; `u32::MAX` for the first.
    before: u32,
    /// Position of the symbol after this one, or the end; `u32::MAX` if this symbol was merged into another.
    after: u32,
}

fn entry(merge: MergeRule, at: u32) -> Reverse<u64> {
    Reverse(u64::from(rank_of(merge)) << 32 | u64::from(at))
}

impl MergeHeap {
    /// Appends the ids of a word of less than 2^32 - 1 bytes.
    pub(super) fn encode(&mut self, rules: MergeRulesView<'_>, word: &[u8], ids: &mut Vec<u32>) {
        let end = self.begin(rules, word);
        while let Some(Reverse(entry)) = self.merges.pop() {
            let (rank, at) = ((entry >> 32) as u32, entry as u32);
            let symbol = self.symbols[at as usize];
            // The entry is stale if one of its two symbols has been merged; a merged symbol has no successor.
            if symbol.after >= end {
                continue;
            }
            let merge = rules.rule(symbol.id, self.symbols[symbol.after as usize].id);
            if merge != NO_RULE && rank_of(merge) == rank {
                self.merge(rules, id_of(merge), at, end);
            }
        }
        let mut at = 0;
        while at < end {
            let symbol = self.symbols[at as usize];
            ids.push(symbol.id);
            at = symbol.after;
        }
        if self.symbols.capacity() > MAX_RETAINED {
            *self = Self::default();
        }
    }

    /// Initializes the symbols of a word and the heap. Returns the number of symbols.
    fn begin(&mut self, rules: MergeRulesView<'_>, word: &[u8]) -> u32 {
        self.symbols.clear();
        let mut entries = std::mem::take(&mut self.merges).into_vec();
        entries.clear();
        let num_symbols = rules.begin(
            word,
            |at, id| {
                let at = at as u32;
                self.symbols.push(Symbol {
                    id,
                    before: at.wrapping_sub(1),
                    after: at + 1,
                });
            },
            |at, merge| {
                if merge != NO_RULE {
                    entries.push(entry(merge, at as u32));
                }
            },
        );
        self.merges = entries.into();
        num_symbols as u32
    }

    /// Merges the symbol at `at` with the one after it, into this id.
    fn merge(&mut self, rules: MergeRulesView<'_>, id: u32, at: u32, end: u32) {
        let symbol = self.symbols[at as usize];
        let gone = &mut self.symbols[symbol.after as usize];
        let after = std::mem::replace(&mut gone.after, u32::MAX);
        self.symbols[at as usize].id = id;
        self.symbols[at as usize].after = after;
        if after < end {
            self.symbols[after as usize].before = at;
            let merge = rules.rule(id, self.symbols[after as usize].id);
            if merge != NO_RULE {
                self.merges.push(entry(merge, at));
            }
        }
        if symbol.before < end {
            let merge = rules.rule(self.symbols[symbol.before as usize].id, id);
            if merge != NO_RULE {
                self.merges.push(entry(merge, symbol.before));
            }
        }
    }
}
