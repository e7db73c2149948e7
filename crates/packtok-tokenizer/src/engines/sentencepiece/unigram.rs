//! Unigram models of SentencePiece: the pieces whose scores have the greatest sum.
//!
//! Sums are kept in single precision from the start of a text, as in the library. Their rounding depends on everything
//! before. But if no piece crosses a position, every segmentation contains it: the ids up to it are written, and only the
//! sum is carried on.
//!
//! ```text
//! text    _ t h e _ c a t            at the second _, no piece reaches further:
//!         └─┴─┴─┘ └─┴─┴─┘            the ids of "_the" are written, and the memory is reused
//! ```
//!
//! A word is what lies between two positions that no piece ever crosses. Its ids are cached if they are *certain*: at each
//! end of a piece, the best sum exceeds all others by more than rounding can change ([`MAX_ROUNDING`]), whatever the sum
//! before the word. The sum after such words is computed from their ids, in the same order of additions, when a word
//! that is not certain needs it. Words near a sum of [`MAX_SUM`], which is subtracted, are never taken from the cache.

use super::model::{MAX_SUM, Model};
use super::piece::num_bytes_of_char;
use super::spaces::{push_id, with_spaces};
use crate::cause::Cause;
use crate::engines::byte_pairs::Pairs;
use crate::engines::double_array::DoubleArray;
use crate::engines::word_cache::{CachedEncoder, WordEncoder};
use crate::load::Kind;

