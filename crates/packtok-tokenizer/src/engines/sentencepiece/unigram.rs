//! The pieces whose scores make the greatest sum, no further back than they can matter.
//!
//! Unigram are kept in single precision from the beginning of a text, as the library does: how they are rounded
//! depends on all that is before, so that no word can be encoder. But where no piece reaches across a place,
//! all ways lead through it, and what was chosen before it stands: only the sum goes on.
//!
//! ```text
//! text    _ t h e _ c a t            at the second _ nothing reaches further, so
//!         └─┴─┴─┘ └─┴─┴─┘            the ids of "_the" are written, and the memory is used again
//! ```

use super::model::{MAX_SUM, Model};
use super::piece::num_bytes_of_char;
use super::spaces::{push_id, with_spaces};
use crate::engines::double_array::DoubleArray;
use crate::load::Kind;

/// Pieces and their scores.
pub(super) struct Unigram {
    trie: DoubleArray,
    scores: Vec<f32>,
    /// Bytes of the longest piece, or character.
    max_bytes: usize,
}

/// Where the best way to a place comes from.
#[derive(Debug, Clone, Copy)]
struct End {
    score: f32,
    id: u32,
    /// Bytes of the last piece; 0 if no way leads here yet.
    len: u32,
}

const NOTHING: End = End {
    score: 0.0,
    id: 0,
    len: 0,
};

/// Places that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// What one thread needs.
#[derive(Default)]
pub(super) struct Scratch {
    ends: Vec<End>,
    chosen: Vec<(u32, u32)>,
}

impl Unigram {
    /// # Errors
    /// Pieces are too many.
    pub(super) fn new(model: &Model) -> Result<Self, String> {
        let chosen = (0u32..).zip(&model.pieces);
        let chosen = chosen.filter(|(_, piece)| piece.kind.is_matched());
        let chosen = chosen.filter(|(_, piece)| piece.kind != Kind::Unused);
        let entries = chosen.filter_map(|(id, piece)| Some((with_spaces(&piece.text)?, id)));
        let entries: Vec<(Vec<u8>, u32)> = entries.collect();
        let longest = entries.iter().map(|(piece, _)| piece.len()).max();
        Ok(Self {
            max_bytes: longest.unwrap_or(0).max(char::MAX.len_utf8()),
            trie: DoubleArray::of(entries)?,
            scores: (0..model.pieces.len() as u32)
                .map(|id| model.sum_score(id))
                .collect(),
        })
    }

    /// Appends the ids of a normalized text.
    pub(super) fn append_ids(
        &self,
        model: &Model,
        text: &[u8],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let Scratch { ends, chosen } = scratch;
        let mut after_unknown = false;
        // Places are counted from `first`, the last one that all ways lead through.
        let (mut first, mut start, mut furthest) = (0, 0, 0);
        ends.clear();
        ends.push(NOTHING);
        loop {
            if start == furthest {
                self.write(
                    model,
                    &text[first..start],
                    ends,
                    chosen,
                    &mut after_unknown,
                    ids,
                );
                // Nothing reaches further than the text.
                if start == text.len() {
                    break;
                }
                // Nothing is known of what lies after.
                let score = ends[start - first].score;
                ends[..=start - first].fill(NOTHING);
                ends[0].score = score;
                first = start;
            }
            let mut before = ends[start - first].score;
            if before.abs() > MAX_SUM {
                // What no way leads to yet is not asked for its score.
                for end in &mut ends[start - first..] {
                    end.score -= before;
                }
                before = 0.0;
            }
            if ends.len() <= start - first + self.max_bytes {
                ends.resize(start - first + 2 * self.max_bytes, NOTHING);
            }
            let ahead = &mut ends[start - first..];
            let char_len = num_bytes_of_char(&text[start..]);
            let mut has_char = false;
            let mut place = self.trie.root();
            for (at, &byte) in (start + 1..).zip(&text[start..]) {
                let Some((next, id)) = self.trie.step(place, byte) else {
                    break;
                };
                place = next;
                let Some(id) = id else {
                    continue;
                };
                has_char |= at - start == char_len;
                furthest = furthest.max(at);
                let end = &mut ahead[at - start];
                let score = self.scores[id as usize] + before;
                if end.len == 0 || score > end.score {
                    let len = (at - start) as u32;
                    *end = End { score, id, len };
                }
            }
            let at = start + char_len;
            if !has_char {
                furthest = furthest.max(at);
                let score = model.unk_score + before;
                let end = &mut ahead[char_len];
                if end.len == 0 || score > end.score {
                    *end = End {
                        score,
                        id: model.unk_id,
                        len: char_len as u32,
                    };
                }
            }
            start = at;
        }
        ends.clear();
        ends.shrink_to(MAX_RETAINED);
        chosen.shrink_to(MAX_RETAINED);
    }

    /// Appends the ids of the best way to the end of `text`, which `ends` are the places of.
    fn write(
        &self,
        model: &Model,
        text: &[u8],
        ends: &[End],
        chosen: &mut Vec<(u32, u32)>,
        after_unknown: &mut bool,
        ids: &mut Vec<u32>,
    ) {
        let mut at = text.len();
        chosen.clear();
        while at > 0 {
            let End { id, len, .. } = ends[at];
            chosen.push((id, len));
            at -= len as usize;
        }
        for &(id, len) in chosen.iter().rev() {
            let end = at + len as usize;
            push_id(model, id, &text[at..end], after_unknown, ids);
            at = end;
        }
    }
}
