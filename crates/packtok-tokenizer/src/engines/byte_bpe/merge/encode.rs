//! Chooses how a word is merged, by its length and the back end.

use super::heap::MergeHeap;
use super::in_place::InPlaceMerge;
use super::in_registers::RegisterMerge;
use super::rules::MergeRules;
use crate::engines::simd::Simd;
use crate::engines::word_key::{SHORT, WordKey};

/// Maximum length in bytes of a word that is merged in place. Longer words use a heap.
const LONG: usize = 31;

impl MergeRules {
    /// Merges short words and calls `put` with the number of each word, its ids and their count, in any order.
    #[inline(always)]
    pub(crate) fn encode_all<S: Simd>(
        &self,
        simd: S,
        words: impl Iterator<Item = WordKey>,
        put: impl FnMut(usize, &[u32; SHORT], usize),
    ) {
        if S::HAS_LANES {
            RegisterMerge::encode_all(simd, self.view(), words, put);
        } else {
            InPlaceMerge::<{ SHORT + 1 }>::encode_all(self.view(), words, put);
        }
    }

    /// Appends the ids of a word.
    #[inline(always)]
    pub(crate) fn encode(&self, word: &[u8], heap: &mut MergeHeap, ids: &mut Vec<u32>) {
        if let [byte] = word {
            ids.push(self.view().id_of_byte(*byte));
        } else if word.len() <= SHORT {
            InPlaceMerge::<{ SHORT + 1 }>::encode(self.view(), word, ids);
        } else if word.len() <= LONG {
            InPlaceMerge::<{ LONG + 1 }>::encode(self.view(), word, ids);
        } else {
            heap.encode(self.view(), word, ids);
        }
    }
}