/// The pieces of a model and their scores.
pub(super) struct Unigram {
    trie: DoubleArray,
    scores: Vec<f32>,
    /// Bytes of the longest piece, or of the longest character.
    max_bytes: usize,
    /// All pairs of adjacent bytes inside pieces.
    pairs: Pairs,
    /// The greatest absolute score, of unknown characters too.
    max_abs_score: f64,
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

/// As [`End`], but from the start of a word, and in double precision, whose rounding is too small to matter.
#[derive(Debug, Clone, Copy)]
struct ExactEnd {
    score: f64,
    /// By how much `score` exceeds that of all other segmentations up to here.
    margin: f64,
    id: u32,
    len: u32,
}

impl ExactEnd {
    #[inline(always)]
    fn improve(&mut self, score: f64, id: u32, len: usize) {
        let margin = score - self.score;
        if self.len == 0 || margin > 0.0 {
            let margin = if self.len == 0 { f64::INFINITY } else { margin };
            let len = len as u32;
            *self = Self {
                score,
                margin,
                id,
                len,
            };
        } else {
            self.margin = self.margin.min(-margin);
        }
    }
}

const NO_EXACT_END: ExactEnd = ExactEnd {
    score: 0.0,
    margin: f64::INFINITY,
    id: 0,
    len: 0,
};

/// The greatest error of one addition in single precision, if the result is below 131,072: half of 2^-7, the distance
/// between such numbers.
const MAX_ROUNDING: f64 = 1.0 / 256.0;

/// The longest word that may be certain, and cached, in bytes. Longer ones hardly occur again.
const MAX_CERTAIN_BYTES: usize = 64;

/// The most bytes between two computations of the sum, so that rounding changes it by less than [`SUM_SLACK`].
const MAX_SEGMENT_BYTES: usize = 1 << 14;

/// More than `MAX_SEGMENT_BYTES * MAX_ROUNDING`.
const SUM_SLACK: f64 = 100.0;

/// Maximum number of positions that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// Scratch memory of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    ends: Vec<End>,
    exact_ends: Vec<ExactEnd>,
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
        let all_scores = entries.iter().map(|&(_, id)| model.sum_score(id));
        let abs_scores = all_scores.chain([model.unk_score]).map(f32::abs);
        Ok(Self {
            pairs: Pairs::inside(entries.iter().map(|(piece, _)| piece)),
            max_abs_score: f64::from(abs_scores.fold(0.0, f32::max)),
            max_bytes: longest.unwrap_or(0).max(char::MAX.len_utf8()),
            trie: DoubleArray::of(entries)?,
            scores: (0..model.pieces.len() as u32)
                .map(|id| model.sum_score(id))
                .collect(),
        })
    }

    /// Appends the ids of a normalized text; the words are cached in `encoder`.
    ///
    /// # Errors
    /// As [`CachedEncoder::append_ids`].
    pub(super) fn append_ids(
        &self,
        model: &Model,
        text: &[u8],
        scratch: &mut Scratch,
        encoder: &mut CachedEncoder,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        let mut words = Words {
            unigram: self,
            model,
            scratch,
            sum: 0.0,
            summed: ids.len(),
            unknown_until: None,
            is_certain: false,
        };
        // Rules of a hostile file may write bytes that are not UTF-8, of which `parts` could split a character.
        if !self.max_abs_score.is_finite() || std::str::from_utf8(text).is_err() {
            words.append_in_context(text, ids);
            return Ok(());
        }
        let mut at = 0;
        while at < text.len() {
            words.sum_up(ids);
            // A piece has at least one byte, so the sum stays below the limit for this many bytes.
            let room = f64::from(MAX_SUM) - f64::from(words.sum.abs()) - SUM_SLACK;
            let most = (room / self.max_abs_score).clamp(0.0, MAX_SEGMENT_BYTES as f64) as usize;
            let furthest = text.len().min(at + most);
            let mut stops = (at + 1..=furthest).rev();
            match stops.find(|&stop| stop == text.len() || self.parts(text, stop)) {
                Some(stop) => {
                    encoder.append_ids(&text[at..stop], &mut words, ids)?;
                    at = stop;
                }
                None => {
                    let (_, end) = words.next_word(text, at);
                    words.append_in_context(&text[at..end], ids);
                    at = end;
                }
            }
        }
        Ok(())
    }

    /// Whether no piece ever crosses this position, which is inside of the text.
    #[inline(always)]
    fn parts(&self, text: &[u8], at: usize) -> bool {
        !self.pairs.has(text[at - 1], text[at]) && !(0x80..0xc0).contains(&text[at])
    }

    /// Appends the ids of a text; `sum` is the score before it. Returns the score at its end.
    fn append_from(
        &self,
        model: &Model,
        text: &[u8],
        sum: f32,
        scratch: &mut Scratch,
        after_unknown: &mut bool,
        ids: &mut Vec<u32>,
    ) -> f32 {
        let Scratch { ends, chosen, .. } = scratch;
        // `ends` is indexed from `first`, the last position that every segmentation contains.
        let (mut first, mut start, mut furthest) = (0, 0, 0);
        ends.clear();
        ends.push(End {
            score: sum,
            ..NOTHING
        });
        loop {
            if start == furthest {
                self.write(model, &text[first..start], ends, chosen, after_unknown, ids);
                // Ends after this position have not been reached yet.
                let score = ends[start - first].score;
                // No piece reaches beyond the text.
                if start == text.len() {
                    ends.clear();
                    ends.shrink_to(MAX_RETAINED);
                    chosen.shrink_to(MAX_RETAINED);
                    return score;
                }
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
    }

    /// Appends the ids of a word if they are certain; else returns `false` with nothing appended.
    fn append_certain(
        &self,
        model: &Model,
        word: &[u8],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> bool {
        if word.len() > MAX_CERTAIN_BYTES {
            return false;
        }
        let Scratch {
            exact_ends: ends,
            chosen,
            ..
        } = scratch;
        ends.clear();
        ends.resize(word.len() + 1, NO_EXACT_END);
        let (mut start, mut num_chars) = (0, 0);
        while start < word.len() {
            let before = ends[start].score;
            let ahead = &mut ends[start..];
            let char_len = num_bytes_of_char(&word[start..]);
            let mut has_char = false;
            self.each_piece(&word[start..], |id, len| {
                has_char |= len == char_len;
                ahead[len].improve(f64::from(self.scores[id as usize]) + before, id, len);
            });
            if !has_char {
                ahead[char_len].improve(
                    f64::from(model.unk_score) + before,
                    model.unk_id,
                    char_len,
                );
            }
            start += char_len;
            num_chars += 1;
        }
        // Each of two sums has at most one addition for each character.
        let least = 2.0 * f64::from(num_chars) * MAX_ROUNDING;
        let mut at = word.len();
        chosen.clear();
        while at > 0 {
            let ExactEnd {
                margin, id, len, ..
            } = ends[at];
            // The number of ids of unknown characters depends on the piece before.
            if margin <= least || id == model.unk_id {
                return false;
            }
            chosen.push((id, len));
            at -= len as usize;
        }
        ids.extend(chosen.iter().rev().map(|&(id, _)| id));
        true
    }

    /// Calls `use_piece` with the id and the length of each piece that is a prefix of `text`.
    #[inline(always)]
    fn each_piece(&self, text: &[u8], mut use_piece: impl FnMut(u32, usize)) {
        let mut place = self.trie.root();
        for (len, &byte) in (1..).zip(text) {
            let Some((next, id)) = self.trie.step(place, byte) else {
                break;
            };
            place = next;
            if let Some(id) = id {
                use_piece(id, len);
            }
        }
    }

    /// Extends the best segmentation, whose score is `before`, by each piece that is a prefix of
    /// `text`. `ends` are the positions from the start of `text` on. Returns the length in bytes
    /// of the first character and of the longest piece.
    #[inline(always)]
    fn extend(&self, model: &Model, text: &[u8], before: f32, ends: &mut [End]) -> (usize, usize) {
        let char_len = num_bytes_of_char(text);
        let (mut has_char, mut longest) = (false, 0);
        self.each_piece(text, |id, len| {
            has_char |= len == char_len;
            longest = len;
            ends[len].improve(self.scores[id as usize] + before, id, len);
        });
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

/// The words of a text, and the sum of the scores.
struct Words<'a> {
    unigram: &'a Unigram,
    model: &'a Model,
    scratch: &'a mut Scratch,
    /// The sum after the first `summed` ids.
    sum: f32,
    summed: usize,
    /// The number of ids after which the last piece was an unknown one.
    unknown_until: Option<usize>,
    /// Whether the word that was encoded last is certain.
    is_certain: bool,
}

impl Words<'_> {
    /// Adds the scores of the ids since the last call. They are those of certain words, so none is unknown.
    fn sum_up(&mut self, ids: &[u32]) {
        for &id in &ids[self.summed..] {
            self.sum += self.unigram.scores[id as usize];
        }
        self.summed = ids.len();
    }

    /// Appends the ids of a word that is not certain, or of any other text.
    fn append_in_context(&mut self, text: &[u8], ids: &mut Vec<u32>) {
        self.sum_up(ids);
        let mut after_unknown = self.unknown_until == Some(ids.len());
        let Self { unigram, model, .. } = *self;
        self.sum =
            unigram.append_from(model, text, self.sum, self.scratch, &mut after_unknown, ids);
        self.summed = ids.len();
        self.unknown_until = after_unknown.then_some(ids.len());
    }
}

impl WordEncoder for Words<'_> {
    #[inline(always)]
    fn next_word(&self, text: &[u8], at: usize) -> (usize, usize) {
        if at == text.len() {
            return (at, at);
        }
        let mut end = at + 1;
        while end < text.len() && !self.unigram.parts(text, end) {
            end += 1;
        }
        (at, end)
    }

    fn encode_word(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        let Self { unigram, model, .. } = *self;
        self.is_certain = unigram.append_certain(model, word, self.scratch, ids);
        if !self.is_certain {
            self.append_in_context(word, ids);
        }
        Ok(true)
    }

    #[inline(always)]
    fn depends_on_context(&self) -> bool {
        !self.is_certain
    }
}
