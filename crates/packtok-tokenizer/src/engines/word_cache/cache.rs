//! The cache of one thread: words and their ids. Most words of a text hit, so lookups are most of
//! the work.
//!
//! There are two tables: `short` for words of up to 15 bytes, and `long` for the few longer words,
//! because long words are split where possible. Words are compared in full, so a hash collision
//! never returns the ids of another word. Both tables are bounded and evict old words.

use super::long::LongWords;
use super::short::{self, Finder, ShortWords};
use crate::engines::simd::Simd;
use crate::engines::word_key::WordKey;

/// Default maximum size of a cache.
pub(crate) const CACHE_BYTES: usize = 48 << 20;

/// Number of words that are looked up together. All their slots are prefetched first and must fit
/// in the first-level cache.
pub(crate) const GROUP: usize = 128;

/// Initial number of buckets of the table of short words: 32 KiB. After about as many words, the
/// table grows to its full size at once. So a text of few words needs little memory, and the
/// memory for longer texts does not depend on their length.
const FIRST_BUCKETS: usize = 1 << 9;

/// The words that one thread has encoded, with their ids.
pub(crate) struct WordCache {
    short: ShortWords,
    long: LongWords,
    max_buckets: usize,
}

impl WordCache {
    /// With tables of at most about this many bytes. Most of it is allocated later.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let for_long = max_bytes / 3;
        let max_buckets = (max_bytes - for_long) / size_of::<short::Bucket>();
        Self {
            short: ShortWords::new(FIRST_BUCKETS),
            long: LongWords::new(for_long),
            max_buckets: 1 << max_buckets.max(FIRST_BUCKETS).ilog2(),
        }
    }

    /// Whether the table of short words has its full size, and room for this many more words.
    pub(crate) fn has_grown_for(&self, num_words: usize) -> bool {
        self.short.num_buckets() == self.max_buckets && num_words <= self.max_buckets
    }

    /// Looks up short words; valid until the next insertion.
    #[inline(always)]
    pub(crate) fn finder(&self) -> Finder<'_> {
        self.short.finder()
    }

    #[inline(always)]
    pub(crate) fn insert_short(&mut self, simd: impl Simd, word: WordKey, ids: &[u32]) {
        if self.short.is_full() && self.short.num_buckets() < self.max_buckets {
            self.short.grow(simd, self.max_buckets);
        }
        self.short.insert(word, ids);
    }

    /// Prefetches the slots of a long word with this hash.
    #[inline(always)]
    pub(crate) fn prefetch_long_slot(&self, hash: u64) {
        self.long.prefetch_slot(hash);
    }

    /// Prefetches the entry of a long word with this hash, if there is one. The slots should be prefetched first.
    #[inline(always)]
    pub(crate) fn prefetch_long(&self, hash: u64) {
        self.long.prefetch_word(hash);
    }

    /// Appends the ids of a long word with this [`hash`](crate::engines::word_key::hash_of_bytes); `false` on a miss.
    pub(crate) fn append_long(&self, hash: u64, word: &[u8], ids: &mut Vec<u32>) -> bool {
        self.long.append(hash, word, ids)
    }

    pub(crate) fn insert_long(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        self.long.insert(hash, word, ids);
    }
}
