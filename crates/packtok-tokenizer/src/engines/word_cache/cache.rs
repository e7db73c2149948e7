//! The words met before, with their ids: most words of a text are, so that looking one up is most of the work.
//!
//! There are two tables: `short` for words of up to 15 bytes, and `long` for others, which are few, because they
//! are cut where they can be. Words are compared as a whole, so that no hash can ever give a word the ids of
//! another. Both are bounded; what is old makes room for what is new.

use super::long::LongWords;
use super::short::{self, Finder, ShortWords};
use crate::engines::lane::Lane;
use crate::engines::word_key::WordKey;

/// Bytes that the words one thread has met take at most, unless something else is asked for.
pub(in crate::engines) const CACHE_BYTES: usize = 48 << 20;

/// Words whose slots in the cache are fetched together, which must all have room in the nearest cache.
pub(in crate::engines) const GROUP: usize = 128;

/// Buckets of the table of short words to begin with, 32 KiB of them. About as many words later it gets all the
/// room that it may have: a text of few words needs little memory, and any other needs the same from early on,
/// however long it is.
const FIRST_BUCKETS: usize = 1 << 9;

/// The words that one thread has met.
pub(in crate::engines) struct WordCache {
    short: ShortWords,
    long: LongWords,
    max_buckets: usize,
}

impl WordCache {
    /// With tables of about so many bytes at most; a few kilobytes to begin with.
    pub(in crate::engines) fn new(max_bytes: usize) -> Self {
        let for_long = max_bytes / 3;
        let max_buckets = (max_bytes - for_long) / size_of::<short::Bucket>();
        Self {
            short: ShortWords::new(FIRST_BUCKETS),
            long: LongWords::new(for_long),
            max_buckets: 1 << max_buckets.max(FIRST_BUCKETS).ilog2(),
        }
    }

    /// Takes all memory that it may have now, which it else does as it is needed.
    pub(in crate::engines) fn preallocate(&mut self, lane: impl Lane) {
        if self.short.num_buckets() < self.max_buckets {
            self.short.grow(lane, self.max_buckets);
        }
        self.short.preallocate();
        self.long.preallocate();
    }

    /// What looks short words up, as long as nothing is put.
    #[inline(always)]
    pub(in crate::engines) fn finder(&self) -> Finder<'_> {
        self.short.finder()
    }

    /// Remembers the ids of a short word.
    #[inline(always)]
    pub(in crate::engines) fn insert_short(&mut self, lane: impl Lane, word: WordKey, ids: &[u32]) {
        if self.short.is_full() && self.short.num_buckets() < self.max_buckets {
            self.short.grow(lane, self.max_buckets);
        }
        self.short.insert(word, ids);
    }

    /// Has the processor fetch what says where a word of this hash is that is not short.
    #[inline(always)]
    pub(in crate::engines) fn prefetch_long_slot(&self, hash: u64) {
        self.long.prefetch_slot(hash);
    }

    /// Has it fetch what is there.
    #[inline(always)]
    pub(in crate::engines) fn prefetch_long(&self, hash: u64) {
        self.long.prefetch_word(hash);
    }

    /// Appends the ids of a word of this [`hash`](crate::engines::word_key::hash_of_bytes) that is not short; false if it is not
    /// there.
    pub(in crate::engines) fn append_long(
        &self,
        hash: u64,
        word: &[u8],
        ids: &mut Vec<u32>,
    ) -> bool {
        self.long.append(hash, word, ids)
    }

    /// Remembers the ids of a word of this hash that is not short.
    pub(in crate::engines) fn insert_long(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        self.long.insert(hash, word, ids);
    }
}
