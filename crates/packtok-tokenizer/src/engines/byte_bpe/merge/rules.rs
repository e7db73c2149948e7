//! The merges of a BPE: the ids of one word.
//!
//! A word begins as its bytes or characters (`alphabet.rs`); of all neighbours that have a merge, the one of lowest rank is merged, the
//! first of equals, until none has one. Short words are gone through from end to end for each merge, in a
//! few registers' worth of memory; long ones keep their merges in a heap (`heap.rs`).
//!
//! What two ids become is in `rule_table.rs`.

use super::rule::{ID_BITS, MergeRule, NO_RULE};
use super::rule_table::{self as rule_table, RuleTable};
use crate::engines::byte_bpe::alphabet::Alphabet;
use crate::engines::huge_table::{HugeTable, Slots};

/// The merge of each two ids that have one.
pub(in crate::engines::byte_bpe) struct MergeRules {
    alphabet: Alphabet,
    /// Of two bytes that are symbols.
    by_bytes: HugeTable<MergeRule>,
    by_ids: RuleTable,
}

impl MergeRules {
    /// From the ids that words begin as, and the two ids and the resulting one of each merge, by rank; all below
    /// [`MAX_IDS`].
    ///
    /// Where two ids have several merges the last counts, as in the Python package.
    ///
    /// # Errors
    /// Why there is no table for them.
    pub(in crate::engines::byte_bpe) fn new(
        alphabet: Alphabet,
        by_rank: &[[u32; 3]],
    ) -> Result<Self, String> {
        let mut merges: Vec<_> = (0..)
            .zip(by_rank)
            .map(|(rank, &[left, right, id])| {
                ([left, right], rank << ID_BITS | MergeRule::from(id))
            })
            .collect();
        merges.sort_unstable();
        merges.dedup_by(|later, earlier| {
            let is_again = later.0 == earlier.0;
            if is_again {
                *earlier = *later;
            }
            is_again
        });
        let mut merges = Self {
            alphabet,
            by_bytes: HugeTable::filled(1 << 16, NO_RULE),
            by_ids: RuleTable::new(&merges)?,
        };
        for pair in 0..1 << 16 {
            let id = |byte| merges.id_of_byte(byte as u8);
            let merge = merges.view().rule(id(pair >> 8), id(pair & 255));
            merges.by_bytes.all_mut()[pair] = merge;
        }
        Ok(merges)
    }

    /// The tables as they are looked at: to make slices of their memory takes longer than to look.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View {
            alphabet: &self.alphabet,
            by_bytes: self.by_bytes.slots(),
            by_ids: self.by_ids.view(),
        }
    }

    #[inline]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.alphabet.id_of_byte(byte)
    }
}

/// [`MergeRules`], with its tables at hand.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    alphabet: &'a Alphabet,
    by_bytes: Slots<'a, MergeRule>,
    pub(super) by_ids: rule_table::View<'a>,
}

impl View<'_> {
    /// The merge of two neighbours.
    #[inline(always)]
    pub(super) fn rule(self, left: u32, right: u32) -> MergeRule {
        self.by_ids.read(self.by_ids.probe(left, right))
    }

    #[inline]
    fn rule_of_bytes(self, left: u8, right: u8) -> MergeRule {
        *self
            .by_bytes
            .at(usize::from(left) << 8 | usize::from(right))
    }

    /// Calls `symbol` with each symbol of a word, `merge` with the merge of each and the one after it, and says how
    /// many symbols there are.
    #[inline(always)]
    pub(super) fn begin(
        self,
        word: &[u8],
        mut symbol: impl FnMut(usize, u32),
        mut merge: impl FnMut(usize, MergeRule),
    ) -> usize {
        let (mut num_symbols, mut before) = (0, 0);
        let is_of_chars = self.alphabet.is_of_chars();
        self.alphabet.symbols(word, |id| {
            symbol(num_symbols, id);
            if is_of_chars && num_symbols > 0 {
                merge(num_symbols - 1, self.rule(before, id));
            }
            before = id;
            num_symbols += 1;
        });
        if !is_of_chars {
            for (at, pair) in word.windows(2).enumerate() {
                merge(at, self.rule_of_bytes(pair[0], pair[1]));
            }
        }
        num_symbols
    }
}
