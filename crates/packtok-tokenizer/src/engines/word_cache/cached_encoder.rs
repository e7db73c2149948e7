//! Encodes texts word by word through the cache, for engines that implement [`WordEncoder`].

use super::cache::{CACHE_BYTES, GROUP, WordCache};
use super::short::{MAX_IDS, ROOM};
use crate::cause::Cause;
use crate::engines::simd::{AnySimd, Job, Simd};
use crate::engines::word_key::{SHORT, WordKey, hash_of_bytes};

/// Finds and encodes words.
pub(crate) trait WordEncoder {
    /// Start and end of the first word at or after `at`; both are equal if there is no word.
    fn next_word(&self, text: &[u8], at: usize) -> (usize, usize);

    /// Appends the ids of a word; returns `false` if the word cannot be encoded alone.
    ///
    /// # Errors
    /// The engine refuses the word.
    fn encode_word(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause>;

    /// Whether the word that was encoded last may have other ids after another text. It is not
    /// cached then.
    #[inline(always)]
    fn depends_on_context(&self) -> bool {
        false
    }
}

/// The cache of one thread, and its back end.
pub(crate) struct CachedEncoder {
    simd: AnySimd,
    words: [(WordKey, u32, usize, usize); GROUP],
    cache: WordCache,
}

impl CachedEncoder {
    /// With a cache of at most this many bytes.
    pub(crate) fn new(cache_bytes: Option<usize>) -> Self {
        Self {
            simd: AnySimd::detect(),
            words: [Default::default(); GROUP],
            cache: WordCache::new(cache_bytes.unwrap_or(CACHE_BYTES)),
        }
    }

    /// Appends the ids of all words of a text. Returns `false`, with nothing appended, if a word
    /// cannot be encoded alone.
    ///
    /// # Errors
    /// As [`WordEncoder::encode_word`].
    pub(crate) fn append_ids(
        &mut self,
        text: &[u8],
        words: &mut impl WordEncoder,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Cause> {
        let start = ids.len();
        let simd = self.simd;
        let done = simd.run(AppendIds {
            encoder: self,
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

/// [`CachedEncoder::append_ids`] on a back end.
struct AppendIds<'a, W> {
    encoder: &'a mut CachedEncoder,
    text: &'a [u8],
    words: &'a mut W,
    ids: &'a mut Vec<u32>,
}

impl<W: WordEncoder> Job for AppendIds<'_, W> {
    type Output = Result<bool, Cause>;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> Self::Output {
        let Self {
            encoder,
            text,
            words,
            ids,
        } = self;
        let CachedEncoder {
            words: group,
            cache,
            ..
        } = encoder;
        let mut at = 0;
        loop {
            // The buckets of a group of words are prefetched, so that no lookup waits for memory.
            let finder = cache.finder();
            let mut num_words = 0;
            for place in &mut *group {
                let (start, end) = words.next_word(text, at);
                at = end;
                if start == end {
                    break;
                }
                let word = WordKey::at(text, start, end);
                let bucket = finder.bucket_of(word);
                finder.prefetch(bucket);
                *place = (word, bucket, start, end);
                num_words += 1;
            }
            for &(word, bucket, start, end) in &group[..num_words] {
                let mut cached_ids = [0; ROOM];
                let finder = cache.finder();
                // If the table has grown since, this misses, and the word is encoded again.
                match finder.find(simd, word, bucket, &mut cached_ids) {
                    Some(count) => ids.extend_from_slice(&cached_ids[..count]),
                    None => {
                        if !append_miss(simd, &text[start..end], cache, words, ids)? {
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

/// Appends the ids of a word that is not among the short words in the cache, and inserts the word.
/// Returns `false` if the word cannot be encoded alone.
#[cold]
#[inline(never)]
fn append_miss(
    simd: impl Simd,
    word: &[u8],
    cache: &mut WordCache,
    words: &mut impl WordEncoder,
    ids: &mut Vec<u32>,
) -> Result<bool, Cause> {
    let hash = hash_of_bytes(word);
    if cache.append_long(hash, word, ids) {
        return Ok(true);
    }
    let start = ids.len();
    if !words.encode_word(word, ids)? {
        return Ok(false);
    }
    if words.depends_on_context() {
        return Ok(true);
    }
    let of_word = &ids[start..];
    let short = WordKey::at(word, 0, word.len());
    // A word may have more ids than bytes.
    let is_short = short.is_short() && of_word.len() <= SHORT;
    if is_short && of_word.iter().all(|&id| (id as usize) < MAX_IDS) {
        cache.insert_short(simd, short, of_word);
    } else {
        cache.insert_long(hash, word, of_word);
    }
    Ok(true)
}
