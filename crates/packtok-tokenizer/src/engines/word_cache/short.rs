//! Words of up to 15 bytes. Everything about a word is in one cache line, its bucket.
//!
//! A bucket holds two words of up to five ids, or one word of any number; ids have 24 bits:
//!
//! ```text
//! | low | high | low | high | ids, number of them, E | ids, number of them |
//! | low | high | ids 5-9, X | ids 0-4, number of all, E | ids 10-14        |     X marks this kind: no word is so long
//! ```
//!
//! A new word goes to its home bucket, or overflows to the first of four neighbours with room. The bits `E` of the
//! home bucket record which neighbours hold its words, so a lookup probes only these. If none has room, an entry of
//! the same kind is evicted: the second word of a bucket, because the first one was inserted earlier and is usually
//! more frequent, or a word of many ids. Such a word must not evict two words: one of them may be the comma, which
//! would then always be found in a neighbour.

use crate::engines::huge_table::{HugeTable, Slots, prefetch};
use crate::engines::simd::Simd;
use crate::engines::word_key::{LEN_SHIFT, SHORT, WordKey};

/// The keys of two words, then the ids of both.
pub(super) type Bucket = [u64; 8];

/// Ids have 24 bits.
pub(crate) const MAX_IDS: usize = 1 << 24;
/// Maximum number of ids of a word that shares its bucket.
const FEW_IDS: usize = 5;
/// Marks a bucket that holds one word with many ids; stored in place of the second word's length.
const MANY: u64 = 0xff;
/// Position and width of the number of ids, in the second of the two numbers with the first five
/// ids.
const COUNT_SHIFT: u32 = 56;
const COUNT_BITS: u32 = 4;
/// Index of the number whose highest bits record the neighbours with words of this bucket, and the
/// position of these bits.
const OVERFLOW: usize = 5;
const OVERFLOW_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;

const _: () = assert!(SHORT <= 3 * FEW_IDS && SHORT < 1 << COUNT_BITS);

/// The buckets that a word may be in, home bucket first: XORed with its number.
const PROBED: [usize; 5] = [0, 1, 2, 3, 4];
/// The last resort for a word of many ids.
const FARTHEST: usize = PROBED[4];

/// Maximum number of ids that a lookup writes: the ids of the word, followed by undefined values.
pub(crate) const ROOM: usize = 2 * FEW_IDS + 8;

pub(super) struct ShortWords {
    buckets: HugeTable<Bucket>,
    /// Words inserted since the table has had this size.
    num_inserted: usize,
}

impl ShortWords {
    pub(super) fn new(num_buckets: usize) -> Self {
        Self {
            buckets: HugeTable::new(num_buckets),
            num_inserted: 0,
        }
    }

    pub(super) fn num_buckets(&self) -> usize {
        self.buckets.all().len()
    }

    /// Whether there are about as many words as buckets.
    pub(super) fn is_full(&self) -> bool {
        self.num_inserted >= self.num_buckets()
    }

