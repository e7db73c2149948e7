//! Encodes texts as sequences of words, which white space separates, whatever the model. Each word is encoded on its first
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
//!   Files without such a pre-tokenizer but with `Metaspace` are covered in another way, see `marked_words`.
//! - Models see one word each.
//! - No added token contains white space, so each is found within a word.
//! - An added token with `lstrip` or `rstrip` removes all white space next to it, also across words. Words are split
//!   at four characters only, so a word can begin or end with other white space, such as U+3000, which a map may turn
//!   into text. If such a word has other ids without that white space, the text falls back.

use serde_json::Value;

use super::coverage::{
    SEPARATORS, check_added_tokens, check_normalizer, check_pre_tokenizer, check_separators,
    collect_steps, normalizer_before_map,
};
use super::find::find_from;
use super::inert_chars::InertChars;
use super::marked_words::MarkedWords;
use super::model::Model;
use super::scratch::{Caches, Scratch};
use super::separate::is_separate;
use crate::cause::Cause;
use crate::engines::reference::Normalizer;
use crate::engines::word_cache::WordEncoder;
use crate::load::AddedToken;

/// Words for the check when a file is loaded.
const TEST_WORDS: [&str; 5] = ["a", "b", "ab", "1", "."];

/// Encodes one word by the reference engine and appends its ids.
pub(crate) type EncodeWord<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Cause> + 'a;

/// The loaded engine. All threads share it.
pub(crate) struct Wordwise(Words);

/// How a text is divided into words.
enum Words {
    /// White space is removed.
    Separate(SeparateWords),
    /// Each word has the white space before it.
    Marked(Box<MarkedWords>),
}

/// The loaded engine of files that remove white space between words.
struct SeparateWords {
    /// The normalizer steps before a SentencePiece map, if the file has a map, and the characters
    /// that are never combined with others.
    before_map: Option<(Normalizer, InertChars)>,
    /// Encodes most new words; without it, the reference engine encodes all.
    model: Option<Model>,
    /// Whether some added token has `lstrip` or `rstrip`.
    removes_white_space: bool,
}

impl Wordwise {
    /// The engine for a tokenizer.json.
    ///
    /// # Errors
    /// The reason why words depend on each other in texts of this tokenizer.
    pub(crate) fn read(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        let words = match MarkedWords::read(json, added_tokens) {
            Some(marked) => Words::Marked(Box::new(marked?)),
            None => Words::Separate(SeparateWords::read(json, added_tokens)?),
        };
        let mark = match &words {
            Words::Separate(_) => None,
            Words::Marked(marked) => Some(marked.mark()),
        };
        check_added_tokens(&json["normalizer"], added_tokens, mark)?;
        Ok(Self(words))
    }

    /// Whether the engine has a model of its own, so that most new words need not use the
    /// reference engine.
    pub(crate) fn has_model(&self) -> bool {
        match &self.0 {
            Words::Separate(separate) => separate.model.is_some(),
            Words::Marked(marked) => marked.has_model(),
        }
    }

    /// Checks, by encoding test words, that texts have the ids of their words.
    ///
    /// # Errors
    /// The words of a text depend on each other.
    pub(crate) fn check(&self, encode_word: &mut EncodeWord<'_>) -> Result<(), String> {
        let mut ids_of = |text: &str| {
            let mut ids = Vec::new();
            let done = encode_word(text, &mut ids).map_err(|error| error.to_string());
            done.map(|()| ids)
        };
        for separator in [" ", "\n", "\t", "\r", "\r\n", "  ", " \n "] {
            for first in TEST_WORDS {
                for second in TEST_WORDS {
                    let text = format!("{separator}{first}{separator}{second}{separator}");
                    let words = self.words_of(&text);
                    if words.iter().any(|word| self.falls_back(word)) {
                        continue;
                    }
                    let mut ids = Vec::new();
                    for word in words {
                        ids.extend(ids_of(word)?);
                    }
                    if ids_of(&text)? != ids {
                        return Err(format!("{separator:?} does not separate words"));
                    }
                }
            }
        }
        Ok(())
    }

