//! The words of a chunk that the cache does not have: looked for where else they may be, cut into parts if they
//! are long, merged side by side, and remembered.

use super::bpe::Bpe;
use super::misses::{Missed, Missing, Part, Sought};
use super::scratch::Scratch;
use crate::engines::lane::{Job, Lane};
use crate::engines::word_cache::ROOM;
use crate::engines::word_key::{SHORT, Word, hash_of_bytes};

/// Bytes of a word whose pieces are looked up and merged side by side.
const MOST_BYTES_IN_PARTS: usize = 1 << 12;

/// Ids for which memory is kept from chunk to chunk.
const MOST_IDS_KEPT: usize = 1 << 16;

/// Ids that are copied together, because to copy as many as there are takes longer.
const FEW: usize = SHORT + 1;

/// Appends the ids of a chunk's words, with those that are missing.
pub(super) struct Resolve<'a> {
    pub(super) bpe: &'a Bpe,
    pub(super) text: &'a [u8],
    /// Ids of the words that are not missing.
    pub(super) num_staged: usize,
    pub(super) scratch: &'a mut Scratch,
    pub(super) ids: &'a mut Vec<u32>,
}

impl Job for Resolve<'_> {
    type Done = ();

    #[inline(always)]
    fn run(mut self, lane: impl Lane) {
        self.prefetch_long();
        self.cut();
        self.look_up(lane);
        self.merge();
        self.append(lane);
    }
}

