//! Looks up the words of a chunk in the cache.

use std::ops::Range;

use super::scratch::Scratch;
use super::word_chunks::{Bounds, WordChunks};
use crate::engines::simd::{Job, KEY_BATCH, Simd};

/// [`WordChunks::next_chunk`] on a back end.
pub(super) struct NextWords<'a, 't> {
    pub(super) words: &'a mut WordChunks<'t>,
    pub(super) bounds: &'a mut Bounds,
}

impl Job for NextWords<'_, '_> {
    type Output = usize;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> usize {
        self.words.next_chunk(simd, self.bounds)
    }
}

/// Computes the keys of at most [`GROUP`](crate::engines::word_cache::GROUP) words of a chunk and prefetches their
/// buckets.
///
/// The words are looked up afterwards, so that the prefetches overlap.
pub(super) struct Prepare<'a> {
    pub(super) text: &'a [u8],
    pub(super) of_chunk: Range<usize>,
    pub(super) scratch: &'a mut Scratch,
}

impl Job for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: impl Simd) {
        let Self {
            text,
            of_chunk,
            scratch,
        } = self;
        let finder = scratch.cache.finder();
        let words = scratch.words.0.as_chunks_mut().0;
        let buckets = scratch.buckets.0.as_chunks_mut().0;
        let bounds = scratch.bounds[of_chunk.start..].windows(KEY_BATCH + 1);
        let eights = words.iter_mut().zip(buckets).zip(bounds.step_by(KEY_BATCH));
        for ((words, buckets), bounds) in eights.take(of_chunk.len().div_ceil(KEY_BATCH)) {
            let bounds = bounds.first_chunk().expect("a window has as many");
            simd.word_keys(text, bounds, finder.shift(), words, buckets);
            for &bucket in &*buckets {
                finder.prefetch(bucket);
            }
        }
    }
}

/// Stages the ids of the last prepared group after the ids of earlier groups, and records misses.
/// Returns the number of staged ids.
pub(super) struct Stage<'a> {
    pub(super) of_chunk: Range<usize>,
    pub(super) num_staged: usize,
    pub(super) scratch: &'a mut Scratch,
}

impl Job for Stage<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self, simd: impl Simd) -> usize {
        let Self {
            of_chunk,
            mut num_staged,
            scratch,
        } = self;
        // Borrowed here, because writing an id may change a pointer in the scratch for all that the compiler knows.
        let Scratch {
            words,
            buckets,
            staged: all_staged,
            misses,
            cache,
            ..
        } = scratch;
        let (finder, all_staged) = (cache.finder(), &mut all_staged[..]);
        for (number, (word, bucket)) in of_chunk.zip(words.0.iter().zip(&buckets.0)) {
            let staged = all_staged.get_mut(num_staged..);
            let Some(staged) = staged.and_then(|staged| staged.first_chunk_mut()) else {
                unreachable!("a chunk's ids have room")
            };
            match finder.find(simd, *word, *bucket, staged) {
                Some(count) => num_staged += count,
                None => misses.push(number, num_staged),
            }
        }
        num_staged
    }
}
