//! Words that are encoded when they are first met, and remembered: for engines that find and encode words in ways of
//! their own.

use super::cache::{CACHE_BYTES, Cache, GROUP};
use super::short::{MOST_IDS, ROOM};
use crate::engines::lane::{AnyLane, Job, Lane};
use crate::engines::word_key::{SHORT, Word, hash_of_bytes};
use crate::error::Cause;

/// How words are found and encoded.
pub(crate) trait Words {
    /// Start and end of the first word from `at` on; the same place twice if there is none.
    fn next(&self, text: &[u8], at: usize) -> (usize, usize);

    /// Appends the ids of a word; false if it cannot be encoded by itself.
    ///
    /// # Errors
    /// Those of whoever encodes it.
    fn encode(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause>;
}

/// The words that one thread has met.
pub(crate) struct Remembered {
    lane: AnyLane,
    words: [(Word, u32, usize, usize); GROUP],
    cache: Cache,
}

impl Remembered {
    /// With a cache of at most so many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Self {
        Self {
            lane: AnyLane::detect(),
            words: [Default::default(); GROUP],
            cache: Cache::new(cache_bytes.unwrap_or(CACHE_BYTES)),
        }
    }

    /// Takes all memory that the words may have.
    pub(crate) fn take_memory(&mut self) {
        self.lane.run(TakeMemory(&mut self.cache));
    }

    /// Appends the ids of all words of a text; false, and nothing appended, if one cannot be encoded by itself.
    ///
    /// # Errors
    /// Those of [`Words::encode`].
    pub(crate) fn append_ids(
        &mut self,
        text: &[u8],
        words: &mut impl Words,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Cause> {
        let start = ids.len();
        let lane = self.lane;
        let done = lane.run(AppendIds {
            remembered: self,
            text,
            words,
            ids,
        });
        if !matches!(done, Ok(true)) {
            ids.truncate(start);
        }
        done
    }
}

/// [`Cache::take_memory`], in a lane.
struct TakeMemory<'a>(&'a mut Cache);

impl Job for TakeMemory<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self, lane: impl Lane) {
        self.0.take_memory(lane);
    }
}

/// [`Remembered::append_ids`], in a lane.
struct AppendIds<'a, W> {
    remembered: &'a mut Remembered,
    text: &'a [u8],
    words: &'a mut W,
    ids: &'a mut Vec<u32>,
}

impl<W: Words> Job for AppendIds<'_, W> {
    type Done = Result<bool, Cause>;

    #[inline(always)]
    fn run(self, lane: impl Lane) -> Self::Done {
        let Self {
            remembered,
            text,
            words,
            ids,
        } = self;
        let Remembered {
            words: group,
            cache,
            ..
        } = remembered;
        let mut at = 0;
        loop {
            // What looking words up will need is fetched for a group of them, so that none is waited for.
            let finder = cache.finder();
            let mut num_words = 0;
            for place in &mut *group {
                let (start, end) = words.next(text, at);
                at = end;
                if start == end {
                    break;
                }
                let word = Word::at(text, start, end);
                let bucket = finder.bucket_of(word);
                finder.prefetch(bucket);
                *place = (word, bucket, start, end);
                num_words += 1;
            }
            for &(word, bucket, start, end) in &group[..num_words] {
                let mut found = [0; ROOM];
                let finder = cache.finder();
                // Should the table have become longer since, it is not there and encoded again.
                match finder.find(lane, word, bucket, &mut found) {
                    Some(count) => ids.extend_from_slice(&found[..count]),
                    None => {
                        if !append_missing(lane, &text[start..end], cache, words, ids)? {
                            return Ok(false);
                        }
                    }
                }
            }
            if num_words < GROUP {
                return Ok(true);
            }
        }
    }
}

/// Appends the ids of a word that is no short one of the cache; false if it cannot be encoded by itself.
#[cold]
#[inline(never)]
fn append_missing(
    lane: impl Lane,
    word: &[u8],
    cache: &mut Cache,
    words: &mut impl Words,
    ids: &mut Vec<u32>,
) -> Result<bool, Cause> {
    let hash = hash_of_bytes(word);
    if cache.append_long(hash, word, ids) {
        return Ok(true);
    }
    let start = ids.len();
    if !words.encode(word, ids)? {
        return Ok(false);
    }
    let of_word = &ids[start..];
    let short = Word::at(word, 0, word.len());
    // More may be made of it than it has bytes.
    let is_short = short.is_short() && of_word.len() <= SHORT;
    if is_short && of_word.iter().all(|&id| (id as usize) < MOST_IDS) {
        cache.put_short(lane, short, of_word);
    } else {
        cache.put_long(hash, word, of_word);
    }
    Ok(true)
}