    fn words_of<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let (mut words, mut at) = (Vec::new(), 0);
        loop {
            let (start, end) = self.next_word(text.as_bytes(), at);
            if start == end {
                return words;
            }
            words.push(&text[start..end]);
            at = end;
        }
    }

    /// Whether a text with this word falls back, whatever its ids.
    fn falls_back(&self, word: &str) -> bool {
        match &self.0 {
            Words::Separate(_) => false,
            Words::Marked(marked) => !marked.normalize(word, &mut String::new()),
        }
    }

    #[inline(always)]
    fn next_word(&self, text: &[u8], at: usize) -> (usize, usize) {
        match &self.0 {
            Words::Separate(_) => {
                let start = find_from(text, at, |byte| !SEPARATORS.contains(&byte));
                (
                    start,
                    find_from(text, start, |byte| SEPARATORS.contains(&byte)),
                )
            }
            Words::Marked(marked) => marked.next_word(text, at),
        }
    }

    /// Appends the ids of a text. Returns `false`, with nothing appended, if the text falls back
    /// to the reference engine.
    ///
    /// # Errors
    /// The errors of `encode_word`.
    pub(crate) fn encode_into(
        &self,
        text: &str,
        caches: &mut Caches,
        ids: &mut Vec<u32>,
        encode_word: &mut EncodeWord<'_>,
    ) -> Result<bool, Cause> {
        let mut words = WordsOfText {
            wordwise: self,
            scratch: Scratch::new(&mut caches.parts),
            encode_word,
        };
        caches.words.append_ids(text.as_bytes(), &mut words, ids)
    }
}

impl SeparateWords {
    fn read(json: &Value, added_tokens: &[AddedToken]) -> Result<Self, String> {
        let mut steps = Vec::new();
        collect_steps(&json["normalizer"], &mut steps);
        steps.iter().try_for_each(|step| check_normalizer(step))?;
        let before_map = match normalizer_before_map(&steps)? {
            Some(before_map) => {
                let inert = InertChars::read(&json["normalizer"]);
                Some((before_map, inert.ok_or("its normalizer cannot be read")?))
            }
            None => None,
        };
        check_separators(&json["normalizer"])?;
        check_pre_tokenizer(&json["pre_tokenizer"])?;
        Ok(Self {
            before_map,
            model: Model::read(json, added_tokens),
            removes_white_space: added_entries(json)
                .any(|entry| entry["lstrip"] == true || entry["rstrip"] == true),
        })
    }
}

/// The words of a text.
struct WordsOfText<'a, 'e> {
    wordwise: &'a Wordwise,
    scratch: Scratch<'a>,
    encode_word: &'a mut EncodeWord<'e>,
}

impl WordEncoder for WordsOfText<'_, '_> {
    #[inline(always)]
    fn next_word(&self, text: &[u8], at: usize) -> (usize, usize) {
        self.wordwise.next_word(text, at)
    }

    fn encode_word(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        // Separators are ASCII, so words are valid UTF-8.
        let word = std::str::from_utf8(word)?;
        match &self.wordwise.0 {
            Words::Separate(separate) => self.encode_separate(separate, word, ids),
            Words::Marked(marked) => {
                let Scratch { normalized, .. } = &mut self.scratch;
                if !marked.normalize(word, normalized) {
                    return Ok(false);
                }
                if marked.append(word, &mut self.scratch, ids) {
                    return Ok(true);
                }
                if !marked.is_encoded_alone(word, &self.scratch.normalized) {
                    return Ok(false);
                }
                (self.encode_word)(word, ids)?;
                Ok(true)
            }
        }
    }
}

impl WordsOfText<'_, '_> {
    fn encode_separate(
        &mut self,
        separate: &SeparateWords,
        word: &str,
        ids: &mut Vec<u32>,
    ) -> Result<bool, Cause> {
        if let Some((before_map, inert)) = &separate.before_map
            && !word.chars().all(|char| char.is_ascii() || inert.has(char))
            && !before_map
                .normalized(word)
                .is_some_and(|word| is_separate(&word))
        {
            return Ok(false);
        }
        let start = ids.len();
        self.append(separate, word, ids)?;
        if separate.removes_white_space && word.trim().len() < word.len() {
            return self.is_same_without_white_space(separate, word, &ids[start..]);
        }
        Ok(true)
    }

    fn append(
        &mut self,
        separate: &SeparateWords,
        word: &str,
        ids: &mut Vec<u32>,
    ) -> Result<(), Cause> {
        let model = separate.model.as_ref();
        if model.is_some_and(|model| model.append(word, &mut self.scratch, ids)) {
            Ok(())
        } else {
            (self.encode_word)(word, ids)
        }
    }

    /// Whether a word still has these ids after removing the white space at its start, its end or
    /// both.
    fn is_same_without_white_space(
        &mut self,
        separate: &SeparateWords,
        word: &str,
        expected: &[u32],
    ) -> Result<bool, Cause> {
        let mut ids = Vec::new();
        for part in [word.trim_start(), word.trim_end(), word.trim()] {
            ids.clear();
            if !part.is_empty() {
                self.append(separate, part, &mut ids)?;
            }
            if ids != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn added_entries(json: &Value) -> impl Iterator<Item = &Value> {
    json["added_tokens"].as_array().into_iter().flatten()
}
