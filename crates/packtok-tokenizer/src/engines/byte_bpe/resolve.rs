//! Resolves the misses of a chunk: looks them up in the other tables, splits long words into pieces, merges the rest
//! side by side, and inserts the results into the cache.

use super::bpe::Bpe;
use super::misses::{Miss, Misses, Part, Unresolved};
use super::scratch::Scratch;
use crate::engines::simd::{Job, Simd};
use crate::engines::word_cache::ROOM;
use crate::engines::word_key::{SHORT, WordKey, hash_of_bytes};

/// Pieces of words longer than this are merged at once, without a cache lookup.
const MAX_BYTES_IN_PARTS: usize = 1 << 12;

/// Maximum number of ids that are kept allocated.
const MAX_RETAINED_IDS: usize = 1 << 16;

/// Ids that are copied at once, because copying the exact number takes longer.
const FEW: usize = SHORT;

/// Appends the ids of a chunk's words, hits and misses.
pub(super) struct Resolve<'a> {
    pub(super) bpe: &'a Bpe,
    pub(super) text: &'a [u8],
    /// Number of ids of the hits.
    pub(super) num_staged: usize,
    pub(super) scratch: &'a mut Scratch,
    pub(super) ids: &'a mut Vec<u32>,
}

impl Job for Resolve<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, simd: impl Simd) {
        self.prefetch_long();
        self.split(simd);
        self.look_up(simd);
        self.merge(simd);
        self.append(simd);
    }
}

