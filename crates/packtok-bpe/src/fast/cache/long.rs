//! Words of any length, one behind the other: lines of dashes, addresses, sentences without spaces.
//!
//! ```text
//! places: | hash | start | bytes | ids |        words: | bytes, filled to a multiple of 4 | ids | bytes ...
//! ```

use super::super::table::prefetch;

/// Bytes of a word that is remembered, at most.
const MOST_BYTES: usize = 1024;
pub(super) struct LongWords {
    /// None until the first word is put.
    places: Vec<Place>,
    words: Vec<u32>,
    num_places: usize,
    most_numbers: usize,
}

#[derive(Clone, Copy, Default)]
struct Place {
    hash: u32,
    start: u32,
    num_bytes: u32,
    num_ids: u32,
}

impl LongWords {
    pub(super) fn new(most_bytes: usize) -> Self {
        let num_places = 1 << (most_bytes / 4 / size_of::<Place>()).max(2).ilog2();
        Self {
            places: Vec::new(),
            words: Vec::new(),
            num_places,
            most_numbers: most_bytes.saturating_sub(num_places * size_of::<Place>())
                / size_of::<u32>(),
        }
    }

    /// Has the processor fetch the places where a word of this hash may be.
    #[inline(always)]
    pub(super) fn prefetch_place(&self, hash: u64) {
        if let Some(place) = self.places.get(self.places_of(hash)[0]) {
            prefetch(place);
        }
    }

    /// Has it fetch what is there, if a word of this hash is.
    #[inline(always)]
    pub(super) fn prefetch_word(&self, hash: u64) {
        for at in self.places_of(hash) {
            if let Some(place) = self.places.get(at)
                && place.hash == (hash >> 32) as u32
                && let Some(word) = self.words.get(place.start as usize)
            {
                prefetch(word);
            }
        }
    }

    /// Appends the ids of a word of this hash; false if it is not there.
    pub(super) fn append(&self, hash: u64, word: &[u8], ids: &mut Vec<u32>) -> bool {
        for at in self.places_of(hash) {
            let Some(place) = self.places.get(at) else {
                return false;
            };
            let start = place.start as usize;
            let ids_start = start + word.len().div_ceil(4);
            let is_there = place.hash == (hash >> 32) as u32
                && place.num_bytes as usize == word.len()
                && bytemuck::cast_slice::<_, u8>(&self.words[start..ids_start])[..word.len()]
                    == *word;
            if is_there {
                ids.extend_from_slice(&self.words[ids_start..ids_start + place.num_ids as usize]);
                return true;
            }
        }
        false
    }

    /// Where a word may be: its own place, and the one beside it.
    fn places_of(&self, hash: u64) -> [usize; 2] {
        let own = hash as usize & (self.num_places - 1);
        [own, own ^ 1]
    }

    /// Remembers the ids of a word of this hash; once there are too many, all are forgotten.
    pub(super) fn put(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        let num_numbers = word.len().div_ceil(4) + ids.len();
        if word.len() > MOST_BYTES {
            return;
        }
        if self.places.is_empty() || self.words.len() + num_numbers > self.most_numbers {
            self.places.clear();
            self.places.resize(self.num_places, Place::default());
            self.words.clear();
        }
        let start = self.words.len();
        let (fours, rest) = word.as_chunks::<4>();
        self.words
            .extend(fours.iter().map(|&four| u32::from_ne_bytes(four)));
        if !rest.is_empty() {
            let mut four = [0; 4];
            four[..rest.len()].copy_from_slice(rest);
            self.words.push(u32::from_ne_bytes(four));
        }
        self.words.extend_from_slice(ids);
        let [own, beside] = self.places_of(hash);
        let is_taken = self.places[own].num_bytes > 0;
        self.places[if is_taken { beside } else { own }] = Place {
            hash: (hash >> 32) as u32,
            start: start as u32,
            num_bytes: word.len() as u32,
            num_ids: ids.len() as u32,
        };
    }
}
