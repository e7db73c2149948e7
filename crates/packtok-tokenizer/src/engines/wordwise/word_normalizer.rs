//! Normalizes one word: ASCII by a table, with characters that stay unchanged, other words by the reference engine.

use serde_json::Value;

use super::inert_chars::InertChars;
use crate::engines::reference::Normalizer;

/// The normalizer of words.
pub(super) struct WordNormalizer {
    normalizer: Normalizer,
    /// The normalized form of each ASCII character; `None` if it may depend on its neighbours.
    letters: [Option<u8>; 128],
    inert: InertChars,
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
                Some(Some(letter)) => normalized.push(char::from(*letter)),
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

/// The normalized form of each ASCII character, if it does not depend on its neighbours.
fn letters(json: &Value, normalizer: &Normalizer) -> [Option<u8>; 128] {
    let mut replaced = String::new();
    collect_replaced(json, &mut replaced);
    let mut letters = [None; 128];
    for letter in '!'..='~' {
        let made = normalizer.normalized(letter.encode_utf8(&mut [0; 4]));
        let mut made = made.iter().flat_map(|made| made.chars());
        if let (Some(made), None) = (made.next(), made.next())
            && ('!'..='~').contains(&made)
            && !replaced.contains([letter, made])
        {
            letters[letter as usize] = Some(made as u8);
        }
    }
    letters
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
