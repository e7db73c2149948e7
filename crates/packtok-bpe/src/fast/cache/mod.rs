//! The words met before, with their ids: most words of a text are, so that looking one up is most of the work.
//!
//! There are three tables: `short` for words of up to 15 bytes, `long` for those of up to 31, `longest` for
//! others and for the few that have too many ids for a place. Words are compared as a whole, so that no hash can
//! ever give a word the ids of another. All are bounded; what is old makes room for what is new.

mod long;
mod longest;
mod packed;
mod short;

use self::long::LongWords;
use self::longest::LongestWords;
use self::short::{Bucket, ShortWords};
use super::table::prefetch;
use super::words::{Word, hash_of_long, long_key};

/// Buckets of the table of short words to begin with, 32 KiB of them, and for how many there is a long word.
const FIRST_BUCKETS: usize = 1 << 9;
const BUCKETS_FOR_LONG: usize = 2;
/// How much longer these tables become when they grow. They do so twice at most, for what is there must be put
/// again: a text of few words needs little memory, and any other gets all that it may have.
const GROWTH: usize = 1 << 5;
const BYTES_WITH_BUCKET: usize = size_of::<Bucket>() + size_of::<long::Place>() / BUCKETS_FOR_LONG;

pub(super) use self::short::{GROUP, Staged};

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
            buckets: self.short.buckets(),
            long: &self.long,
        }
    }

    /// Appends the ids of a short word; false if it is not there.
    #[inline]
    pub(super) fn append_short(&mut self, word: Word, ids: &mut Vec<u32>) -> bool {
        self.short.append(word, ids)
    }

    /// The same for one that [`Finder::stage`] did not find.
    #[inline]
    pub(super) fn append_from_beside(
        &mut self,
        text: &[u8],
        word: Word,
        ids: &mut Vec<u32>,
    ) -> bool {
        self.short.append_from_beside(word, ids)
            || text.len() > short::MOST_IDS && self.longest.append(text, ids)
    }

    /// Remembers the ids of a short word that is not there.
    pub(super) fn put_short(&mut self, text: &[u8], word: Word, ids: &[u32]) {
        if ids.len() > short::MOST_IDS {
            // White space, most often, where a vocabulary has no runs of it.
            return self.longest.put(text, ids);
        }
        let num_buckets = self.short.num_buckets();
        if self.short.is_full() && num_buckets < self.most_buckets {
            let num_buckets = self.most_buckets.min(num_buckets * GROWTH);
            self.short.grow(num_buckets);
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
    buckets: &'a [Bucket],
    long: &'a LongWords,
}

impl Finder<'_> {
    /// Has the processor fetch what looking up a short word will need.
    #[inline(always)]
    pub(super) fn prefetch(&self, word: Word) {
        prefetch(short::bucket(self.buckets, word));
    }

    /// A word that is not short; has the processor fetch what looking it up will need.
    #[inline(never)]
    pub(super) fn prepare_long(&self, word: &[u8]) -> u64 {
        let hash = long_key(word).as_ref().map_or(0, hash_of_long);
        self.long.prefetch(hash);
        hash
    }

    /// Stages the ids of words up to the first that is not in its bucket, and says how many those are.
    #[inline(always)]
    pub(super) fn stage(&self, words: &[Word], staged: &mut Staged) -> usize {
        short::stage(self.buckets, words, staged)
    }
}
