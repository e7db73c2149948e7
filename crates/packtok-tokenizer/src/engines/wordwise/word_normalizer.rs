//! Normalizes one word: ASCII and characters that stay unchanged by tables, other words by the reference engine.

use serde_json::Value;

use super::inert_chars::InertChars;
use crate::engines::reference::Normalizer;

/// The normalizer of words.
pub(super) struct WordNormalizer {
    normalizer: Normalizer,
    letters: [Letter; 128],
    inert: InertChars,
}

/// The normalized form of an ASCII character.
enum Letter {
    One(char),
    /// Such as `Ut` for `T`, in models that mark upper case.
    Several(Box<str>),
    /// It may depend on the characters next to it.
    Unknown,
}

impl WordNormalizer {
    /// The normalizer of a tokenizer.json; `None` if the crate does not know it.
    pub(super) fn read(json: &Value) -> Option<Self> {
        let normalizer = Normalizer::read(json)?;
        Some(Self {
            letters: letters(json, &normalizer),
            inert: InertChars::read(json)?,
            normalizer,
        })
    }

    /// The normalized form of a text; `None` if the crate refuses it.
    pub(super) fn normalized(&self, text: &str) -> Option<String> {
        self.normalizer.normalized(text)
    }

    /// Appends the normalized form of a word. Returns `false`, with nothing appended, if the crate
    /// refuses it.
    pub(super) fn append(&self, word: &str, normalized: &mut String) -> bool {
        if self.append_letters(word, normalized) {
            return true;
        }
        match self.normalizer.normalized(word) {
            Some(whole) => normalized.push_str(&whole),
            None => return false,
        }
        true
    }

    /// Appends the normalized form of a word of characters that do not depend on their neighbours.
    /// Returns `false`, with nothing appended, for any other word.
    pub(super) fn append_letters(&self, word: &str, normalized: &mut String) -> bool {
        let start = normalized.len();
        for char in word.chars() {
            match self.letters.get(char as usize) {
                Some(Letter::One(letter)) => normalized.push(*letter),
                Some(Letter::Several(letters)) => normalized.push_str(letters),
                None if self.inert.has(char) => normalized.push(char),
                _ => {
                    normalized.truncate(start);
                    return false;
                }
            }
        }
        true
    }
}

/// The normalized form of each ASCII character.
fn letters(json: &Value, normalizer: &Normalizer) -> [Letter; 128] {
    let mut replaced = String::new();
    collect_replaced(json, &mut replaced);
    // A line feed after a carriage return belongs to it.
    let stands_alone = |char: char| char.is_ascii() && char != '\r' && char != ' ';
    let is_kept = |char: char| stands_alone(char) && !replaced.contains(char);
    std::array::from_fn(|byte| {
        let char = char::from(byte as u8);
        let normalized = match normalizer.normalized(char.encode_utf8(&mut [0; 4])) {
            Some(normalized) if is_kept(char) && normalized.chars().all(is_kept) => normalized,
            _ => return Letter::Unknown,
        };
        let mut chars = normalized.chars();
        match (chars.next(), chars.next()) {
            (None, _) => Letter::Unknown,
            (Some(only), None) => Letter::One(only),
            _ => Letter::Several(normalized.into()),
        }
    })
}

/// Appends the texts that a normalizer replaces. They may be longer than one character.
fn collect_replaced(normalizer: &Value, replaced: &mut String) {
    if let Some(text) = normalizer["pattern"]["String"].as_str() {
        replaced.push_str(text);
    }
    let steps = normalizer["normalizers"].as_array();
    for step in steps.into_iter().flatten() {
        collect_replaced(step, replaced);
    }
}
