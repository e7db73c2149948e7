//! BPE models of SentencePiece. Repeatedly merges the pair whose piece has the best score, until
//! no pair is a piece. If scores are equal, the first pair is merged.
//!
//! Unlike the merges of a tokenizer.json, a pair has no rank except the rank of its piece, and a
//! character that is not a piece may still be part of one. So pairs are looked up by their text:
//! each symbol stores the trie node that its bytes lead to, and the lookup continues there with
//! the bytes of the next symbol.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::Model;
use super::normalization_rules::first_symbol;
use super::piece::Piece;
use super::spaces::{push_id, with_spaces};
use crate::engines::byte_pairs::Pairs;
use crate::engines::double_array::DoubleArray;
use crate::load::Kind;

/// The pieces of a model and the order of their scores.
pub(super) struct Bpe {
    trie: DoubleArray,
    /// By id: the rank of the piece's score, from the worst score up. Equal scores have equal
    /// ranks.
    ranks: Vec<u32>,
    user_defined: DoubleArray,
    /// All pairs of adjacent bytes inside pieces.
    pub(super) pairs: Pairs,
}

/// A part of a word. An empty symbol was merged into the one before it.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: u32,
    end: u32,
    before: u32,
    after: u32,
    /// The trie node of its bytes.
    place: Option<u32>,
    /// The id of the piece with this text, if the text is a piece.
    id: Option<u32>,
    is_frozen: bool,
}

const NONE: u32 = u32::MAX;
/// Maximum number of symbols that are kept allocated.
const MAX_RETAINED: usize = 1 << 16;

/// A candidate: the rank of its piece, its two symbols, its bytes, the id of the piece, and the trie node.
type Pair = (u32, Reverse<u32>, u32, u32, u32, u32);

/// Scratch memory of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
}

impl Bpe {
    /// Builds the trie and the ranks of a model.
    ///
    /// # Errors
    /// The model has too many pieces.
    pub(super) fn new(model: &Model) -> Result<Self, String> {
        let mut scores: Vec<f32> = model.pieces.iter().map(|piece| piece.score).collect();
        scores.sort_by(f32::total_cmp);
        let is_less = |score: f32| move |other: &f32| other.total_cmp(&score).is_lt();
        let rank = |score: f32| scores.partition_point(is_less(score)) as u32;
        let entries = |is_in: &dyn Fn(&Piece) -> bool| {
            let pieces = (0u32..).zip(&model.pieces);
            let pieces = pieces.filter(|(_, piece)| is_in(piece));
            DoubleArray::of(
                pieces
                    .filter_map(|(id, piece)| Some((with_spaces(&piece.text)?, id)))
                    .collect(),
            )
        };
        let matched = model.pieces.iter().filter(|piece| piece.is_matched());
        let pairs = Pairs::inside(matched.filter_map(|piece| with_spaces(&piece.text)));
        Ok(Self {
            pairs,
            trie: entries(&Piece::is_matched)?,
            user_defined: entries(&|piece| piece.kind == Kind::UserDefined)?,
            ranks: model.pieces.iter().map(|piece| rank(piece.score)).collect(),
        })
    }

    /// Appends the ids of a word.
    pub(super) fn append_ids(
        &self,
        model: &Model,
        word: &[u8],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let Scratch { symbols, pairs } = scratch;
        self.split(word, symbols);
        pairs.clear();
        for right in 1..symbols.len() as u32 {
            self.push_pair(word, symbols, right - 1, right, pairs);
        }
        while let Some((_, Reverse(left), right, len, id, place)) = pairs.pop() {
            let (left_symbol, right_symbol) = (symbols[left as usize], symbols[right as usize]);
            let (left_len, right_len) = (
                left_symbol.end - left_symbol.start,
                right_symbol.end - right_symbol.start,
            );
            // The candidate is stale: one of the two symbols was merged with another.
            if left_len == 0 || right_len == 0 || left_len + right_len != len {
                continue;
            }
            symbols[left as usize] = Symbol {
                end: right_symbol.end,
                after: right_symbol.after,
                place: Some(place),
                id: Some(id),
                ..left_symbol
            };
            symbols[right as usize].end = right_symbol.start;
            if right_symbol.after != NONE {
                symbols[right_symbol.after as usize].before = left;
            }
            self.push_pair(word, symbols, left_symbol.before, left, pairs);
            self.push_pair(word, symbols, left, right_symbol.after, pairs);
        }
        let (mut at, mut after_unknown) = (0, false);
        while let Some(&symbol) = symbols.get(at as usize) {
            let text = &word[symbol.start as usize..symbol.end as usize];
            let id = symbol.id.unwrap_or(model.unk_id);
            push_id(model, id, text, &mut after_unknown, ids);
            at = symbol.after;
        }
        symbols.truncate(MAX_RETAINED);
        symbols.shrink_to(MAX_RETAINED);
        pairs.shrink_to(MAX_RETAINED);
    }

    /// Splits a word into characters and user-defined symbols.
    fn split(&self, word: &[u8], symbols: &mut Vec<Symbol>) {
        symbols.clear();
        let mut at = 0;
        while at < word.len() {
            let (len, is_frozen) = first_symbol(&self.user_defined, &word[at..]);
            let led = self.trie.lead(self.trie.root(), &word[at..at + len]);
            let number = symbols.len() as u32;
            symbols.push(Symbol {
                start: at as u32,
                end: (at + len) as u32,
                before: number.wrapping_sub(1),
                after: number + 1,
                place: led.map(|(place, _)| place),
                id: led.and_then(|(_, id)| id),
                is_frozen,
            });
            at += len;
        }
        if let Some(last) = symbols.last_mut() {
            last.after = NONE;
        }
    }

    #[inline]
    fn push_pair(
        &self,
        word: &[u8],
        symbols: &[Symbol],
        left: u32,
        right: u32,
        pairs: &mut BinaryHeap<Pair>,
    ) {
        let (Some(left_symbol), Some(right_symbol)) =
            (symbols.get(left as usize), symbols.get(right as usize))
        else {
            return;
        };
        if left_symbol.is_frozen || right_symbol.is_frozen {
            return;
        }
        let bytes = &word[right_symbol.start as usize..right_symbol.end as usize];
        let led = left_symbol
            .place
            .and_then(|place| self.trie.lead(place, bytes));
        if let Some((place, Some(id))) = led {
            let rank = self.ranks[id as usize];
            let len = right_symbol.end - left_symbol.start;
            pairs.push((rank, Reverse(left), right, len, id, place));
        }
    }
}
