//! Words of up to 15 bytes: all that a word needs is in one line of the processor's cache.
//!
//! Such a bucket has room for two words of up to five ids, or for one of any number; ids have 24 bits:
//!
//! ```text
//! | low | high | low | high | ids, number of them | ids, number of them |
//! | low | high | ids 5-9, X | ids 0-4, number     | ids 10-14           |     X says so: no word is so long
//! ```
//!
//! A new word goes to the first place of its bucket, what was there to the second, and what was there to the
//! bucket beside it, if that has room; else it is forgotten. A word found beside its bucket goes back to it.

use super::super::lane::Lane;
use super::super::merges::MOST_IDS as IDS_ARE_BELOW;
use super::super::table::{Places, Table, prefetch};
use super::super::words::{LEN_SHIFT, SHORT, Word, hash};

/// Keys of two words, then the ids of both.
pub(super) type Bucket = [u64; 8];

/// Ids of a word that shares its bucket.
const FEW_IDS: usize = 5;
/// What is in place of a length where there are ids instead of a second word.
const MANY: u64 = 0xff;
/// Where the number of ids is in the second number of the first ones.
const COUNT_SHIFT: u32 = 56;

const _: () = assert!(IDS_ARE_BELOW <= 1 << 24 && SHORT <= 3 * FEW_IDS);

/// What looking a word up may write: its ids, and more.
pub(in super::super) const ROOM: usize = 2 * FEW_IDS + 8;

pub(super) struct ShortWords {
    buckets: Table<Bucket>,
    /// Words that were put since the table had this length.
    num_put: usize,
}

impl ShortWords {
    pub(super) fn new(num_buckets: usize) -> Self {
        Self {
            buckets: Table::new(num_buckets),
            num_put: 0,
        }
    }

    pub(super) fn num_buckets(&self) -> usize {
        self.buckets.all().len()
    }

    /// Whether there are about as many words as buckets.
    pub(super) fn is_full(&self) -> bool {
        self.num_put >= self.num_buckets()
    }

    #[inline(always)]
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder(self.buckets.places())
    }

    /// Appends the ids of a short word; false if it is neither in its bucket nor beside it.
    #[inline(always)]
    pub(super) fn append(&mut self, lane: impl Lane, word: Word, ids: &mut Vec<u32>) -> bool {
        let buckets = self.buckets.all_mut();
        let at = word.hash as usize & (buckets.len() - 1);
        if append_from(lane, &buckets[at], word, ids) {
            return true;
        }
        // Only what had no room is beside; to look there would be one more wait for memory.
        if has_place(&buckets[at]) || !append_from(lane, &buckets[at ^ 1], word, ids) {
            return false;
        }
        bring_back(buckets, at, word);
        true
    }

    /// Remembers the ids of a word of up to 15 bytes.
    pub(super) fn put(&mut self, word: Word, ids: &[u32]) {
        let buckets = self.buckets.all_mut();
        let at = word.hash as usize & (buckets.len() - 1);
        let (old, beside) = (buckets[at], &mut buckets[at ^ 1]);
        let is_of = |place: usize| [old[place], old[place + 1]] == [word.low, word.high];
        if is_of(0) || is_of(2) {
            return;
        }
        self.num_put += 1;
        let mut parts = ids.chunks(FEW_IDS);
        let mut next = || packed(parts.next().unwrap_or(&[]));
        let ([a, b], [c, d], [e, f]) = (next(), next(), next());
        let b = b | (ids.len() as u64) << COUNT_SHIFT;
        if ids.len() > FEW_IDS {
            if is_free(beside) {
                *beside = old;
            }
            buckets[at] = [word.low, word.high, c, d | MANY << LEN_SHIFT, a, b, e, f];
        } else if has_many(&old) {
            if is_free(beside) {
                *beside = old;
            }
            buckets[at] = [word.low, word.high, 0, 0, a, b, 0, 0];
        } else {
            if !has_place(&old) && has_place(beside) {
                let to = if is_free(beside) { 0 } else { 2 };
                copy_word(beside, to, &old, 2);
            }
            buckets[at] = [word.low, word.high, old[0], old[1], a, b, old[4], old[5]];
        }
    }

    /// Makes the table longer.
    #[cold]
    pub(super) fn grow(&mut self, lane: impl Lane, num_buckets: usize) {
        let longer = Self::new(num_buckets);
        let shorter = std::mem::replace(self, longer);
        let mut ids = Vec::new();
        for bucket in shorter.buckets.all() {
            for at in [2, 0] {
                let (low, high) = (bucket[at], bucket[at + 1]);
                if high >> LEN_SHIFT == 0 || high >> LEN_SHIFT == MANY {
                    continue;
                }
                let word = Word {
                    low,
                    high,
                    hash: hash(low, high),
                };
                ids.clear();
                append_from(lane, bucket, word, &mut ids);
                self.put(word, &ids);
            }
        }
    }
}

