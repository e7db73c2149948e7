//! Texts that a tokenizer takes for their words between white space, whatever its model: each word is encoded when it
//! is first met, and encoder. WordPiece in BERT's node and Unigram are encoded here (`wordpiece`, `unigram`), all
//! else by the engine that knows all of the file.
//!
//! ```text
//! text   The  cat sat\non the cat        words   The  cat  sat  on  the  cat
//! ids    of each, from the cache, the model or the other engine, one after the other
//! ```
//!
//! That is exact where white space parts all that the file's components do, which is read from them:
//!
//! - Normalizers change characters one by one, or within runs that a blank ends: no character composes with a blank
//!   or is ordered across one. A map made by SentencePiece is asked for user-perceived characters, which a blank is
//!   part of when a mark follows it: a text that has such a place, or has it when the steps before the map have changed
//!   it, is for the other engine. What such a map makes of white space is tried when the file is loaded.
//! - The first pre-tokenizer takes all white space out of the text, and the others see one word each.
//! - Models see one word each.
//! - No added token has white space in its text, so that each is found within a word.
//! - An added token with `lstrip` or `rstrip` removes all white space beside it, also across words. Words are cut at four
//!   characters only, so a word can begin or end with other white space, such as U+3000, which a map may turn into text.
//!   If such a word has other ids without that white space, the text falls back to the reference engine.

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::coverage::{
    SEPARATORS, check_normalizer, check_pre_tokenizer, check_separators, collect_steps,
    normalizer_before_map,
};
use super::model::Model;
use super::scratch::Scratch;
use crate::engines::reference::Normalizer;
use crate::engines::word_cache::{CachedEncoder, WordEncoder};
use crate::error::Cause;
use crate::load::AddedToken;

/// Encodes one word: appends its ids.
pub(crate) type EncodeWord<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Cause> + 'a;

/// The loaded engine, shared by all threads.
pub(crate) struct Wordwise {
    /// What changes texts before a step that asks for their user-perceived characters, if there is such a step.
    before_map: Option<Normalizer>,
    /// The model, where words that are met for the first time need no other engine.
    model: Option<Model>,
    /// Whether some added token has `lstrip` or `rstrip`.
    removes_white_space: bool,
}

impl Wordwise {
    /// The engine for a tokenizer.json.
    ///
    /// # Errors
    /// Why white space does not part its words.
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
                "the added token {:?} may be found across words",
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

    /// Whether words that are met for the first time need no other engine, most of them.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Tries what words are cut at.
    ///
    /// # Errors
    /// Something of it does not part words.
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
                        return Err(format!("{separator:?} does not part its words"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends the ids of a text; false, and nothing appended, if it is one for the other engine.
    ///
    /// # Errors
    /// Those of `encode_word`.
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
        // A text is cut at characters of one byte, so that its words are texts.
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
        match model.is_some_and(|model| model.append(word, &mut self.scratch, ids)) {
            true => Ok(()),
            false => (self.encode_word)(word, ids),
        }
    }

    /// Whether a word has these ids also if the white space at its start, its end or both is removed.
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

/// Whether the blanks beside a word are user-perceived characters of their own.
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
    fn a_mark_after_a_blank_is_not_apart() {
        assert!(is_separate("a\u{301}"));
        assert!(!is_separate("\u{301}a"));
        // An Arabic sign that goes with what follows it.
        assert!(!is_separate("a\u{600}"));
        assert!(is_separate("語"));
        assert!(!is_separate("\u{200d}x"));
    }
}
