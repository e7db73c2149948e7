//! All merge rules of a vocabulary that can apply.
//!
//! A word starts as its bytes or characters (`alphabet`). Merging repeatedly applies the rule of
//! lowest rank among all adjacent pairs, leftmost first, until no pair has a rule.

use super::possible::possible_rules;
use super::rule::{ID_BITS, MergeRule, NO_ID, NO_RULE, id_of};
use super::rule_table::{RuleTable, RuleTableView};
use crate::engines::byte_bpe::alphabet::Alphabet;
use crate::engines::huge_table::{HugeTable, Slots};

/// The rules of all pairs of ids.
pub(crate) struct MergeRules {
    alphabet: Alphabet,
    /// The rules of pairs of bytes, for byte alphabets. The initial symbols of a word need no
    /// probe.
    by_bytes: HugeTable<MergeRule>,
    by_ids: RuleTable,
    /// For each id, whether a rule gives it.
    made: Vec<bool>,
}

impl MergeRules {
    /// Builds the rules from the alphabet and, by rank, the two ids and the resulting id of each
    /// merge. All ids are below [`MAX_IDS`](super::rule::MAX_IDS).
    ///
    /// If several rules have the same two ids, the last rule wins, as in the Python package.
    ///
    /// # Errors
    /// The rule table cannot be built.
    pub(crate) fn new(alphabet: Alphabet, by_rank: &[[u32; 3]]) -> Result<Self, String> {
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
        let merges = possible_rules(merges, alphabet.ids(NO_ID));
        let last_made = merges.iter().map(|(_, merge)| id_of(*merge)).max();
        let mut made = vec![false; last_made.map_or(0, |id| id as usize + 1)];
        for (_, merge) in &merges {
            made[id_of(*merge) as usize] = true;
        }
        let mut merges = Self {
            made,
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

    /// A view for lookups: making slices of the tables takes longer than a lookup.
    #[inline]
    pub(super) fn view(&self) -> MergeRulesView<'_> {
        MergeRulesView {
            alphabet: &self.alphabet,
            by_bytes: self.by_bytes.slots(),
            by_ids: self.by_ids.view(),
        }
    }

    /// Whether merging the bytes of a token gives the token.
    pub(crate) fn makes(&self, id: u32) -> bool {
        self.made.get(id as usize) == Some(&true)
    }

    #[inline]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.alphabet.id_of_byte(byte)
    }
}

/// A view of [`MergeRules`] for lookups.
#[derive(Clone, Copy)]
pub(super) struct MergeRulesView<'a> {
    alphabet: &'a Alphabet,
    by_bytes: Slots<'a, MergeRule>,
    pub(super) by_ids: RuleTableView<'a>,
}

impl MergeRulesView<'_> {
    /// The rule of two neighbours.
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

    /// Calls `symbol` with each symbol of a word, and `merge` with the rule of each symbol and its
    /// successor. Returns the number of symbols.
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