impl Resolve<'_> {
    /// Start and end of a word of the chunk.
    #[inline(always)]
    fn span(&self, number: usize) -> (usize, usize) {
        let bounds = &self.scratch.bounds;
        (bounds[number] as usize, bounds[number + 1] as usize)
    }

    /// Prefetches the memory for the lookups of long words: first all slots, then all entries.
    #[inline(always)]
    fn prefetch_long(&mut self) {
        for i in 0..self.scratch.misses.words.len() {
            let (start, end) = self.span(self.scratch.misses.words[i].number);
            if end - start > SHORT {
                let hash = hash_of_bytes(&self.text[start..end]);
                self.scratch.misses.words[i].hash = hash;
                self.scratch.cache.prefetch_long_slot(hash);
            }
        }
        for word in &self.scratch.misses.words {
            if word.hash != 0 {
                self.scratch.cache.prefetch_long(word.hash);
            }
        }
    }

    /// Splits all words into parts, and prefetches the memory for their lookups.
    #[inline(always)]
    fn split(&mut self, simd: impl Simd) {
        self.scratch.misses.parts.clear();
        self.scratch.misses.unresolved.clear();
        self.scratch.misses.ids.clear();
        for i in 0..self.scratch.misses.words.len() {
            let (start, end) = self.span(self.scratch.misses.words[i].number);
            let word = &self.text[start..end];
            let Scratch { misses, cache, .. } = &mut *self.scratch;
            let first_id = misses.ids.len();
            if let Some(id) = self.bpe.unmerged(word) {
                // Not cached, because the same bytes have other ids as a piece of a longer word.
                misses.ids.push(id);
                misses.push_resolved(first_id);
            } else if let Some(id) = self.bpe.isolated(word) {
                cache.insert_short(simd, WordKey::at(self.text, start, end), &[id]);
                misses.ids.push(id);
                misses.push_resolved(first_id);
            } else if word.len() <= SHORT {
                let word = WordKey::at(self.text, start, end);
                misses.push_unresolved(word, false);
            } else if cache.append_long(misses.words[i].hash, word, &mut misses.ids) {
                misses.push_resolved(first_id);
            } else {
                misses.words[i].is_new_and_long = true;
                self.split_long(start, end);
            }
            let misses = &mut self.scratch.misses;
            misses.words[i].end_of_parts = misses.parts.len();
        }
    }

    /// Splits a word into pieces that no token crosses. The pieces of a very long word are merged at once.
    #[inline(always)]
    fn split_long(&mut self, start: usize, end: usize) {
        let Self { bpe, text, .. } = *self;
        let Scratch {
            misses,
            cache,
            heap,
            ..
        } = &mut *self.scratch;
        let mut at = start;
        if end - start > MAX_BYTES_IN_PARTS {
            let first_id = misses.ids.len();
            while at < end {
                let next = bpe.piece_bounds.end_of_piece(&text[..end], at);
                let piece = &text[at..next];
                bpe.merge_rules.encode(piece, heap, &mut misses.ids);
                at = next;
            }
            misses.push_resolved(first_id);
        }
        while at < end {
            let next = bpe.piece_bounds.end_of_piece(&text[..end], at);
            let piece = &text[at..next];
            // A token that exists only as a whole word must not be used for a piece.
            let may_be_cached = piece.len() > 1 && bpe.unmerged(piece).is_none();
            if may_be_cached && piece.len() <= SHORT {
                let word = WordKey::at(text, at, next);
                let finder = cache.finder();
                finder.prefetch(finder.bucket_of(word));
                misses.push_unresolved(word, true);
            } else {
                let first_id = misses.ids.len();
                bpe.merge_rules.encode(piece, heap, &mut misses.ids);
                misses.push_resolved(first_id);
            }
            at = next;
        }
    }

    /// Looks up the pieces in the cache.
    #[inline(always)]
    fn look_up(&mut self, simd: impl Simd) {
        let Scratch { misses, cache, .. } = &mut *self.scratch;
        let Misses {
            parts,
            unresolved,
            ids,
            ..
        } = misses;
        let mut num_new = 0;
        for i in 0..unresolved.len() {
            let Unresolved {
                part,
                word,
                is_piece,
                ..
            } = unresolved[i];
            let mut cached_ids = [0; ROOM];
            let num_ids = if is_piece {
                let finder = cache.finder();
                finder.find(simd, word, finder.bucket_of(word), &mut cached_ids)
            } else {
                None
            };
            if let Some(num_ids) = num_ids {
                let first_id = ids.len();
                parts[part] = Part { first_id, num_ids };
                ids.extend_from_slice(&cached_ids[..num_ids]);
            } else {
                unresolved[num_new] = unresolved[i];
                num_new += 1;
            }
        }
        unresolved.truncate(num_new);
    }

    /// Merges all other parts.
    #[inline(always)]
    fn merge(&mut self, simd: impl Simd) {
        let Misses {
            parts,
            unresolved,
            ids,
            ..
        } = &mut self.scratch.misses;
        let words = unresolved.iter().map(|unresolved| unresolved.word);
        self.bpe
            .merge_rules
            .encode_all(simd, words, |number, of_word, num_ids| {
                let first_id = ids.len();
                parts[unresolved[number].part] = Part { first_id, num_ids };
                extend_from_few(ids, of_word, num_ids);
            });
    }

    /// Appends all ids in order, and inserts the misses into the cache.
    #[inline(always)]
    fn append(&mut self, simd: impl Simd) {
        let (mut staged, mut parts) = (0, 0);
        for i in 0..self.scratch.misses.words.len() {
            let Miss {
                number,
                num_before,
                end_of_parts,
                hash,
                is_new_and_long,
            } = self.scratch.misses.words[i];
            self.ids
                .extend_from_slice(&self.scratch.staged[staged..num_before]);
            staged = num_before;
            let first_id = self.ids.len();
            let misses = &self.scratch.misses;
            for part in &misses.parts[parts..end_of_parts] {
                let from_part = &misses.ids[part.first_id..];
                match from_part.first_chunk() {
                    Some(few) if part.num_ids <= FEW => {
                        extend_from_few(self.ids, few, part.num_ids);
                    }
                    _ => self.ids.extend_from_slice(&from_part[..part.num_ids]),
                }
            }
            parts = end_of_parts;
            if is_new_and_long {
                let (start, end) = self.span(number);
                let word = &self.text[start..end];
                self.scratch
                    .cache
                    .insert_long(hash, word, &self.ids[first_id..]);
            }
        }
        self.ids
            .extend_from_slice(&self.scratch.staged[staged..self.num_staged]);
        let Scratch { misses, cache, .. } = &mut *self.scratch;
        for unresolved in &misses.unresolved {
            let part = misses.parts[unresolved.part];
            let of_part = &misses.ids[part.first_id..part.first_id + part.num_ids];
            cache.insert_short(simd, unresolved.word, of_part);
        }
        if misses.ids.capacity() > MAX_RETAINED_IDS {
            *misses = Misses::default();
        }
    }
}

/// Appends the first `num_ids` of these.
#[inline(always)]
fn extend_from_few(ids: &mut Vec<u32>, few: &[u32; FEW], num_ids: usize) {
    let num_before = ids.len();
    ids.extend_from_slice(few);
    ids.truncate(num_before + num_ids);
}
