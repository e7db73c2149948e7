//! The slow path for SentencePiece models, which follows the library step by step. The fast path
//! is compared with the slow path and falls back to it.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use super::model::{MAX_SUM, Model};
use super::piece::{SPACE_MARK, num_bytes_of_char};
use crate::engines::excess::Excess;
use crate::load::{Kind, ModelType};

/// A loaded model. Covers every file.
pub(crate) struct SlowPath {
    model: Model,
    /// The pieces that texts are matched with, by their bytes.
    matched: HashMap<Vec<u8>, u32>,
    longest_piece: usize,
}

impl SlowPath {
    /// Reads the parsed tokenizer.json of a model.
    ///
    /// # Errors
    /// The fault of the model.
    pub(crate) fn load(json: &serde_json::Value) -> Result<Self, String> {
        let model = Model::read(json)?;
        let matched = (0u32..).zip(&model.pieces);
        let matched = matched.filter(|(_, piece)| piece.is_matched());
        let matched: HashMap<_, _> = matched
            .map(|(id, piece)| (piece.text.clone().into_bytes(), id))
            .collect();
        Ok(Self {
            longest_piece: matched.keys().map(Vec::len).max().unwrap_or(0),
            model,
            matched,
        })
    }

    /// The text of `ids`.
    ///
    /// # Errors
    /// An id is not the id of a piece.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String, String> {
        self.model.decode(ids)
    }

    /// Appends the ids of a text.
    ///
    /// # Errors
    /// The normalizer would exceed the limit on the length of its result.
    pub(crate) fn encode_into(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Excess> {
        self.model.rules.check_growth(text)?;
        let normalized = self.model.rules.normalized(text.as_bytes());
        let pieces = match self.model.model_type {
            ModelType::Unigram => self.unigram(&normalized),
            ModelType::Bpe => self.bpe(&normalized),
            ModelType::Word => self.by_ids(words(&normalized)),
            ModelType::Char => {
                let characters = characters(&normalized, &self.model).into_iter();
                self.by_ids(characters.map(|(character, _)| character).collect())
            }
        };
        let mut after_unknown = false;
        for (piece, id) in pieces {
            self.model.push_id(id, piece, &mut after_unknown, ids);
        }
        Ok(())
    }

    /// The id of a piece, unless it is marked unused.
    fn id_of(&self, piece: &[u8]) -> Option<u32> {
        let id = *self.matched.get(piece)?;
        (self.model.pieces[id as usize].kind != Kind::Unused).then_some(id)
    }

    fn by_ids<'a>(&self, pieces: Vec<&'a [u8]>) -> Vec<(&'a [u8], u32)> {
        let unk_id = self.model.unk_id;
        let with_id = |piece| (piece, self.id_of(piece).unwrap_or(unk_id));
        pieces.into_iter().map(with_id).collect()
    }

    /// The segmentation with the greatest sum of scores, computed from left to right in single
    /// precision.
    fn unigram<'a>(&self, text: &'a [u8]) -> Vec<(&'a [u8], u32)> {
        #[derive(Clone, Copy)]
        struct End {
            score: f32,
            /// Start and id of the last piece, if a piece ends here.
            last: Option<(usize, u32)>,
        }
        let nothing = End {
            score: 0.0,
            last: None,
        };
        let mut ends = vec![nothing; text.len() + 1];
        let longest_step = self.longest_piece.max(char::MAX.len_utf8());
        let mut start = 0;
        while start < text.len() {
            let mut before = ends[start].score;
            if before.abs() > MAX_SUM {
                // No piece reaches further. Ends that were not reached yet have no score, so the
                // subtraction does not affect them.
                for end in ends[start..].iter_mut().take(longest_step + 1) {
                    end.score -= before;
                }
                before = 0.0;
            }
            let char_len = num_bytes_of_char(&text[start..]);
            let mut has_char = false;
            let longest = self.longest_piece.min(text.len() - start);
            for len in 1..=longest {
                let Some(&id) = self.matched.get(&text[start..start + len]) else {
                    continue;
                };
                if self.model.pieces[id as usize].kind == Kind::Unused {
                    continue;
                }
                has_char |= len == char_len;
                let end = &mut ends[start + len];
                let score = self.model.sum_score(id) + before;
                if end.last.is_none() || score > end.score {
                    *end = End {
                        score,
                        last: Some((start, id)),
                    };
                }
            }
            if !has_char {
                let score = self.model.unk_score + before;
                let end = &mut ends[start + char_len];
                if end.last.is_none() || score > end.score {
                    *end = End {
                        score,
                        last: Some((start, self.model.unk_id)),
                    };
                }
            }
            start += char_len;
        }
        let mut pieces = Vec::new();
        let mut end = text.len();
        while let Some((start, id)) = ends[end].last {
            pieces.push((&text[start..end], id));
            end = start;
        }
        pieces.reverse();
        pieces
    }

    /// Repeatedly merges the pair whose piece has the best score, until no pair is a piece. If
    /// scores are equal, the first pair is merged.
    fn bpe<'a>(&self, text: &'a [u8]) -> Vec<(&'a [u8], u32)> {
        let mut symbols = Vec::new();
        let mut at = 0;
        for (character, is_frozen) in characters(text, &self.model) {
            let end = at + character.len();
            symbols.push(Symbol {
                start: at,
                end,
                is_frozen,
                before: symbols.len().checked_sub(1),
                after: Some(symbols.len() + 1),
            });
            at = end;
        }
        let Some(last) = symbols.last_mut() else {
            return Vec::new();
        };
        last.after = None;
        let mut state = BpeState {
            slow_path: self,
            text,
            symbols,
            pairs: BinaryHeap::new(),
            parts_of_unused: HashMap::new(),
        };
        for right in 1..state.symbols.len() {
            state.push_pair(Some(right - 1), Some(right));
        }
        while let Some((_, Reverse(left), right, len)) = state.pairs.pop() {
            state.merge(left, right, len);
        }
        let mut pieces = Vec::new();
        let mut next = Some(0);
        while let Some(at) = next {
            let Symbol {
                start, end, after, ..
            } = state.symbols[at];
            state.push_pieces((start, end), 0, &mut pieces);
            next = after;
        }
        pieces
    }
}

