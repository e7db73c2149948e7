//! Words of any length: lines of dashes, addresses, sentences without spaces.
//!
//! ```text
//! slots: | hash | start | bytes | ids |        words: | bytes, padded to a multiple of 4 | ids | bytes ...
//! ```

use crate::engines::huge_table::{HugeTable, prefetch};

/// Longer words are not cached.
const MAX_BYTES: usize = 1024;

pub(in crate::engines) struct LongWords {
    slots: HugeTable<Slot>,
    words: HugeTable<u32>,
    /// Used length of `words`.
    num_numbers: usize,
}

/// The high half of a word's hash, its start in `words`, its number of bytes and of ids.
type Slot = [u32; 4];

impl LongWords {
    /// With tables of at most about this many bytes.
    pub(in crate::engines) fn new(max_bytes: usize) -> Self {
        let num_slots = 1 << (max_bytes / 4 / size_of::<Slot>()).max(2).ilog2();
        let for_words = max_bytes.saturating_sub(num_slots * size_of::<Slot>());
        Self {
            slots: HugeTable::new(num_slots),
            words: HugeTable::new((for_words / size_of::<u32>()).max(1)),
            num_numbers: 0,
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        prefetch(self.slots.slots().at(hash as usize));
    }

    /// Prefetches the word, if a slot has this hash.
    #[inline(always)]
    pub(super) fn prefetch_word(&self, hash: u64) {
        for [high_half, start, ..] in self.slots_of(hash) {
            if high_half == (hash >> 32) as u32
                && let Some(word) = self.words.all().get(start as usize)
            {
                prefetch(word);
            }
        }
    }

    /// Appends the ids of a word with this [`hash`](crate::engines::word_key::hash_of_bytes); `false` on a miss.
    pub(in crate::engines) fn append(&self, hash: u64, word: &[u8], ids: &mut Vec<u32>) -> bool {
        let words = self.words.all();
        for [high_half, start, num_bytes, num_ids] in self.slots_of(hash) {
            if high_half != (hash >> 32) as u32 || num_bytes as usize != word.len() {
                continue;
            }
            let start = start as usize;
            let ids_start = start + word.len().div_ceil(4);
            if bytemuck::cast_slice::<_, u8>(&words[start..ids_start])[..word.len()] == *word {
                ids.extend_from_slice(&words[ids_start..ids_start + num_ids as usize]);
                return true;
            }
        }
        false
    }

    /// The slots of a hash: its home slot and the adjacent one.
    #[inline(always)]
    fn slots_of(&self, hash: u64) -> [Slot; 2] {
        let slots = self.slots.slots();
        [0, 1].map(|beside| *slots.at(hash as usize ^ beside))
    }

    /// Inserts a word with this hash. If `words` is full, all words are evicted.
    pub(in crate::engines) fn insert(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        let num_numbers = word.len().div_ceil(4) + ids.len();
        if word.len() > MAX_BYTES || num_numbers > self.words.all().len() {
            return;
        }
        let slots = self.slots.all_mut();
        if self.num_numbers + num_numbers > self.words.all().len() {
            slots.fill(Slot::default());
            self.num_numbers = 0;
        }
        let start = self.num_numbers;
        self.num_numbers += num_numbers;
        let numbers = &mut self.words.all_mut()[start..self.num_numbers];
        let (of_word, of_ids) = numbers.split_at_mut(word.len().div_ceil(4));
        bytemuck::cast_slice_mut(of_word)[..word.len()].copy_from_slice(word);
        of_ids.copy_from_slice(ids);
        let home = hash as usize & (slots.len() - 1);
        let [.., num_bytes, _] = slots[home];
        let is_taken = num_bytes > 0;
        slots[home ^ usize::from(is_taken)] = [
            (hash >> 32) as u32,
            start as u32,
            word.len() as u32,
            ids.len() as u32,
        ];
    }
}
