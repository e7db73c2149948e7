//! Tokens that are found in texts before anything is merged, and stay apart from what is beside them: SentencePiece's
//! user-defined pieces, and added tokens without further conditions. Some models have thousands, many for white space,
//! so they are words of their own, in the same chunks as all others.
//!
//! ```text
//! text               a line\n\n  next            isolated: \n\n and two spaces
//! ends of words            6 7 8     14          of the splitter
//! cut                      6   8 10  14
//! ```

use std::collections::HashSet;

use super::beginnings::Beginnings;
use crate::engines::double_array::DoubleArray;
use crate::engines::word_key::SHORT;
use crate::load::AddedToken;

/// The isolated tokens of a model.
pub(super) struct IsolatedTokens {
    beginnings: Beginnings,
    ids: DoubleArray,
    /// The ids of special tokens, which may be read as text.
    special: HashSet<u32>,
}

/// A token in a text.
#[derive(Clone, Copy)]
struct Match {
    begin: u32,
    end: u32,
    id: u32,
    is_special: bool,
}

impl Match {
    /// Whether a word of the cache can be this token. A longer word would be split into pieces, and a special token has
    /// other ids where it is text.
    fn is_word(self) -> bool {
        (self.end - self.begin) as usize <= SHORT && !self.is_special
    }
}

impl IsolatedTokens {
    /// Tokens with different texts, none of them empty.
    ///
    /// # Errors
    /// There are too many tokens, or one contains a NUL.
    pub(super) fn of(tokens: &[AddedToken]) -> Result<Self, String> {
        let entries = tokens
            .iter()
            .map(|token| (token.content.as_bytes().to_vec(), token.id));
        Ok(Self {
            beginnings: Beginnings::of(tokens.iter().map(|token| token.content.as_bytes())),
            ids: DoubleArray::of(entries.collect())?,
            special: tokens
                .iter()
                .filter(|token| token.is_special)
                .map(|token| token.id)
                .collect(),
        })
    }

    /// The id of a word that is a token and not a special one.
    #[inline]
    pub(super) fn id_of(&self, word: &[u8]) -> Option<u32> {
        let id = self.ids.value_of(word);
        id.filter(|id| !self.special.contains(id))
    }

    /// The first token from `at` on, and the longest there.
    fn find_from(&self, text: &[u8], mut at: usize) -> Option<Match> {
        loop {
            let begin = self.beginnings.find_from(text, at)?;
            if let Some((len, id)) = self.ids.longest(&text[begin..], usize::MAX) {
                return Some(Match {
                    begin: begin as u32,
                    end: (begin + len) as u32,
                    id,
                    is_special: self.special.contains(&id),
                });
            }
            at = begin + 1;
        }
    }
}

/// Cuts the words of a text at its isolated tokens.
pub(super) struct Cuts<'a> {
    tokens: &'a IsolatedTokens,
    text: &'a [u8],
    special_tokens_are_text: bool,
    next: Option<Match>,
    /// The end of the words so far.
    at: u32,
}

/// What [`Cuts::cut`] has found.
pub(super) enum Cut {
    /// All words are cut.
    All,
    /// The words up to here, and the id of the token that follows them.
    Before(u32),
}

impl<'a> Cuts<'a> {
    pub(super) fn new(
        tokens: &'a IsolatedTokens,
        text: &'a [u8],
        special_tokens_are_text: bool,
    ) -> Self {
        let mut cuts = Self {
            tokens,
            text,
            special_tokens_are_text,
            next: None,
            at: 0,
        };
        cuts.next = cuts.next_from(0);
        cuts
    }

    /// The first token from `at` on that is not text.
    fn next_from(&self, at: u32) -> Option<Match> {
        let mut next = self.tokens.find_from(self.text, at as usize)?;
        while next.is_special && self.special_tokens_are_text {
            // The match still counts: no other token is found within its text.
            next = self.tokens.find_from(self.text, next.end as usize)?;
        }
        Some(next)
    }

    /// Writes the bounds of the next words to `cut`, given those that the splitter has found; of these, all up to the
    /// end of the last call are skipped.
    pub(super) fn cut(&mut self, words: &[u32], cut: &mut Vec<u32>) -> Cut {
        cut.clear();
        cut.push(self.at);
        let mut ends = words.iter().copied().peekable();
        let last = words.last().copied().unwrap_or(0);
        loop {
            let begin = self.next.map_or(last, |token| token.begin.min(last));
            while let Some(end) = ends.next_if(|&end| end < begin) {
                push_after(end, cut);
            }
            push_after(begin, cut);
            self.at = self.at.max(begin);
            let Some(token) = self.next.filter(|token| token.begin < last) else {
                return Cut::All;
            };
            self.next = self.next_from(token.end);
            self.at = token.end;
            if !token.is_word() {
                return Cut::Before(token.id);
            }
            cut.push(token.end);
        }
    }
}

/// Adds a bound, if it is after all others.
fn push_after(bound: u32, cut: &mut Vec<u32>) {
    if cut.last().is_none_or(|&last| last < bound) {
        cut.push(bound);
    }
}
