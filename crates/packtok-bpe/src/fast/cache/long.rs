//! Words of 16 to 31 bytes: a word in a line of the processor's cache, or in two.
//!
//! ```text
//! | 31 bytes | 4 bits of length - 16, 4 of the number of ids | ids 0-2 | 3-5 | 6-8 | 9-11 |
//! | ids 12-14 | 15-17 | 18-20 | 0 | 21-23 | 24-26 | 27-29 | number of ids, 30, 31 |         if there are so many
//! ```
//!
//! Each word has two places that it may be in, the one by its hash and the one beside that; a word that is new
//! takes the first, and what was there takes the second. A word of many ids has both, the second for those that
//! have no room in the first; the zero in it says that no word is there.

use super::super::table::{Table, prefetch};
use super::super::words::{LONG, LongKey, SHORT};
use super::packed::{IDS, pack, unpack};

pub(super) type Place = [u64; 8];

/// Ids of a word that has one place, and of any.
const FEW_IDS: usize = 4 * IDS;
pub(super) const MOST_IDS: usize = FEW_IDS + 7 * IDS - 1;
/// Where the number of ids is in the last number of a key, and what is there if they have no room.
const COUNT_SHIFT: u32 = 60;
const MANY: u64 = FEW_IDS as u64 + 1;
const _: () = assert!(SHORT == 15 && MANY < 16 && LONG <= MOST_IDS);

pub(super) struct LongWords {
    places: Table<Place>,
}

impl LongWords {
    pub(super) fn new(num_places: usize) -> Self {
        Self {
            places: Table::new(num_places),
        }
    }

    /// Has the processor fetch what looking up a word with this hash will need.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let places = self.places.all();
        let at = hash as usize & (places.len() - 1);
        prefetch(&places[at]);
        prefetch(&places[at ^ 1]);
    }

    /// Appends the ids of a word; false if it is not there.
    pub(super) fn append(&self, key: &LongKey, hash: u64, ids: &mut Vec<u32>) -> bool {
        let places = self.places.all();
        let at = hash as usize & (places.len() - 1);
        let [a, b, c, d] = *key;
        for (place, beside) in [
            (&places[at], &places[at ^ 1]),
            (&places[at ^ 1], &places[at]),
        ] {
            let &[e, f, g, h, ref of_word @ ..] = place;
            if (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) << 4 == 0 && h != 0 {
                let first = of_word.map(unpack);
                let count = h >> COUNT_SHIFT;
                if count != MANY {
                    ids.extend_from_slice(&first.as_flattened()[..count as usize]);
                    return true;
                }
                let [i, j, k, _, l, m, n, o] = *beside;
                let [count, _, _] = unpack(o);
                let rest = [i, j, k, l, m, n, o].map(unpack);
                let (rest, last) = rest.as_flattened().split_at(6 * IDS);
                ids.extend_from_slice(first.as_flattened());
                ids.extend_from_slice(rest);
                ids.extend_from_slice(&last[1..]);
                ids.truncate(ids.len() - (MOST_IDS - count as usize));
                return true;
            }
        }
        false
    }

    /// Remembers the ids of a word that is not there, at most [`MOST_IDS`].
    pub(super) fn put(&mut self, key: &LongKey, hash: u64, ids: &[u32]) {
        let places = self.places.all_mut();
        let at = hash as usize & (places.len() - 1);
        let is_many = |place: &Place| place[3] >> COUNT_SHIFT == MANY;
        let (first, rest) = ids.split_at(ids.len().min(FEW_IDS));
        let mut place = [0; 8];
        place[..4].copy_from_slice(key);
        for (number, ids) in place[4..].iter_mut().zip(first.chunks(IDS)) {
            *number = pack(ids);
        }
        if rest.is_empty() {
            place[3] |= (first.len() as u64) << COUNT_SHIFT;
            // One that has both places is forgotten.
            if !is_many(&places[at]) {
                places[at ^ 1] = places[at];
            }
        } else {
            place[3] |= MANY << COUNT_SHIFT;
            let (rest, last) = rest.split_at(rest.len().min(6 * IDS));
            let mut numbers = rest.chunks(IDS).map(pack);
            let mut next = || numbers.next().unwrap_or(0);
            let [i, j, k, l, m, n] = std::array::from_fn(|_| next());
            let of_last = |i: usize| last.get(i).copied().unwrap_or(0);
            let o = pack(&[ids.len() as u32, of_last(0), of_last(1)]);
            places[at ^ 1] = [i, j, k, 0, l, m, n, o];
        }
        places[at] = place;
    }
}
