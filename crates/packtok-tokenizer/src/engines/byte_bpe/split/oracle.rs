//! Finds the end of each word, one after the other. Tests compare the SIMD blocks with these
//! results.
//!
//! A pattern is tried at a position, takes its first alternative that matches, and continues at
//! the end of the match. Each function below performs such a step for one pattern.

use super::classes::{
    CJK, ClassTable, Classes, LETTER, LOWER, NEWLINE, NUMBER, SYMBOL, UPPER, WHITESPACE,
};
use super::contractions::{contraction, contraction_in_any_case};
use super::patterns::Pattern;
use super::pieces::ByteKind;
use super::splitter::Splitter;

/// `[^\s\p{L}\p{N}]` are the characters without any of these classes.
const VISIBLE: Classes = LETTER | NUMBER | WHITESPACE;

impl Splitter {
    /// The end of the word that starts at `at`, which is before the end of `text`.
    pub(super) fn end_of_word(&self, text: &str, at: usize) -> usize {
        match self.pattern {
            Pattern::Gpt2 => self.gpt2(text, at),
            Pattern::Gpt2BetweenNumbers => self.gpt2_between_numbers(text, at),
            Pattern::Cl100k { digits } => self.cl100k(text, at, digits),
            Pattern::Cl100kWithMarks => self.cl100k(text, at, 1),
            Pattern::O200k { .. } => self.o200k(text, at),
            Pattern::Deepseek => self.deepseek(text, at),
            Pattern::Steps(_) => unreachable!("tests compare them with the package's library"),
            Pattern::KimiK2 => unreachable!("tests compare it with its automaton"),
            Pattern::Pieces { each_space } => self.piece(text.as_bytes(), at, each_space),
        }
    }

    /// Up to a position that no token crosses, among the positions that `pieces.rs` considers.
    fn piece(&self, text: &[u8], at: usize, each_space: bool) -> usize {
        let ends = |&end: &usize| {
            let (left, right) = (text[end - 1], text[end]);
            let kinds = [ByteKind::of(left), ByteKind::of(right)];
            let is_looked_at = match kinds {
                [ByteKind::Space, ByteKind::Letter | ByteKind::Other] => false,
                [left, right] => {
                    left != right || matches!(left, ByteKind::Number | ByteKind::Newline)
                }
            };
            each_space && right == b' ' || is_looked_at && !self.table.pairs.has(left, right)
        };
        (at + 1..text.len()).find(ends).unwrap_or(text.len())
    }

    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    fn gpt2(&self, text: &str, at: usize) -> usize {
        let bytes = text.as_bytes();
        if bytes[at] == b'\''
            && let Some(len) = contraction(bytes, at, |byte| byte)
        {
            return at + len;
        }
        let start = at + usize::from(bytes[at] == b' ');
        let (classes, len) = self.classes.at(text, start);
        if len == 0 || classes & WHITESPACE != 0 {
            return self.whitespace(text, at, 0);
        }
        // A character belongs to at most one of these three classes, and all characters of a run
        // share a class.
        self.classes
            .run(text, start + len, VISIBLE, classes & VISIBLE)
    }

