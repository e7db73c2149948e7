//! All merge rules of a vocabulary that can apply.
//!
//! A word starts as its bytes or characters (`alphabet`). Merging repeatedly applies the rule of
//! lowest rank among all adjacent pairs, leftmost first, until no pair has a rule.

use super::possible::{PairRule, possible_rules};
use super::row_table::{RowTable, RowTableView};
use super::rule::{ID_BITS, MergeRule, NO_ID, id_of};
use super::symbol::{NO_SYMBOL, Symbol};
use crate::engines::byte_bpe::alphabet::Alphabet;
use crate::engines::huge_table::{HugeTable, Slots};

/// The rules of all pairs of symbols.
pub(crate) struct MergeRules {
    alphabet: Alphabet,
    /// The ids of all symbols, and whether each is its own id.
    ids: HugeTable<u32>,
    are_symbols_ids: bool,
    /// For byte alphabets: the symbols of bytes, and what pairs of bytes merge into. So the initial symbols of a word
    /// need no probe.
    symbols_of_bytes: HugeTable<Symbol>,
    by_bytes: HugeTable<Symbol>,
    by_symbols: RowTable,
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
        let rules = possible_rules(merges, alphabet.ids(NO_ID));
        let ids = ids_of_symbols(&alphabet, &rules);
        let last_id = ids.iter().max().copied();
        let mut symbols = vec![NO_SYMBOL; last_id.map_or(0, |id| id as usize + 1)];
        for (symbol, &id) in (0..).zip(&ids) {
            symbols[id as usize] = symbol;
        }
        let symbol_of = |id: u32| symbols.get(id as usize).copied().unwrap_or(NO_SYMBOL);
        let of_pairs: Vec<_> = rules
            .iter()
            .map(|&(pair, rule)| (pair.map(symbol_of), symbol_of(id_of(rule))))
            .collect();
        let mut made = vec![false; symbols.len()];
        for (_, rule) in &rules {
            made[id_of(*rule) as usize] = true;
        }
        let mut rules = Self {
            alphabet: alphabet.map(symbol_of),
            are_symbols_ids: (0..).zip(&ids).all(|(symbol, &id)| symbol == id),
            ids: HugeTable::filled(ids.len().next_power_of_two(), NO_ID),
            symbols_of_bytes: HugeTable::filled(256, NO_SYMBOL),
            by_bytes: HugeTable::filled(1 << 16, NO_SYMBOL),
            by_symbols: RowTable::new(&of_pairs, ids.len())?,
            made,
        };
        rules.ids.all_mut()[..ids.len()].copy_from_slice(&ids);
        let symbol = |byte: usize| rules.alphabet.id_of_byte(byte as u8);
        for byte in 0..256 {
            rules.symbols_of_bytes.all_mut()[byte] = symbol(byte);
        }
        for pair in 0..1 << 16 {
            let merged = rules.view().merged(symbol(pair >> 8), symbol(pair & 255));
            rules.by_bytes.all_mut()[pair] = merged;
        }
        Ok(rules)
    }

    /// A view for lookups: making slices of the tables takes longer than a lookup.
    #[inline]
    pub(super) fn view(&self) -> MergeRulesView<'_> {
        MergeRulesView {
            alphabet: &self.alphabet,
            ids: self.ids.slots(),
            are_symbols_ids: self.are_symbols_ids,
            symbols_of_bytes: self.symbols_of_bytes.slots(),
            by_bytes: self.by_bytes.slots(),
            by_symbols: self.by_symbols.view(),
        }
    }

    /// Whether a character of a character alphabet has a symbol.
    #[inline]
    pub(crate) fn has(&self, char: char) -> bool {
        self.alphabet.has(char, NO_SYMBOL)
    }

    /// Whether merging the bytes of a token gives the token.
    pub(crate) fn makes(&self, id: u32) -> bool {
        self.made.get(id as usize) == Some(&true)
    }
}

/// The ids of all symbols: those of the alphabet, then those that rules make, by the ranks of the rules.
fn ids_of_symbols(alphabet: &Alphabet, rules: &[PairRule]) -> Vec<u32> {
    let mut ids: Vec<u32> = alphabet.ids(NO_ID).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut by_rank: Vec<MergeRule> = rules.iter().map(|(_, rule)| *rule).collect();
    by_rank.sort_unstable();
    ids.extend(by_rank.into_iter().map(id_of));
    ids
}

/// A view of [`MergeRules`] for lookups.
#[derive(Clone, Copy)]
pub(super) struct MergeRulesView<'a> {
    pub(super) alphabet: &'a Alphabet,
    pub(super) ids: Slots<'a, u32>,
    pub(super) are_symbols_ids: bool,
    pub(super) symbols_of_bytes: Slots<'a, Symbol>,
    pub(super) by_bytes: Slots<'a, Symbol>,
    pub(super) by_symbols: RowTableView<'a>,
}

impl MergeRulesView<'_> {
    /// The symbol that two neighbours merge into; [`NO_SYMBOL`] if they do not merge.
    #[inline(always)]
    pub(super) fn merged(self, left: Symbol, right: Symbol) -> Symbol {
        self.by_symbols.read(self.by_symbols.probe(left, right))
    }

    #[inline]
    fn merged_bytes(self, left: u8, right: u8) -> Symbol {
        *self
            .by_bytes
            .at(usize::from(left) << 8 | usize::from(right))
    }

    /// The id of a symbol.
    #[inline(always)]
    pub(super) fn id(self, symbol: Symbol) -> u32 {
        *self.ids.at(symbol as usize)
    }

    /// The id of a byte.
    #[inline]
    pub(super) fn id_of_byte(self, byte: u8) -> u32 {
        self.id(self.alphabet.id_of_byte(byte))
    }

    /// Calls `symbol` with each symbol of a word, and `merged` with what each symbol and its successor merge into.
    /// Returns the number of symbols.
    #[inline(always)]
    pub(super) fn begin(
        self,
        word: &[u8],
        mut symbol: impl FnMut(usize, Symbol),
        mut merged: impl FnMut(usize, Symbol),
    ) -> usize {
        let (mut num_symbols, mut before) = (0, 0);
        let is_of_chars = self.alphabet.is_of_chars();
        self.alphabet.symbols(word, |next| {
            symbol(num_symbols, next);
            if is_of_chars && num_symbols > 0 {
                merged(num_symbols - 1, self.merged(before, next));
            }
            before = next;
            num_symbols += 1;
        });
        if !is_of_chars {
            for (at, pair) in word.windows(2).enumerate() {
                merged(at, self.merged_bytes(pair[0], pair[1]));
            }
        }
        num_symbols
    }
}
