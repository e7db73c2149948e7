//! Words of up to 15 bytes: all that a word needs is in one line of the processor's cache.
//!
//! Such a bucket has room for two words of up to five ids, or for one of any number; ids have 24 bits:
//!
//! ```text
//! | low | high | low | high | ids, number of them | ids, number of them |
//! | low | high | ids 5-9, X | ids 0-4, number     | ids 10-14           |     X says so: no word is so long
//! ```
//!
//! A new word goes to its bucket, or to the first that has room of the three beside it. If none has, it takes the
//! second place of its own, and what was there is forgotten: words that were met early are met often.

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

/// Buckets that a word may be in: its own, and those beside it, by what their number differs in.
const BESIDE: [usize; 4] = [0, 1, 2, 3];

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

    /// Remembers the ids of a word of up to 15 bytes.
    pub(super) fn put(&mut self, word: Word, ids: &[u32]) {
        let buckets = self.buckets.all_mut();
        let at = word.hash as usize & (buckets.len() - 1);
        let of_word = [word.low, word.high];
        let has = |bucket: &Bucket| {
            [bucket[0], bucket[1]] == of_word || [bucket[2], bucket[3]] == of_word
        };
        let has_many = ids.len() > FEW_IDS;
        let mut to = None;
        for beside in BESIDE {
            let bucket = &buckets[at ^ beside];
            if has(bucket) {
                return;
            }
            let has_room = match has_many {
                true => bucket[1] == 0,
                false => has_place(bucket),
            };
            if has_room && to.is_none() {
                to = Some(at ^ beside);
            }
            if has_place(bucket) {
                // Nobody looks farther.
                break;
            }
        }
        let bucket = &mut buckets[to.unwrap_or(at)];
        self.num_put += 1;
        let mut parts = ids.chunks(FEW_IDS);
        let mut next = || packed(parts.next().unwrap_or(&[]));
        let ([a, b], [c, d], [e, f]) = (next(), next(), next());
        let b = b | (ids.len() as u64) << COUNT_SHIFT;
        let [first_low, first_high, _, second_high, first_a, first_b, ..] = *bucket;
        *bucket = if has_many {
            [word.low, word.high, c, d | MANY << LEN_SHIFT, a, b, e, f]
        } else if first_high == 0 || second_high >> LEN_SHIFT == MANY {
            [word.low, word.high, 0, 0, a, b, 0, 0]
        } else {
            [
                first_low, first_high, word.low, word.high, first_a, first_b, a, b,
            ]
        };
    }

    /// Makes the table longer.
    #[cold]
    pub(super) fn grow(&mut self, lane: impl Lane, num_buckets: usize) {
        let longer = Self::new(num_buckets);
        let shorter = std::mem::replace(self, longer);
        for bucket in shorter.buckets.all() {
            for at in [0, 2] {
                let (low, high) = (bucket[at], bucket[at + 1]);
                if high >> LEN_SHIFT == 0 || high >> LEN_SHIFT == MANY {
                    continue;
                }
                let word = Word {
                    low,
                    high,
                    hash: hash(low, high),
                };
                let mut found = [0; ROOM];
                let count = find(lane, bucket, word, &mut found);
                self.put(word, &found[..count]);
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

    /// Puts the ids of a word to the start of `ids` and says how many; 0 if it is not there.
    #[inline(always)]
    pub(in super::super) fn find(
        self,
        lane: impl Lane,
        word: Word,
        ids: &mut [u32; ROOM],
    ) -> usize {
        let own = word.hash as usize;
        for beside in BESIDE {
            let bucket = self.0.at(own ^ beside);
            let count = find(lane, bucket, word, ids);
            // Only what had no room is beside; to look there would be one more wait for memory.
            if count > 0 || has_place(bucket) {
                return count;
            }
        }
        0
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

/// Up to five ids.
fn packed(ids: &[u32]) -> [u64; 2] {
    let places = ids.iter().zip((0..).step_by(24));
    let packed = places.fold(0, |packed, (&id, place)| packed | u128::from(id) << place);
    [packed as u64, (packed >> 64) as u64]
}

/// Whether there is room for a word more.
#[inline(always)]
fn has_place(bucket: &Bucket) -> bool {
    bucket[3] == 0
}