    /// Each number, and the text between numbers as a text of its own.
    fn gpt2_between_numbers(&self, text: &str, at: usize) -> usize {
        let (classes, len) = self.classes.at(text, at);
        if classes & NUMBER != 0 {
            return at + len;
        }
        let after = self.classes.at(text, at + len).0;
        if classes & WHITESPACE != 0 && after & (WHITESPACE | NUMBER) != 0 {
            self.whitespace(text, at, NUMBER)
        } else {
            self.gpt2(text, at)
        }
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    fn cl100k(&self, text: &str, at: usize, digits: usize) -> usize {
        let bytes = text.as_bytes();
        if let Some(len) = contraction_in_any_case(bytes, at) {
            return at + len;
        }
        let (classes, len) = self.classes.at(text, at);
        if classes & LETTER != 0 {
            return self.letters(text, at + len);
        }
        if classes & NUMBER != 0 {
            return self.numbers(text, at + len, digits - 1);
        }
        if classes & NEWLINE == 0 {
            let (next, next_len) = self.classes.at(text, at + len);
            if next & LETTER != 0 {
                return self.letters(text, at + len + next_len);
            }
        }
        if let Some(end) = self.visible(text, at) {
            return newlines(bytes, end, |byte| matches!(byte, b'\r' | b'\n'));
        }
        self.lines_or_whitespace(text, at, 0)
    }

    /// As cl100k, but words depend on the case of letters and include contractions:
    /// `P?U*L+C?|P?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+` with P =
    /// `[^\r\n\p{L}\p{N}]`, U = [`UPPER`] and L = [`LOWER`], which share some letters and all
    /// marks, and C = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`. The pattern of Tekken has no C, and each
    /// number is a word.
    fn o200k(&self, text: &str, at: usize) -> usize {
        let bytes = text.as_bytes();
        let (classes, len) = self.classes.at(text, at);
        let after = (classes & (LETTER | NUMBER | NEWLINE) == 0).then_some(at + len);
        let word = after
            .and_then(|after| self.ends_in_lower(text, after))
            .or_else(|| self.ends_in_lower(text, at))
            .or_else(|| self.upper(text, after?))
            .or_else(|| self.upper(text, at));
        let is_tekken = matches!(self.pattern, Pattern::O200k { is_tekken: true });
        if let Some(end) = word {
            let contraction = (!is_tekken)
                .then(|| contraction_in_any_case(bytes, end))
                .flatten();
            return end + contraction.unwrap_or(0);
        }
        if classes & NUMBER != 0 {
            return self.numbers(text, at + len, if is_tekken { 0 } else { 2 });
        }
        if let Some(end) = self.visible(text, at) {
            return newlines(bytes, end, |byte| matches!(byte, b'\r' | b'\n' | b'/'));
        }
        self.lines_or_whitespace(text, at, 0)
    }

    /// Up to three numbers; runs of CJK; and in the text between these, with P = `[\p{P}\p{S}]`, A =
    /// ``[!-/:-@\[-`{-~][A-Za-z]+`` and M = `[\p{L}\p{M}]`: `A|[^\r\n\p{L}P]?M+| ?P+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`.
    /// Characters that match nothing are a word up to the next match.
    fn deepseek(&self, text: &str, at: usize) -> usize {
        let bytes = text.as_bytes();
        let (classes, len) = self.classes.at(text, at);
        if classes & NUMBER != 0 {
            return self.numbers(text, at + len, 2);
        }
        if classes & CJK != 0 {
            return self.classes.run(text, at + len, CJK, CJK);
        }
        if bytes[at].is_ascii_punctuation() {
            let letters = bytes[at + 1..].iter();
            let num_letters = letters
                .take_while(|byte| byte.is_ascii_alphabetic())
                .count();
            if num_letters > 0 {
                return at + 1 + num_letters;
            }
        }
        let after = self.classes.at(text, at + len).0;
        if classes & LETTER != 0 || classes & (NEWLINE | SYMBOL) == 0 && after & LETTER != 0 {
            return self.letters(text, at + len);
        }
        let start = at + usize::from(bytes[at] == b' ');
        let end = self.classes.run(text, start, SYMBOL, SYMBOL);
        if end > start {
            return newlines(bytes, end, |byte| matches!(byte, b'\r' | b'\n'));
        }
        if classes & WHITESPACE != 0 {
            return self.lines_or_whitespace(text, at, NUMBER | CJK);
        }
        let mut at = at + len;
        loop {
            let (classes, len) = self.classes.at(text, at);
            // A letter includes the character before it.
            let is_taken = self.classes.at(text, at + len).0 & LETTER != 0;
            if len == 0 || classes != 0 || is_taken {
                return at;
            }
            at += len;
        }
    }

    /// `U*L+`, with backtracking of `U*` for letters that are both.
    fn ends_in_lower(&self, text: &str, start: usize) -> Option<usize> {
        let (mut at, mut after_both) = (start, None);
        let (classes, len) = loop {
            let (classes, len) = self.classes.at(text, at);
            if classes & UPPER == 0 {
                break (classes, len);
            }
            at += len;
            if classes & LOWER != 0 {
                after_both = Some(at);
            }
        };
        if classes & LOWER != 0 {
            Some(self.classes.run(text, at + len, LOWER, LOWER))
        } else {
            after_both
        }
    }

    /// Matches `U+L*`; called if `U*L+` did not match.
    fn upper(&self, text: &str, start: usize) -> Option<usize> {
        let end = self.classes.run(text, start, UPPER, UPPER);
        (end > start).then_some(end)
    }

    fn letters(&self, text: &str, at: usize) -> usize {
        self.classes.run(text, at, LETTER, LETTER)
    }

    /// At most `most` more numbers.
    fn numbers(&self, text: &str, mut at: usize, most: usize) -> usize {
        for _ in 0..most {
            let (classes, len) = self.classes.at(text, at);
            if classes & NUMBER == 0 {
                break;
            }
            at += len;
        }
        at
    }

    /// ` ?[^\s\p{L}\p{N}]+`
    fn visible(&self, text: &str, at: usize) -> Option<usize> {
        let start = at + usize::from(text.as_bytes()[at] == b' ');
        let end = self.classes.run(text, start, VISIBLE, 0);
        (end > start).then_some(end)
    }

    /// `\s+(?!\S)|\s+`: the run of white space without its last character, which belongs to the
    /// next word. A run of a single character is a word. A text also ends before characters of the
    /// classes `ends`.
    fn whitespace(&self, text: &str, at: usize, ends: Classes) -> usize {
        let (mut last, mut end) = (at, at);
        let is_end = loop {
            let (classes, len) = self.classes.at(text, end);
            if len == 0 || classes & WHITESPACE == 0 {
                break len == 0 || classes & ends != 0;
            }
            last = end;
            end += len;
        };
        if is_end || last == at { end } else { last }
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`
    fn lines_or_whitespace(&self, text: &str, at: usize, ends: Classes) -> usize {
        let end = self.classes.run(text, at, WHITESPACE, WHITESPACE);
        let is_newline = |&byte: &u8| matches!(byte, b'\r' | b'\n');
        match text.as_bytes()[at..end].iter().rposition(is_newline) {
            Some(last) => at + last + 1,
            None => self.whitespace(text, at, ends),
        }
    }
}

/// The end of the newlines, or slashes, after symbols.
fn newlines(bytes: &[u8], at: usize, is_one: impl Fn(&u8) -> bool) -> usize {
    at + bytes[at..].iter().take_while(|byte| is_one(byte)).count()
}

impl ClassTable {
    /// The classes of the character at `at`, and its length; both are 0 at the end.
    fn at(&self, text: &str, at: usize) -> (Classes, usize) {
        let char = text[at..].chars().next();
        char.map_or((0, 0), |char| (self.of(char as usize), char.len_utf8()))
    }

    /// The end of the run of characters from `at` on whose classes, masked by `mask`, equal
    /// `wanted`.
    fn run(&self, text: &str, at: usize, mask: Classes, wanted: Classes) -> usize {
        let is_other = |&(_, char): &(usize, char)| self.of(char as usize) & mask != wanted;
        let end = text[at..].char_indices().find(is_other);
        end.map_or(text.len(), |(offset, _)| at + offset)
    }
}
