//! The merges of a BPE: the ids of one word.
//!
//! A word begins as its bytes or characters (`alphabet.rs`); of all neighbours that have a merge, the one of lowest rank is merged, the
//! first of equals, until none has one. Short words are gone through from end to end for each merge, in a
//! few registers' worth of memory; long ones keep their merges in a heap (`heap.rs`).
//!
//! What two ids become is in `merge_table.rs`.

use super::rule::{ID_BITS, Merge, NO_MERGE};
use super::rule_table::{self as merge_table, MergeTable};
use crate::engines::byte_bpe::alphabet::Alphabet;
use crate::engines::huge_table::{Places, Table};

/// The merge of each two ids that have one.
pub(in crate::engines::byte_bpe) struct Merges {
    alphabet: Alphabet,
    /// Of two bytes that are symbols.
    of_bytes: Table<Merge>,
    of_ids: MergeTable,
}

impl Merges {
    /// From the ids that words begin as, and the two ids and the resulting one of each merge, by rank; all below
    /// [`MOST_IDS`].
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
            .map(|(rank, &[left, right, id])| ([left, right], rank << ID_BITS | Merge::from(id)))
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
            of_bytes: Table::filled(1 << 16, NO_MERGE),
            of_ids: MergeTable::new(&merges)?,
        };
        for pair in 0..1 << 16 {
            let id = |byte| merges.id_of_byte(byte as u8);
            let merge = merges.view().merge(id(pair >> 8), id(pair & 255));
            merges.of_bytes.all_mut()[pair] = merge;
        }
        Ok(merges)
    }

    /// The tables as they are looked at: to make slices of their memory takes longer than to look.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View {
            alphabet: &self.alphabet,
            of_bytes: self.of_bytes.places(),
            of_ids: self.of_ids.view(),
        }
    }

    #[inline]
    pub(super) fn id_of_byte(&self, byte: u8) -> u32 {
        self.alphabet.id_of_byte(byte)
    }
}

/// [`Merges`], with its tables at hand.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    alphabet: &'a Alphabet,
    of_bytes: Places<'a, Merge>,
    pub(super) of_ids: merge_table::View<'a>,
}

impl View<'_> {
    /// The merge of two neighbours.
    #[inline(always)]
    pub(super) fn merge(self, left: u32, right: u32) -> Merge {
        self.of_ids.found(self.of_ids.sought(left, right))
    }

    #[inline]
    fn merge_of_bytes(self, left: u8, right: u8) -> Merge {
        *self
            .of_bytes
            .at(usize::from(left) << 8 | usize::from(right))
    }

    /// Calls `symbol` with each symbol of a word, `merge` with the merge of each and the one behind it, and says how
    /// many symbols there are.
    #[inline(always)]
    pub(super) fn begin(
        self,
        word: &[u8],
        mut symbol: impl FnMut(usize, u32),
        mut merge: impl FnMut(usize, Merge),
    ) -> usize {
        let (mut num_symbols, mut before) = (0, 0);
        let is_of_chars = self.alphabet.is_of_chars();
        self.alphabet.symbols(word, |id| {
            symbol(num_symbols, id);
            if is_of_chars && num_symbols > 0 {
                merge(num_symbols - 1, self.merge(before, id));
            }
            before = id;
            num_symbols += 1;
        });
        if !is_of_chars {
            for (at, pair) in word.windows(2).enumerate() {
                merge(at, self.merge_of_bytes(pair[0], pair[1]));
            }
        }
        num_symbols
    }
}
