//! Counts of tokens by kind, which show what a tokenizer needs its tokens for.

use std::collections::HashSet;

use crate::error::Result;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::Vocabulary;

/// The kind of a token, by the text that it adds. White space around other characters does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Has letters: a word or a part of a word, in any script.
    Word,
    /// Has digits or other numeric characters, and no letters.
    Number,
    /// Has white space only.
    WhiteSpace,
    /// Has other characters only: punctuation, symbols, emoji.
    Symbol,
    /// A part of a character, such as a token of byte fallback, or characters of which one is incomplete.
    Bytes,
    /// A special token of the tokenizer.
    Special,
    /// Adds no text, such as an id that the vocabulary does not have.
    Empty,
}

impl TokenKind {
    /// Every kind once.
    pub const ALL: [Self; 7] = [
        Self::Word,
        Self::Number,
        Self::WhiteSpace,
        Self::Symbol,
        Self::Bytes,
        Self::Special,
        Self::Empty,
    ];

    /// The name of the kind in Python and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Number => "number",
            Self::WhiteSpace => "white_space",
            Self::Symbol => "symbol",
            Self::Bytes => "bytes",
            Self::Special => "special",
            Self::Empty => "empty",
        }
    }

    /// The kind of a token that is not special and adds these bytes.
    fn of(bytes: &[u8]) -> Self {
        let Ok(text) = str::from_utf8(bytes) else {
            return Self::Bytes;
        };
        if text.is_empty() {
            Self::Empty
        } else if text.contains(char::is_alphabetic) {
            Self::Word
        } else if text.contains(char::is_numeric) {
            Self::Number
        } else if text.trim().is_empty() {
            Self::WhiteSpace
        } else {
            Self::Symbol
        }
    }
}

impl Tokenizer {
    /// The number of `ids` of each kind, in the order of [`TokenKind::ALL`].
    ///
    /// Each distinct id is classified once. `vocabulary` is the vocabulary of this tokenizer.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn count_kinds(
        &self,
        ids: &[u32],
        vocabulary: &Vocabulary,
    ) -> Result<[(TokenKind, u64); TokenKind::ALL.len()]> {
        let special: HashSet<u32> = self.special_tokens().map(|token| token.id).collect();
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let mut counts = TokenKind::ALL.map(|kind| (kind, 0));
        let mut add = |kind: TokenKind, count: usize| counts[kind as usize].1 += count as u64;
        // Decoders remove the space at the start of a text, which would hide a token of white space. The
        // first id is therefore decoded twice.
        let (mut distinct, mut numbers) = (Vec::new(), Vec::new());
        for equal in sorted.chunk_by(|a, b| a == b) {
            if special.contains(&equal[0]) {
                add(TokenKind::Special, equal.len());
                continue;
            }
            if distinct.is_empty() {
                distinct.push(equal[0]);
            }
            distinct.push(equal[0]);
            numbers.push(equal.len());
        }
        let pieces = self.pieces(&distinct, vocabulary)?;
        for (piece, number) in pieces.iter().skip(1).zip(numbers) {
            add(TokenKind::of(piece), number);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<(&'static str, u64)> {
        let counts = tokenizer.count_kinds(ids, &Vocabulary::of(tokenizer));
        let counts = counts.unwrap().into_iter();
        (counts.map(|(kind, number)| (kind.name(), number)))
            .filter(|&(_, number)| number > 0)
            .collect()
    }

    #[test]
    fn counts_are_in_the_order_of_all_kinds() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let counts = (tokenizer.count_kinds(&[], &Vocabulary::of(&tokenizer))).unwrap();
        assert_eq!(counts, TokenKind::ALL.map(|kind| (kind, 0)));
    }

    #[test]
    fn tokens_of_a_byte_level_vocabulary_are_classified_by_their_text() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let id = |name: &str| tokenizer.token_to_id(name).unwrap();
        // The letters "Ġ" and "Ċ" stand for a space and the end of a line; "Ã" and "×" for the bytes c3
        // and d7, which are no characters by themselves.
        let ids = [
            "Ġthe", "Ġthe", "'s", "Ġ2024", "1", "Ċ", "ĊĊ", "Ġ!", "Ã", "Ġ×",
        ]
        .map(id);
        let eod = id("<|endoftext|>");
        assert_eq!(
            counts(&tokenizer, &[&ids[..], &[eod, 99_999]].concat()),
            [
                ("word", 3),
                ("number", 2),
                ("white_space", 2),
                ("symbol", 1),
                ("bytes", 2),
                ("special", 1),
                ("empty", 1)
            ]
        );
    }

    #[test]
    fn tokens_of_a_sentencepiece_vocabulary_are_classified_as_within_a_text() {
        let vocab = json!([
            ["\u{2581}", -1.0],
            ["<unk>", 0.0],
            ["\u{2581}a", -1.0],
            ["<0xC3>", -9.0],
            ["<0x0A>", -9.0],
            ["\u{2581}7", -1.0],
            ["\u{3002}", -1.0]
        ]);
        let file = json!({
            "model": {"type": "Unigram", "unk_id": 1, "vocab": vocab, "byte_fallback": true},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ]},
        });
        let tokenizer = Tokenizer::from_json("t.json", file.to_string()).unwrap();
        assert_eq!(
            counts(&tokenizer, &[2, 0, 3, 4, 5, 6, 2]),
            [
                ("word", 2),
                ("number", 1),
                ("white_space", 2),
                ("symbol", 1),
                ("bytes", 1)
            ]
        );
    }
}