    #[inline(always)]
    pub(super) fn finder(&self) -> Finder<'_> {
        let buckets = self.buckets.slots();
        Finder {
            buckets,
            shift: u64::BITS - self.num_buckets().trailing_zeros(),
        }
    }

    /// Inserts a word of up to 15 bytes.
    pub(super) fn insert(&mut self, word: WordKey, ids: &[u32]) {
        let home = self.finder().bucket_of(word) as usize;
        let buckets = self.buckets.all_mut();
        let is_there = |beside: usize| {
            let [first_low, first_high, second_low, second_high, ..] = buckets[home ^ beside];
            let of_word = [word.low, word.high];
            [first_low, first_high] == of_word || [second_low, second_high] == of_word
        };
        if is_there(0) || overflow(&buckets[home]).any(is_there) {
            return;
        }
        let has_many = ids.len() > FEW_IDS;
        let has_room = |&beside: &usize| {
            if has_many {
                buckets[home ^ beside][1] == 0
            } else {
                buckets[home ^ beside][3] == 0
            }
        };
        let is_of_its_kind = |&beside: &usize| is_of_many(&buckets[home ^ beside]) == has_many;
        let mut all = PROBED.into_iter();
        let with_room = all.clone().find(has_room);
        let to = with_room.or_else(|| all.find(is_of_its_kind));
        let to = to.unwrap_or(if has_many { FARTHEST } else { 0 });
        self.num_inserted += 1;

        let mut parts = ids.chunks(FEW_IDS);
        let mut next = || packed(parts.next().unwrap_or(&[]));
        let ([a, b], [c, d], [e, f]) = (next(), next(), next());
        let b = b | (ids.len() as u64) << COUNT_SHIFT;
        let bucket = &mut buckets[home ^ to];
        let of_others = bucket[OVERFLOW] >> OVERFLOW_SHIFT << OVERFLOW_SHIFT;
        let is_alone = bucket[1] == 0 || is_of_many(bucket);
        let [first_low, first_high, _, _, first_a, first_b, ..] = *bucket;
        *bucket = if has_many {
            [word.low, word.high, c, d | MANY << LEN_SHIFT, a, b, e, f]
        } else if is_alone {
            [word.low, word.high, 0, 0, a, b, 0, 0]
        } else {
            [
                first_low, first_high, word.low, word.high, first_a, first_b, a, b,
            ]
        };
        bucket[OVERFLOW] |= of_others;
        if to > 0 {
            buckets[home][OVERFLOW] |= 1 << (OVERFLOW_SHIFT as usize + to - 1);
        }
    }

    /// Replaces the table by a larger one and reinserts all words.
    #[cold]
    pub(super) fn grow(&mut self, simd: impl Simd, num_buckets: usize) {
        let longer = Self::new(num_buckets);
        let shorter = std::mem::replace(self, longer);
        for bucket in shorter.buckets.all() {
            for at in [0, 2] {
                let (low, high) = (bucket[at], bucket[at + 1]);
                if high >> LEN_SHIFT == 0 || high >> LEN_SHIFT == MANY {
                    continue;
                }
                let word = WordKey { low, high };
                let mut ids = [0; ROOM];
                if let Some(count) = find(simd, bucket, word, &mut ids) {
                    self.insert(word, &ids[..count]);
                }
            }
        }
    }
}

/// A view of the table for lookups.
#[derive(Clone, Copy)]
pub(crate) struct Finder<'a> {
    buckets: Slots<'a, Bucket>,
    /// The hash shifted right by this is the number of the home bucket.
    shift: u32,
}

impl Finder<'_> {
    #[inline(always)]
    pub(crate) fn shift(self) -> u32 {
        self.shift
    }

    /// The number of a word's home bucket.
    #[inline(always)]
    pub(crate) fn bucket_of(self, word: WordKey) -> u32 {
        (word.hash() >> self.shift) as u32
    }

    #[inline(always)]
    pub(crate) fn prefetch(self, bucket: u32) {
        prefetch(self.buckets.at(bucket as usize));
    }

    /// Writes the ids of a word to the start of `ids` and returns their number; `None` on a miss.
    /// `bucket` is the home bucket of the word.
    #[inline(always)]
    pub(crate) fn find(
        self,
        simd: impl Simd,
        word: WordKey,
        bucket: u32,
        ids: &mut [u32; ROOM],
    ) -> Option<usize> {
        let home = bucket as usize;
        let bucket = self.buckets.at(home);
        let mut count = find(simd, bucket, word, ids);
        if count.is_none() {
            // Each probe waits for memory once more.
            for beside in overflow(bucket) {
                count = find(simd, self.buckets.at(home ^ beside), word, ids);
                if count.is_some() {
                    break;
                }
            }
        }
        count
    }
}

