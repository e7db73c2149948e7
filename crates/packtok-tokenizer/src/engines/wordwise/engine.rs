//! Encodes texts as sequences of words between white space, whatever the model. Each word is encoded on its first
//! occurrence and then cached: WordPiece and Unigram in common configurations by this engine (`wordpiece`, `unigram`),
//! everything else by the reference engine.
//!
//! ```text
//! text   The  cat sat\non the cat        words   The  cat  sat  on  the  cat
//! ids    of each: from the cache, the model or the reference engine
//! ```
//!
//! This is exact if white space separates the effects of all components of the file (`coverage`):
//!
//! - Normalizers change characters one by one, or within runs that a space ends: no character composes with a space,
//!   and no mark is reordered across one. A SentencePiece map looks up grapheme clusters, and a space is part of a
//!   cluster if a mark follows it. A text with such a position, before or after the steps that precede the map, falls
//!   back. What the map does with white space is tested when the file is loaded.
//! - The first pre-tokenizer removes all white space, and the following ones see one word each.
//! - Models see one word each.
//! - No added token contains white space, so each is found within a word.
//! - An added token with `lstrip` or `rstrip` removes all white space next to it, also across words. Words are split
//!   at four characters only, so a word can begin or end with other white space, such as U+3000, which a map may turn
//!   into text. If such a word has other ids without that white space, the text falls back.

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::coverage::{
    SEPARATORS, check_normalizer, check_pre_tokenizer, check_separators, collect_steps,
    normalizer_before_map,
};
use super::model::Model;
use super::scratch::Scratch;
use crate::cause::Cause;
use crate::engines::reference::Normalizer;
use crate::engines::word_cache::{CachedEncoder, WordEncoder};
use crate::load::AddedToken;

/// Encodes one word by the reference engine and appends its ids.
pub(crate) type EncodeWord<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Cause> + 'a;

/// The loaded engine. All threads share it.
pub(crate) struct Wordwise {
    /// The normalizer steps before a SentencePiece map, if the file has a map.
    before_map: Option<Normalizer>,
    /// Encodes most new words; without it, the reference engine encodes all.
    model: Option<Model>,
    /// Whether some added token has `lstrip` or `rstrip`.
    removes_white_space: bool,
}

impl Wordwise {
    /// The engine for a tokenizer.json.
    ///
    /// # Errors
    /// The reason why white space does not separate the words of this tokenizer.
    pub(crate) fn read(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        let mut steps = Vec::new();
        collect_steps(&json["normalizer"], &mut steps);
        steps.iter().try_for_each(|step| check_normalizer(step))?;
        let before_map = normalizer_before_map(&steps)?;
        check_separators(&json["normalizer"])?;
        check_pre_tokenizer(&json["pre_tokenizer"])?;
        let may_hold_white_space = |token: &&AddedToken| {
            token.content.contains(char::is_whitespace) || !token.content.is_ascii()
        };
        match added_tokens.iter().find(may_hold_white_space) {
            Some(token) => Err(format!(
                "the added token {:?} may match across words",
                token.content
            )),
            None => Ok(Self {
                before_map,
                model: Model::read(json, added_tokens),
                removes_white_space: added_entries(json)
                    .any(|entry| entry["lstrip"] == true || entry["rstrip"] == true),
            }),
        }
    }

    /// Whether the engine has a model of its own, so that most new words need not use the
    /// reference engine.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Checks, by encoding test words, that separators separate words.
    ///
    /// # Errors
    /// A separator does not separate words.
    pub(crate) fn check(&self, encode_word: &mut EncodeWord<'_>) -> Result<(), String> {
        let mut ids_of = |text: &str| {
            let mut ids = Vec::new();
            let done = encode_word(text, &mut ids).map_err(|error| error.to_string());
            done.map(|()| ids)
        };
        let mut words = Vec::new();
        for word in ["a", "b", "ab", "1", "."] {
            words.push((word, ids_of(word)?));
        }
        for separator in [" ", "\n", "\t", "\r", "\r\n", "  ", " \n "] {
            for (first, of_first) in &words {
                for (second, of_second) in &words {
                    let text = format!("{separator}{first}{separator}{second}{separator}");
                    if ids_of(&text)? != [&of_first[..], of_second].concat() {
                        return Err(format!("{separator:?} does not separate words"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends the ids of a text. Returns `false`, with nothing appended, if the text falls back
    /// to the reference engine.
    ///
    /// # Errors
    /// The errors of `encode_word`.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        encoder: &mut CachedEncoder,
        ids: &mut Vec<u32>,
        encode_word: &mut EncodeWord<'_>,
    ) -> Result<bool, Cause> {
        let mut words = SeparatedWords {
            wordwise: self,
            scratch: Scratch::default(),
            encode_word,
        };
        encoder.append_ids(text.as_bytes(), &mut words, ids)
    }
}

/// Words between white space.
struct SeparatedWords<'a, 'e> {
    wordwise: &'a Wordwise,
    scratch: Scratch,
    encode_word: &'a mut EncodeWord<'e>,
}

impl WordEncoder for SeparatedWords<'_, '_> {
    #[inline(always)]
    fn next_word(&self, text: &[u8], mut at: usize) -> (usize, usize) {
        while at < text.len() && is_separator(text[at]) {
            at += 1;
        }
        let start = at;
        while at < text.len() && !is_separator(text[at]) {
            at += 1;
        }
        (start, at)
    }

    fn encode_word(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        // Separators are ASCII, so words are valid UTF-8.
        let word = std::str::from_utf8(word)?;
        if let Some(before_map) = &self.wordwise.before_map
            && !word.is_ascii()
            && !before_map
                .normalized(word)
                .is_some_and(|word| is_separate(&word))
        {
            return Ok(false);
        }
        let start = ids.len();
        self.append(word, ids)?;
        if self.wordwise.removes_white_space && word.trim().len() < word.len() {
            return self.is_same_without_white_space(word, &ids[start..]);
        }
        Ok(true)
    }
}

impl SeparatedWords<'_, '_> {
    fn append(&mut self, word: &str, ids: &mut Vec<u32>) -> Result<(), Cause> {
        let model = self.wordwise.model.as_ref();
        if model.is_some_and(|model| model.append(word, &mut self.scratch, ids)) {
            Ok(())
        } else {
            (self.encode_word)(word, ids)
        }
    }

    /// Whether a word still has these ids after removing the white space at its start, its end or
    /// both.
    fn is_same_without_white_space(&mut self, word: &str, expected: &[u32]) -> Result<bool, Cause> {
        let mut ids = Vec::new();
        for part in [word.trim_start(), word.trim_end(), word.trim()] {
            ids.clear();
            if !part.is_empty() {
                self.append(part, &mut ids)?;
            }
            if ids != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether spaces around a word are grapheme clusters of their own.
fn is_separate(word: &str) -> bool {
    let between = format!(" {word} ");
    let mut graphemes = between.graphemes(true);
    graphemes.next() == Some(" ") && graphemes.next_back() == Some(" ")
}

fn added_entries(json: &Value) -> impl Iterator<Item = &Value> {
    json["added_tokens"].as_array().into_iter().flatten()
}

#[inline(always)]
fn is_separator(byte: u8) -> bool {
    SEPARATORS.contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_after_a_space_is_not_separate() {
        assert!(is_separate("a\u{301}"));
        assert!(!is_separate("\u{301}a"));
        // An Arabic sign that forms a cluster with the following character.
        assert!(!is_separate("a\u{600}"));
        assert!(is_separate("語"));
        assert!(!is_separate("\u{200d}x"));
    }
}
