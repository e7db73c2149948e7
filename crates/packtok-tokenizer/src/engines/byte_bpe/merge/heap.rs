//! Merging long words: the merges that are possible wait in a heap, lowest rank first, so that n bytes take
//! n log n steps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rule::{Merge, NO_MERGE, id_of, rank_of};
use super::rules::View;

/// Symbols for which memory is kept from word to word.
const KEPT: usize = 1 << 16;

/// What one thread needs for long words: 12 bytes for each of a word's, and 8 or more for each merge.
#[derive(Default)]
pub(in crate::engines::byte_bpe) struct Heap {
    symbols: Vec<Symbol>,
    /// Rank and position in one number, the rank high: the first of the lowest is the lowest number.
    merges: BinaryHeap<Reverse<u64>>,
}

#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    /// Position of the symbol before this one; the highest number there is at the beginning.
    before: u32,
    /// Position of the symbol behind this one, or of the end; the highest number there is when it is gone.
    behind: u32,
}

fn entry(merge: Merge, at: u32) -> Reverse<u64> {
    Reverse(u64::from(rank_of(merge)) << 32 | u64::from(at))
}

impl Heap {
    /// Appends the ids of a word of less than 2^32 - 1 bytes.
    pub(super) fn encode(&mut self, merges: View<'_>, word: &[u8], ids: &mut Vec<u32>) {
        let end = self.begin(merges, word);
        while let Some(Reverse(entry)) = self.merges.pop() {
            let (rank, at) = ((entry >> 32) as u32, entry as u32);
            let symbol = self.symbols[at as usize];
            // One of the two may have become part of another since; what is gone is behind nothing.
            if symbol.behind >= end {
                continue;
            }
            let merge = merges.merge(symbol.id, self.symbols[symbol.behind as usize].id);
            if merge != NO_MERGE && rank_of(merge) == rank {
                self.merge(merges, id_of(merge), at, end);
            }
        }
        let mut at = 0;
        while at < end {
            let symbol = self.symbols[at as usize];
            ids.push(symbol.id);
            at = symbol.behind;
        }
        if self.symbols.capacity() > KEPT {
            *self = Self::default();
        }
    }

    /// What a word begins as, and the merges there are; says how many symbols that is.
    fn begin(&mut self, merges: View<'_>, word: &[u8]) -> u32 {
        self.symbols.clear();
        let mut entries = std::mem::take(&mut self.merges).into_vec();
        entries.clear();
        let num_symbols = merges.begin(
            word,
            |at, id| {
                let at = at as u32;
                self.symbols.push(Symbol {
                    id,
                    before: at.wrapping_sub(1),
                    behind: at + 1,
                });
            },
            |at, merge| {
                if merge != NO_MERGE {
                    entries.push(entry(merge, at as u32));
                }
            },
        );
        self.merges = entries.into();
        num_symbols as u32
    }

    /// Makes one of the symbol at `at` and the one behind it, of this id.
    fn merge(&mut self, merges: View<'_>, id: u32, at: u32, end: u32) {
        let symbol = self.symbols[at as usize];
        let gone = &mut self.symbols[symbol.behind as usize];
        let after = std::mem::replace(&mut gone.behind, u32::MAX);
        self.symbols[at as usize].id = id;
        self.symbols[at as usize].behind = after;
        if after < end {
            self.symbols[after as usize].before = at;
            let merge = merges.merge(id, self.symbols[after as usize].id);
            if merge != NO_MERGE {
                self.merges.push(entry(merge, at));
            }
        }
        if symbol.before < end {
            let merge = merges.merge(self.symbols[symbol.before as usize].id, id);
            if merge != NO_MERGE {
                self.merges.push(entry(merge, symbol.before));
            }
        }
    }
}