#[inline(always)]
fn find(simd: impl Simd, bucket: &Bucket, word: WordKey, ids: &mut [u32; ROOM]) -> Option<usize> {
    let &[a, b, c, d, ..] = bucket;
    // Which word matches is unpredictable, so there is no branch on it.
    let which = simd.match_pair(&[a, b, c, d], [word.low, word.high]);
    if which == 0 {
        return None;
    }
    let at = 4 + which / 4 * 2;
    let packed = [bucket[at], bucket[at + 1]];
    simd.unpack_ids(packed, ids.first_chunk_mut().expect("it is longer"));
    let count = (packed[1] >> COUNT_SHIFT) as usize % (1 << COUNT_BITS);
    if count > FEW_IDS {
        let [_, _, c, d, _, _, e, f] = *bucket;
        for (first, packed) in [(FEW_IDS, [c, d]), (2 * FEW_IDS, [e, f])] {
            let ids = ids[first..].first_chunk_mut().expect("it is longer");
            simd.unpack_ids(packed, ids);
        }
    }
    Some(count)
}

/// Packs up to five ids.
fn packed(ids: &[u32]) -> [u64; 2] {
    let id = |number: usize| ids.get(number).map_or(0, |&id| u64::from(id));
    let low = id(0) | id(1) << 24 | id(2) << 48;
    [low, id(2) >> 16 | id(3) << 8 | id(4) << 32]
}

/// The neighbours that hold words of this bucket: XORed with its number.
#[inline(always)]
fn overflow(bucket: &Bucket) -> impl Iterator<Item = usize> {
    let mut bits = bucket[OVERFLOW] >> OVERFLOW_SHIFT;
    std::iter::from_fn(move || {
        let beside = (bits != 0).then(|| bits.trailing_zeros() as usize + 1)?;
        bits &= bits - 1;
        Some(beside)
    })
}

/// Whether a bucket holds one word of many ids.
fn is_of_many(bucket: &Bucket) -> bool {
    bucket[3] >> LEN_SHIFT == MANY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::simd::{AnySimd, Job};

    /// Words whose home is this bucket.
    fn of_bucket(bucket: u32, table: &ShortWords) -> impl Iterator<Item = WordKey> {
        (1..).filter_map(move |low| {
            let word = WordKey {
                low,
                high: 8 << LEN_SHIFT,
            };
            (table.finder().bucket_of(word) == bucket).then_some(word)
        })
    }

    struct Ids<'a>(&'a ShortWords, WordKey);

    impl Job for Ids<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run(self, simd: impl Simd) -> Vec<u32> {
            let mut ids = [0; ROOM];
            let finder = self.0.finder();
            let count = finder.find(simd, self.1, finder.bucket_of(self.1), &mut ids);
            count.map_or(Vec::new(), |count| ids[..count].to_vec())
        }
    }

    #[test]
    fn words_of_many_ids_take_no_place_of_two() {
        let mut table = ShortWords::new(512);
        let (few, many) = ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11, 12]);
        let words: Vec<WordKey> = of_bucket(7, &table).take(40).collect();
        for word in &words[..2] {
            table.insert(*word, &few);
        }
        for word in &words[2..] {
            table.insert(*word, &many);
            for simd in AnySimd::all() {
                assert_eq!(simd.run(Ids(&table, *word)), many);
                assert_eq!(simd.run(Ids(&table, words[0])), few);
                assert_eq!(simd.run(Ids(&table, words[1])), few);
            }
        }
        // The four neighbours hold one word each; the other words were evicted.
        let many_words = words[2..].iter();
        let kept = many_words.filter(|word| !AnySimd::detect().run(Ids(&table, **word)).is_empty());
        assert_eq!(kept.count(), 4);
    }

    #[test]
    fn words_that_were_put_first_stay() {
        let mut table = ShortWords::new(512);
        let words: Vec<WordKey> = of_bucket(7, &table).take(40).collect();
        for (id, word) in (0..).zip(&words) {
            table.insert(*word, &[id]);
            // Inserting it again has no effect.
            table.insert(*word, &[1000]);
        }
        let ids = |number: usize| AnySimd::detect().run(Ids(&table, words[number]));
        // Five buckets have room for ten words. After that, each new word evicts its predecessor,
        // the second word of the home bucket.
        let kept: Vec<usize> = (0..40)
            .filter(|&number| ids(number) == [number as u32])
            .collect();
        assert_eq!(kept, [0, 2, 3, 4, 5, 6, 7, 8, 9, 39]);
    }
}
