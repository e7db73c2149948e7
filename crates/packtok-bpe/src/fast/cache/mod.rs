//! The words met before, with their ids: most words of a text are, so that looking one up is most of the work.
//!
//! There are two tables: `short` for words of up to 15 bytes, and `long` for others, which are few, because they
//! are cut where they can be. Words are compared as a whole, so that no hash can ever give a word the ids of
//! another. Both are bounded; what is old makes room for what is new.

mod long;
mod short;

use self::long::LongWords;
use self::short::ShortWords;
pub(super) use self::short::{Finder, ROOM};
use super::lane::Lane;
use super::words::Word;

/// Buckets of the table of short words to begin with, 32 KiB of them. About as many words later it gets all the
/// room that it may have: a text of few words needs little memory, and any other needs the same from early on,
/// however long it is.
const FIRST_BUCKETS: usize = 1 << 9;

/// The words that one thread has met.
pub(super) struct Cache {
    short: ShortWords,
    long: LongWords,
    most_buckets: usize,
}

impl Cache {
    /// With tables of about so many bytes at most; a few kilobytes to begin with.
    pub(super) fn new(most_bytes: usize) -> Self {
        let for_long = most_bytes / 4;
        let most_buckets = (most_bytes - for_long) / size_of::<short::Bucket>();
        Self {
            short: ShortWords::new(FIRST_BUCKETS),
            long: LongWords::new(for_long),
            most_buckets: 1 << most_buckets.max(FIRST_BUCKETS).ilog2(),
        }
    }

    /// What looks short words up, as long as nothing is put.
    #[inline(always)]
    pub(super) fn finder(&self) -> Finder<'_> {
        self.short.finder()
    }

    /// Remembers the ids of a short word.
    #[inline(always)]
    pub(super) fn put_short(&mut self, lane: impl Lane, word: Word, ids: &[u32]) {
        if self.short.is_full() && self.short.num_buckets() < self.most_buckets {
            self.short.grow(lane, self.most_buckets);
        }
        self.short.put(word, ids);
    }

    /// Appends the ids of a word that is not short; false if it is not there.
    pub(super) fn append_long(&mut self, word: &[u8], ids: &mut Vec<u32>) -> bool {
        self.long.append(word, ids)
    }

    /// Remembers the ids of a word that is not short.
    pub(super) fn put_long(&mut self, word: &[u8], ids: &[u32]) {
        self.long.put(word, ids);
    }
}