/// The table as it is looked at.
#[derive(Clone, Copy)]
pub(in super::super) struct Finder<'a>(Places<'a, Bucket>);

impl Finder<'_> {
    /// Has the processor fetch what looking up a word will need.
    #[inline(always)]
    pub(in super::super) fn prefetch(self, word: Word) {
        prefetch(self.0.at(word.hash as usize));
    }

    /// Puts the ids of a word that is in its bucket to the start of `ids` and says how many; 0 if it is not.
    #[inline(always)]
    pub(in super::super) fn find(self, lane: impl Lane, word: Word, ids: &mut [u32; ROOM]) -> usize {
        find(lane, self.0.at(word.hash as usize), word, ids)
    }
}

#[inline(always)]
fn find(lane: impl Lane, bucket: &Bucket, word: Word, ids: &mut [u32; ROOM]) -> usize {
    let &[a, b, c, d, ..] = bucket;
    // Which of the two it is cannot be foreseen, so that there is no branch for it.
    let which = lane.which(&[a, b, c, d], [word.low, word.high]);
    if which == 0 {
        return 0;
    }
    let at = 4 + which / 4 * 2;
    let packed = [bucket[at], bucket[at + 1]];
    lane.spread(packed, ids.first_chunk_mut().expect("it is longer"));
    let count = (packed[1] >> COUNT_SHIFT) as usize;
    if count > FEW_IDS {
        let mut next = |first: usize, packed: [u64; 2]| {
            let ids = ids[first..].first_chunk_mut().expect("it is longer");
            lane.spread(packed, ids);
        };
        next(FEW_IDS, [bucket[2], bucket[3]]);
        next(2 * FEW_IDS, [bucket[6], bucket[7]]);
    }
    count
}

/// Appends the ids of a word if it is in this bucket.
#[inline(always)]
fn append_from(lane: impl Lane, bucket: &Bucket, word: Word, ids: &mut Vec<u32>) -> bool {
    let mut found = [0; ROOM];
    let count = find(lane, bucket, word, &mut found);
    ids.extend_from_slice(&found[..count]);
    count > 0
}

/// Up to five ids.
fn packed(ids: &[u32]) -> [u64; 2] {
    let places = ids.iter().zip((0..).step_by(24));
    let packed = places.fold(0, |packed, (&id, place)| packed | u128::from(id) << place);
    [packed as u64, (packed >> 64) as u64]
}

fn is_free(bucket: &Bucket) -> bool {
    bucket[1] == 0
}

/// Whether there is room for a word more.
#[inline(always)]
fn has_place(bucket: &Bucket) -> bool {
    bucket[3] == 0
}

/// Whether there is one word, with more ids than two would have room for.
fn has_many(bucket: &Bucket) -> bool {
    bucket[3] >> LEN_SHIFT == MANY
}

/// Writes the word at a place of one bucket, 0 or 2, to a place of another.
fn copy_word(to: &mut Bucket, place: usize, from: &Bucket, from_place: usize) {
    for part in [0, 4] {
        to[place + part] = from[from_place + part];
        to[place + part + 1] = from[from_place + part + 1];
    }
}

/// Brings a word, found beside its bucket at `at`, to it: in exchange for the second word there, or all for all
/// where there is one with many ids.
fn bring_back(buckets: &mut [Bucket], at: usize, word: Word) {
    let [own, beside] = [buckets[at], buckets[at ^ 1]];
    if has_many(&own) || has_many(&beside) {
        (buckets[at], buckets[at ^ 1]) = (beside, own);
        return;
    }
    let found = if [beside[0], beside[1]] == [word.low, word.high] {
        0
    } else {
        2
    };
    copy_word(&mut buckets[at], 2, &beside, found);
    copy_word(&mut buckets[at ^ 1], found, &own, 2);
}
