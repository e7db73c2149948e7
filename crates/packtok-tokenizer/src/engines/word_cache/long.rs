//! Words of any length, one behind the other: lines of dashes, addresses, sentences without spaces.
//!
//! ```text
//! places: | hash | start | bytes | ids |        words: | bytes, filled to a multiple of 4 | ids | bytes ...
//! ```

use crate::engines::huge_table::{Table, prefetch};

/// Bytes of a word that is remembered, at most.
const MOST_BYTES: usize = 1024;

pub(super) struct LongWords {
    places: Table<Place>,
    words: Table<u32>,
    /// How much of `words` is taken.
    num_numbers: usize,
}

/// The high half of a word's hash, where it starts, its bytes, its ids.
type Place = [u32; 4];

impl LongWords {
    pub(super) fn new(most_bytes: usize) -> Self {
        let num_places = 1 << (most_bytes / 4 / size_of::<Place>()).max(2).ilog2();
        let for_words = most_bytes.saturating_sub(num_places * size_of::<Place>());
        Self {
            places: Table::new(num_places),
            words: Table::new((for_words / size_of::<u32>()).max(1)),
            num_numbers: 0,
        }
    }

    /// Takes all memory that it may have.
    pub(super) fn take_memory(&self) {
        self.places.take_memory();
        self.words.take_memory();
    }

    /// Has the processor fetch the places where a word of this hash may be.
    #[inline(always)]
    pub(super) fn prefetch_place(&self, hash: u64) {
        prefetch(self.places.places().at(hash as usize));
    }

    /// Has it fetch what is there, if a word of this hash is.
    #[inline(always)]
    pub(super) fn prefetch_word(&self, hash: u64) {
        for [high_half, start, ..] in self.places_of(hash) {
            if high_half == (hash >> 32) as u32
                && let Some(word) = self.words.all().get(start as usize)
            {
                prefetch(word);
            }
        }
    }

    /// Appends the ids of a word of this hash; false if it is not there.
    pub(super) fn append(&self, hash: u64, word: &[u8], ids: &mut Vec<u32>) -> bool {
        let words = self.words.all();
        for [high_half, start, num_bytes, num_ids] in self.places_of(hash) {
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

    /// Where a word may be: its own place, and the one beside it.
    #[inline(always)]
    fn places_of(&self, hash: u64) -> [Place; 2] {
        let places = self.places.places();
        [0, 1].map(|beside| *places.at(hash as usize ^ beside))
    }

    /// Remembers the ids of a word of this hash; once there are too many, all are forgotten.
    pub(super) fn put(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        let num_numbers = word.len().div_ceil(4) + ids.len();
        if word.len() > MOST_BYTES || num_numbers > self.words.all().len() {
            return;
        }
        let places = self.places.all_mut();
        if self.num_numbers + num_numbers > self.words.all().len() {
            places.fill(Place::default());
            self.num_numbers = 0;
        }
        let start = self.num_numbers;
        self.num_numbers += num_numbers;
        let numbers = &mut self.words.all_mut()[start..self.num_numbers];
        let (of_word, of_ids) = numbers.split_at_mut(word.len().div_ceil(4));
        bytemuck::cast_slice_mut(of_word)[..word.len()].copy_from_slice(word);
        of_ids.copy_from_slice(ids);
        let own = hash as usize & (places.len() - 1);
        let [.., num_bytes, _] = places[own];
        let is_taken = num_bytes > 0;
        places[own ^ usize::from(is_taken)] = [
            (hash >> 32) as u32,
            start as u32,
            word.len() as u32,
            ids.len() as u32,
        ];
    }
}
