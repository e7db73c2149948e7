//! Unigram models of SentencePiece: the pieces whose scores have the greatest sum.
//!
//! Sums are kept in single precision from the start of a text, as in the library. Their rounding depends on everything
//! before, so words cannot be cached. But if no piece crosses a position, every segmentation contains it: the ids up
//! to it are written, and only the sum is carried on.
//!
//! ```text
//! text    _ t h e _ c a t            at the second _, no piece reaches further:
//!         └─┴─┴─┘ └─┴─┴─┘            the ids of "_the" are written, and the memory is reused
//! ```

use super::model::{MAX_SUM, Model};
use super::piece::num_bytes_of_char;
use super::spaces::{push_id, with_spaces};
use crate::engines::double_array::DoubleArray;
use crate::load::Kind;

/// The pieces of a model and their scores.
pub(super) struct Unigram {
    trie: DoubleArray,
    scores: Vec<f32>,
    /// Bytes of the longest piece, or of the longest character.
    max_bytes: usize,
}

/// The end of the best segmentation up to a position.
#[derive(Debug, Clone, Copy)]
struct End {
    score: f32,
    id: u32,
    /// Bytes of the last piece; 0 if no segmentation ends here yet.
    len: u32,
}

impl End {
    /// Replaces this end if the new one has a higher score.
    #[inline(always)]
    fn improve(&mut self, score: f32, id: u32, len: usize) {
        if self.len == 0 || score > self.score {
            let len = len as u32;
            *self = Self { score, id, len };
        }
    }
}

const NOTHING: End = End {
    score: 0.0,
    id: 0,
    len: 0,
};

/// Maximum number of positions that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// Scratch memory of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    ends: Vec<End>,
    chosen: Vec<(u32, u32)>,
}

impl Unigram {
    /// Builds the trie of a model.
    ///
    /// # Errors
    /// The model has too many pieces.
    pub(super) fn new(model: &Model) -> Result<Self, String> {
        let chosen = (0u32..).zip(&model.pieces);
        let chosen = chosen.filter(|(_, piece)| piece.is_matched());
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
        // `ends` is indexed from `first`, the last position that every segmentation contains.
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
                // No piece reaches beyond the text.
                if start == text.len() {
                    break;
                }
                // Ends after this position have not been reached yet.
                let score = ends[start - first].score;
                ends[..=start - first].fill(NOTHING);
                ends[0].score = score;
                first = start;
            }
            let mut before = ends[start - first].score;
            if before.abs() > MAX_SUM {
                // Ends that were not reached yet have no score, so the subtraction does not affect
                // them.
                for end in &mut ends[start - first..] {
                    end.score -= before;
                }
                before = 0.0;
            }
            if ends.len() <= start - first + self.max_bytes {
                ends.resize(start - first + 2 * self.max_bytes, NOTHING);
            }
            let ahead = &mut ends[start - first..];
            let (char_len, longest) = self.extend(model, &text[start..], before, ahead);
            furthest = furthest.max(start + longest);
            start += char_len;
        }
        ends.clear();
        ends.shrink_to(MAX_RETAINED);
        chosen.shrink_to(MAX_RETAINED);
    }

    /// Extends the best segmentation, whose score is `before`, by each piece that is a prefix of
    /// `text`. `ends` are the positions from the start of `text` on. Returns the length in bytes
    /// of the first character and of the longest piece.
    #[inline(always)]
    fn extend(&self, model: &Model, text: &[u8], before: f32, ends: &mut [End]) -> (usize, usize) {
        let char_len = num_bytes_of_char(text);
        let (mut has_char, mut longest) = (false, 0);
        let mut place = self.trie.root();
        for (len, &byte) in (1..).zip(text) {
            let Some((next, id)) = self.trie.step(place, byte) else {
                break;
            };
            place = next;
            let Some(id) = id else {
                continue;
            };
            has_char |= len == char_len;
            longest = len;
            ends[len].improve(self.scores[id as usize] + before, id, len);
        }
        if !has_char {
            longest = longest.max(char_len);
            ends[char_len].improve(model.unk_score + before, model.unk_id, char_len);
        }
        (char_len, longest)
    }

    /// Appends the ids of the best segmentation of `text`; `ends` has its positions.
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
