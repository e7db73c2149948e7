//! Words of up to 15 bytes: all that a word needs is in one line of the processor's cache.
//!
//! Such a bucket has room for two words of up to four ids, or for one of up to twelve:
//!
//! ```text
//! | low | high | ids 0, 1 | ids 2, 3 | low | high | ids 0, 1 | ids 2, 3 |      high has the number of ids in its
//! | low | high | ids 0, 1 | ids 2, 3 | 4, 5 | 6, 7 | 8, 9    | 10, 11   |      last 4 bits, behind the length
//! ```
//!
//! Ids are below 2^24, so that two of them never look like the high of a word: the place of its length is zero.
//!
//! A new word goes to the first place of its bucket, what was there to the second, and what was there to the
//! bucket beside it, if that has room; else it is forgotten. A word found beside its bucket goes back to it.

use super::super::table::Table;
use super::super::words::{LEN_SHIFT, Word, hash};

pub(super) type Bucket = [u64; 8];

/// Ids of a word that shares its bucket, and of any.
const FEW_IDS: usize = 4;
pub(super) const MOST_IDS: usize = 12;
/// Where the number of ids is in a word's high number.
const COUNT_SHIFT: u32 = 60;

/// Words that are looked up together.
pub(in super::super) const GROUP: usize = 64;

/// Ids that are stored without asking how many, before they go to the caller's buffer.
pub(in super::super) struct Staged {
    ids: [u32; GROUP * MOST_IDS],
    len: usize,
}

impl Staged {
    pub(in super::super) fn new() -> Self {
        Self {
            ids: [0; GROUP * MOST_IDS],
            len: 0,
        }
    }

    /// Hands over what is staged.
    #[inline(always)]
    pub(in super::super) fn flush(&mut self, ids: &mut Vec<u32>) {
        ids.extend_from_slice(&self.ids[..self.len]);
        self.len = 0;
    }
}

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
    pub(super) fn buckets(&self) -> &[Bucket] {
        self.buckets.all()
    }

    /// Appends the ids of a short word; false if it is neither in its bucket nor beside it.
    #[inline]
    pub(super) fn append(&mut self, word: Word, ids: &mut Vec<u32>) -> bool {
        let buckets = self.buckets.all();
        append_from(&buckets[place(word.hash, buckets.len())], word, ids)
            || self.append_from_beside(word, ids)
    }

    /// Appends the ids of a short word that is not in its bucket; false if it is not beside it either.
    pub(super) fn append_from_beside(&mut self, word: Word, ids: &mut Vec<u32>) -> bool {
        let buckets = self.buckets.all_mut();
        let at = place(word.hash, buckets.len());
        // Only what had no room is beside; to look there would be one more wait for memory.
        if has_place(&buckets[at]) || !append_from(&buckets[at ^ 1], word, ids) {
            return false;
        }
        bring_back(buckets, at, word);
        true
    }

    /// Remembers the ids of a word that is not there, at most [`MOST_IDS`].
    pub(super) fn put(&mut self, word: Word, ids: &[u32]) {
        self.num_put += 1;
        let mut all = [0; MOST_IDS];
        all[..ids.len()].copy_from_slice(ids);
        let [a, b, c, d, e, f]: [u64; 6] = bytemuck::cast(all);
        let new = [
            word.low,
            word.high | (ids.len() as u64) << COUNT_SHIFT,
            a,
            b,
        ];
        let buckets = self.buckets.all_mut();
        let at = place(word.hash, buckets.len());
        let (old, beside) = (buckets[at], &mut buckets[at ^ 1]);
        let is_free = |bucket: &Bucket| bucket[1] == 0;
        let second = if ids.len() > FEW_IDS {
            if is_free(beside) {
                *beside = old;
            }
            [c, d, e, f]
        } else if has_many(&old) {
            if is_free(beside) {
                *beside = old;
            }
            [0; 4]
        } else {
            if !has_place(&old) && has_place(beside) {
                let to = if is_free(beside) { 0 } else { 4 };
                beside[to..to + 4].copy_from_slice(&old[4..]);
            }
            [old[0], old[1], old[2], old[3]]
        };
        buckets[at][..4].copy_from_slice(&new);
        buckets[at][4..].copy_from_slice(&second);
    }

    /// Makes the table longer.
    #[cold]
    pub(super) fn grow(&mut self, num_buckets: usize) {
        let longer = Self::new(num_buckets);
        let shorter = std::mem::replace(self, longer);
        let mut ids = Vec::new();
        for bucket in shorter.buckets.all() {
            for at in [4, 0] {
                let (low, high) = (bucket[at], bucket[at + 1] & !(0xf << COUNT_SHIFT));
                if high >> LEN_SHIFT == 0 || (at == 4 && has_many(bucket)) {
                    continue;
                }
                let word = Word {
                    low,
                    high,
                    hash: hash(low, high),
                };
                ids.clear();
                append_from(bucket, word, &mut ids);
                self.put(word, &ids);
            }
        }
    }
}

