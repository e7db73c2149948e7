//! The words met before, with their ids: most words of a text are, so that looking one up is most of the work.
//!
//! There are three tables: `short` for words of up to 15 bytes, `long` for those of up to 31, `longest` for
//! others and for the few long ones that have too many ids for a place. Words are compared as a whole, so that no hash can
//! ever give a word the ids of another. All are bounded; what is old makes room for what is new.

mod long;
mod longest;
mod packed;
mod short;

use self::long::LongWords;
use self::longest::LongestWords;
use self::short::ShortWords;
use super::lane::Lane;
use super::words::{Word, hash_of_long, long_key};

/// Buckets of the table of short words to begin with, 32 KiB of them, and for how many there is a long word.
const FIRST_BUCKETS: usize = 1 << 9;
const BUCKETS_FOR_LONG: usize = 2;
/// How much longer these tables become when they grow. They do so twice at most, for what is there must be put
/// again: a text of few words needs little memory, and any other gets all that it may have.
const GROWTH: usize = 1 << 5;
const BYTES_WITH_BUCKET: usize = size_of::<[u64; 8]>() + size_of::<long::Place>() / BUCKETS_FOR_LONG;

pub(super) use self::short::ROOM;

/// The words that one thread has met.
pub(super) struct Cache {
    short: ShortWords,
    long: LongWords,
    longest: LongestWords,
    most_buckets: usize,
}

impl Cache {
    /// With tables of about so many bytes at most; a few kilobytes to begin with.
    pub(super) fn new(most_bytes: usize) -> Self {
        // The longest words are few and fill their part slowly: it is small, so that memory soon stays as it is.
        let for_longest = most_bytes / 20;
        let most_buckets = ((most_bytes - for_longest) / BYTES_WITH_BUCKET).max(FIRST_BUCKETS);
        Self {
            short: ShortWords::new(FIRST_BUCKETS),
            long: LongWords::new(FIRST_BUCKETS / BUCKETS_FOR_LONG),
            longest: LongestWords::new(for_longest),
            most_buckets: 1 << most_buckets.ilog2(),
        }
    }

    /// What looks words up, as long as nothing is put.
    #[inline(always)]
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder {
            short: self.short.finder(),
            long: &self.long,
        }
    }

    /// Appends the ids of a short word; false if it is not there.
    #[inline(always)]
    pub(super) fn append_short(&mut self, lane: impl Lane, word: Word, ids: &mut Vec<u32>) -> bool {
        self.short.append(lane, word, ids)
    }

    /// Remembers the ids of a short word.
    #[inline(always)]
    pub(super) fn put_short(&mut self, lane: impl Lane, word: Word, ids: &[u32]) {
        let num_buckets = self.short.num_buckets();
        if self.short.is_full() && num_buckets < self.most_buckets {
            let num_buckets = self.most_buckets.min(num_buckets * GROWTH);
            self.short.grow(lane, num_buckets);
            self.long = LongWords::new(num_buckets / BUCKETS_FOR_LONG);
        }
        self.short.put(word, ids);
    }

    /// Appends the ids of a word that is not short; false if it is not there.
    pub(super) fn append_long(&mut self, word: &[u8], ids: &mut Vec<u32>) -> bool {
        if let Some(key) = long_key(word)
            && self.long.append(&key, hash_of_long(&key), ids)
        {
            return true;
        }
        self.longest.append(word, ids)
    }

    /// Remembers the ids of such a word that is not there.
    pub(super) fn put_long(&mut self, word: &[u8], ids: &[u32]) {
        match long_key(word) {
            Some(key) if ids.len() <= long::MOST_IDS => {
                self.long.put(&key, hash_of_long(&key), ids);
            }
            _ => self.longest.put(word, ids),
        }
    }
}

/// What looks words up.
#[derive(Clone, Copy)]
pub(super) struct Finder<'a> {
    short: short::Finder<'a>,
    long: &'a LongWords,
}

impl Finder<'_> {
    /// Has the processor fetch what looking up a short word will need.
    #[inline(always)]
    pub(super) fn prefetch(self, word: Word) {
        self.short.prefetch(word);
    }

    /// Has the processor fetch what looking up a word that is not short will need.
    #[inline(never)]
    pub(super) fn prefetch_long(self, word: &[u8]) {
        if let Some(key) = long_key(word) {
            self.long.prefetch(hash_of_long(&key));
        }
    }

    /// Puts the ids of a short word that is in its bucket to the start of `ids` and says how many; 0 if it is not.
    #[inline(always)]
    pub(super) fn find(self, lane: impl Lane, word: Word, ids: &mut [u32; ROOM]) -> usize {
        self.short.find(lane, word, ids)
    }
}