impl Resolve<'_> {
    /// Where a word of the chunk is.
    #[inline(always)]
    fn place(&self, number: usize) -> (usize, usize) {
        let bounds = &self.scratch.bounds;
        (bounds[number] as usize, bounds[number + 1] as usize)
    }

    /// Has the processor fetch what looking up long words will need: first all their places, then what is there.
    #[inline(always)]
    fn prefetch_long(&mut self) {
        for i in 0..self.scratch.missing.words.len() {
            let (start, end) = self.place(self.scratch.missing.words[i].number);
            if end - start > SHORT {
                let hash = hash_of_bytes(&self.text[start..end]);
                self.scratch.missing.words[i].hash = hash;
                self.scratch.cache.prefetch_place_of_long(hash);
            }
        }
        for word in &self.scratch.missing.words {
            if word.hash != 0 {
                self.scratch.cache.prefetch_long(word.hash);
            }
        }
    }

    /// The parts of all words; has the processor fetch what looking them up will need.
    #[inline(always)]
    fn cut(&mut self) {
        self.scratch.missing.parts.clear();
        self.scratch.missing.sought.clear();
        self.scratch.missing.ids.clear();
        for i in 0..self.scratch.missing.words.len() {
            let (start, end) = self.place(self.scratch.missing.words[i].number);
            let word = &self.text[start..end];
            let Scratch { missing, cache, .. } = &mut *self.scratch;
            let first_id = missing.ids.len();
            if let Some(id) = self.bpe.whole(word) {
                // It is not remembered: as a piece of a longer word it has other ids.
                missing.ids.push(id);
                missing.push_known(first_id);
            } else if word.len() <= SHORT {
                let word = Word::at(self.text, start, end);
                missing.push_sought(start, end, word, false);
            } else if cache.append_long(missing.words[i].hash, word, &mut missing.ids) {
                missing.push_known(first_id);
            } else {
                missing.words[i].is_new_and_long = true;
                self.cut_long(start, end);
            }
            let missing = &mut self.scratch.missing;
            missing.words[i].end_of_parts = missing.parts.len();
        }
    }

    /// The pieces of a word, which no token reaches out of; those of a very long one have their ids at once.
    #[inline(always)]
    fn cut_long(&mut self, start: usize, end: usize) {
        let Self { bpe, text, .. } = *self;
        let Scratch {
            missing,
            cache,
            heap,
            ..
        } = &mut *self.scratch;
        let mut at = start;
        if end - start > MOST_BYTES_IN_PARTS {
            let first_id = missing.ids.len();
            while at < end {
                let next = bpe.cuts.end_of_piece(&text[..end], at);
                let piece = &text[at..next];
                bpe.merges.encode(piece, heap, &mut missing.ids);
                at = next;
            }
            missing.push_known(first_id);
        }
        while at < end {
            let next = bpe.cuts.end_of_piece(&text[..end], at);
            let piece = &text[at..next];
            // A token that is one only as a whole word is no piece.
            let is_sought = piece.len() > 1 && bpe.whole(piece).is_none();
            if is_sought && piece.len() <= SHORT {
                let word = Word::at(text, at, next);
                let finder = cache.finder();
                finder.prefetch(finder.bucket_of(word));
                missing.push_sought(at, next, word, true);
            } else {
                let first_id = missing.ids.len();
                bpe.merges.encode(piece, heap, &mut missing.ids);
                missing.push_known(first_id);
            }
            at = next;
        }
    }

    /// The ids of pieces that the cache has.
    #[inline(always)]
    fn look_up(&mut self, lane: impl Lane) {
        let Scratch { missing, cache, .. } = &mut *self.scratch;
        let Missing {
            parts, sought, ids, ..
        } = missing;
        let mut num_new = 0;
        for i in 0..sought.len() {
            let Sought {
                part,
                word,
                is_piece,
                ..
            } = sought[i];
            let mut found = [0; ROOM];
            let num_ids = match is_piece {
                true => {
                    let finder = cache.finder();
                    finder.find(lane, word, finder.bucket_of(word), &mut found)
                }
                false => None,
            };
            if let Some(num_ids) = num_ids {
                let first_id = ids.len();
                parts[part] = Part { first_id, num_ids };
                ids.extend_from_slice(&found[..num_ids]);
            } else {
                sought[num_new] = sought[i];
                num_new += 1;
            }
        }
        sought.truncate(num_new);
    }

    /// The ids of all others.
    #[inline(always)]
    fn merge(&mut self) {
        let text = self.text;
        let Missing {
            parts, sought, ids, ..
        } = &mut self.scratch.missing;
        let words = sought.iter().map(|sought| &text[sought.start..sought.end]);
        self.bpe
            .merges
            .encode_all(words, |number, of_word, num_ids| {
                let first_id = ids.len();
                parts[sought[number].part] = Part { first_id, num_ids };
                extend_from_few(ids, of_word, num_ids);
            });
    }

    /// Puts all ids in order, and into the cache what was not there.
    #[inline(always)]
    fn append(&mut self, lane: impl Lane) {
        let (mut staged, mut parts) = (0, 0);
        for i in 0..self.scratch.missing.words.len() {
            let Missed {
                number,
                num_before,
                end_of_parts,
                hash,
                is_new_and_long,
            } = self.scratch.missing.words[i];
            self.ids
                .extend_from_slice(&self.scratch.staged[staged..num_before]);
            staged = num_before;
            let first_id = self.ids.len();
            let missing = &self.scratch.missing;
            for part in &missing.parts[parts..end_of_parts] {
                let from_part = &missing.ids[part.first_id..];
                match from_part.first_chunk() {
                    Some(few) if part.num_ids <= FEW => {
                        extend_from_few(self.ids, few, part.num_ids);
                    }
                    _ => self.ids.extend_from_slice(&from_part[..part.num_ids]),
                }
            }
            parts = end_of_parts;
            if is_new_and_long {
                let (start, end) = self.place(number);
                let word = &self.text[start..end];
                self.scratch
                    .cache
                    .put_long(hash, word, &self.ids[first_id..]);
            }
        }
        self.ids
            .extend_from_slice(&self.scratch.staged[staged..self.num_staged]);
        let Scratch { missing, cache, .. } = &mut *self.scratch;
        for sought in &missing.sought {
            let part = missing.parts[sought.part];
            let of_part = &missing.ids[part.first_id..part.first_id + part.num_ids];
            cache.put_short(lane, sought.word, of_part);
        }
        if missing.ids.capacity() > MOST_IDS_KEPT {
            *missing = Missing::default();
        }
    }
}

/// Appends the first of these.
#[inline(always)]
fn extend_from_few(ids: &mut Vec<u32>, few: &[u32; FEW], num_ids: usize) {
    let num_before = ids.len();
    ids.extend_from_slice(few);
    ids.truncate(num_before + num_ids);
}