#[inline(always)]
fn few_ids(bucket: &Bucket, at: usize) -> [u32; FEW_IDS] {
    bytemuck::cast([bucket[at + 2], bucket[at + 3]])
}

/// The ids beyond those, if there is but one word.
#[inline(always)]
fn more_ids(bucket: &Bucket) -> [u32; MOST_IDS - FEW_IDS] {
    bytemuck::cast([bucket[4], bucket[5], bucket[6], bucket[7]])
}

/// The bucket of a word.
#[inline(always)]
pub(super) fn bucket(buckets: &[Bucket], word: Word) -> &Bucket {
    &buckets[place(word.hash, buckets.len())]
}

/// Stages the ids of words up to the first that is not in its bucket, and says how many those are.
#[inline(always)]
pub(super) fn stage(buckets: &[Bucket], words: &[Word], staged: &mut Staged) -> usize {
    let mut len = staged.len;
    let mut num_words = 0;
    for word in words {
        let bucket = bucket(buckets, *word);
        // Which of the two it is cannot be foreseen, so that there is no branch for it.
        let (first, second) = (difference(bucket, 0, *word), difference(bucket, 4, *word));
        if first.min(second) != 0 {
            break;
        }
        let at = std::hint::select_unpredictable(first == 0, 0, 4);
        let next = staged.ids.get_mut(len..);
        let Some(next) = next.and_then(|next| next.first_chunk_mut::<MOST_IDS>()) else {
            unreachable!("a group's ids have room")
        };
        next[..FEW_IDS].copy_from_slice(&few_ids(bucket, at));
        let count = count(bucket[at + 1]);
        if count > FEW_IDS {
            next[FEW_IDS..].copy_from_slice(&more_ids(bucket));
        }
        len += count;
        num_words += 1;
    }
    staged.len = len;
    num_words
}

#[inline(always)]
fn place(hash: u64, num_buckets: usize) -> usize {
    hash as usize & (num_buckets - 1)
}

/// Zero if a word is at one of the two places of a bucket.
#[inline(always)]
fn difference(bucket: &Bucket, at: usize, word: Word) -> u64 {
    (bucket[at] ^ word.low) | (bucket[at + 1] ^ word.high) << 4
}

fn is_at(bucket: &Bucket, at: usize, word: Word) -> bool {
    difference(bucket, at, word) == 0
}

/// The number of ids, of a word's high number.
#[inline(always)]
fn count(high: u64) -> usize {
    (high >> COUNT_SHIFT) as usize
}

/// Whether there is one word, with more ids than two would have room for.
#[inline(always)]
fn has_many(bucket: &Bucket) -> bool {
    count(bucket[1]) > FEW_IDS
}

/// Whether there is room for a word more.
fn has_place(bucket: &Bucket) -> bool {
    bucket[5] == 0 && !has_many(bucket)
}

/// Appends the ids of a word if it is in this bucket.
#[inline]
fn append_from(bucket: &Bucket, word: Word, ids: &mut Vec<u32>) -> bool {
    let at = match (is_at(bucket, 0, word), is_at(bucket, 4, word)) {
        (true, _) => 0,
        (false, true) => 4,
        (false, false) => return false,
    };
    let mut of_word = [0; MOST_IDS];
    of_word[..FEW_IDS].copy_from_slice(&few_ids(bucket, at));
    of_word[FEW_IDS..].copy_from_slice(&more_ids(bucket));
    let count = count(bucket[at + 1]);
    ids.extend_from_slice(&of_word[..count]);
    true
}

/// Brings a word, found beside its bucket at `at`, to it: in exchange for the second word there, or all for all
/// where there is one with many ids.
fn bring_back(buckets: &mut [Bucket], at: usize, word: Word) {
    let [mut own, mut beside] = [buckets[at], buckets[at ^ 1]];
    if has_many(&own) || has_many(&beside) {
        std::mem::swap(&mut own, &mut beside);
    } else {
        let found = if is_at(&beside, 0, word) { 0 } else { 4 };
        own[4..].swap_with_slice(&mut beside[found..found + 4]);
        if found == 0 && beside[1] == 0 {
            // A bucket with a free place has its word in the first.
            let [a, b, c, d, e, f, g, h] = beside;
            beside = [e, f, g, h, a, b, c, d];
        }
    }
    (buckets[at], buckets[at ^ 1]) = (own, beside);
}