/// A part of a text that may be merged with its neighbours. An empty symbol was merged.
struct Symbol {
    start: usize,
    end: usize,
    is_frozen: bool,
    before: Option<usize>,
    after: Option<usize>,
}

/// Maximum depth to which unused pieces are split.
const MAX_DEPTH: usize = 100;

struct BpeState<'a, 'b> {
    slow_path: &'b SlowPath,
    text: &'a [u8],
    symbols: Vec<Symbol>,
    /// Score, positions of the two symbols, and bytes of the pair. The best score is on top; if
    /// scores are equal, the first pair is.
    pairs: BinaryHeap<(Rank, Reverse<usize>, usize, usize)>,
    /// For the text of each unused piece, the two parts that it was last merged from.
    parts_of_unused: HashMap<&'a [u8], [(usize, usize); 2]>,
}

/// A score in the total order that the library compares by: -0.0 is below 0.0.
struct Rank(f32);

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

impl<'a> BpeState<'a, '_> {
    fn push_pair(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else {
            return;
        };
        let [left_symbol, right_symbol] = [left, right].map(|at| &self.symbols[at]);
        if left_symbol.is_frozen || right_symbol.is_frozen {
            return;
        }
        let text = &self.text[left_symbol.start..right_symbol.end];
        let Some(&id) = self.slow_path.matched.get(text) else {
            return;
        };
        let piece = &self.slow_path.model.pieces[id as usize];
        if piece.kind == Kind::Unused {
            let parts = [
                (left_symbol.start, left_symbol.end),
                (right_symbol.start, right_symbol.end),
            ];
            self.parts_of_unused.insert(text, parts);
        }
        let pair = (Rank(piece.score), Reverse(left), right, text.len());
        self.pairs.push(pair);
    }

    fn merge(&mut self, left: usize, right: usize, len: usize) {
        let len_of = |symbol: &Symbol| symbol.end - symbol.start;
        let (left_symbol, right_symbol) = (&self.symbols[left], &self.symbols[right]);
        let (left_len, right_len) = (len_of(left_symbol), len_of(right_symbol));
        if left_len == 0 || right_len == 0 || left_len + right_len != len {
            return;
        }
        let (end, after) = (right_symbol.end, right_symbol.after);
        self.symbols[left].end = end;
        self.symbols[left].after = after;
        if let Some(after) = after {
            self.symbols[after].before = Some(left);
        }
        self.symbols[right].end = self.symbols[right].start;
        self.push_pair(self.symbols[left].before, Some(left));
        self.push_pair(Some(left), after);
    }

    /// Appends a piece. An unused piece is split again, up to `MAX_DEPTH` times.
    fn push_pieces(
        &self,
        (start, end): (usize, usize),
        depth: usize,
        pieces: &mut Vec<(&'a [u8], u32)>,
    ) {
        let text = &self.text[start..end];
        let matched_id = self.slow_path.matched.get(text).copied();
        let may_be_used = |_: &u32| depth > MAX_DEPTH || self.slow_path.id_of(text).is_some();
        if let Some(id) = matched_id.filter(may_be_used) {
            pieces.push((text, id));
            return;
        }
        match self.parts_of_unused.get(text) {
            Some(&parts) => {
                for part in parts {
                    self.push_pieces(part, depth + 1, pieces);
                }
            }
            None => pieces.push((text, self.slow_path.model.unk_id)),
        }
    }
}

/// The parts of a normalized text that begin with white space, even if the model writes white
/// space at the ends of words.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let len = num_bytes_of_char(&text[at..]);
        let is_space = &text[at..at + len] == SPACE_MARK.as_bytes();
        if is_space && at > start {
            words.push(&text[start..at]);
            start = at;
        }
        at += len;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

/// The characters and user-defined symbols of a normalized text, and whether each is a
/// user-defined symbol.
fn characters<'a>(text: &'a [u8], model: &Model) -> Vec<(&'a [u8], bool)> {
    let mut characters = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (len, is_user_defined) = model.rules.first_symbol(&text[at..]);
        characters.push((&text[at..at + len], is_user_defined));
        at += len;
    }
    characters
}
