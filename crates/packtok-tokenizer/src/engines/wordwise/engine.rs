//! Texts that a tokenizer takes for their words between white space, whatever its model: each word is encoded when it
//! is first met, and remembered. WordPiece in BERT's way and Unigram are encoded here (`wordpiece`, `unigram`), all
//! else by the engine that knows all of the file.
//!
//! ```text
//! text   The  cat sat\non the cat        words   The  cat  sat  on  the  cat
//! ids    of each, from the cache, the model or the other engine, one behind the other
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

use aho_corasick::AhoCorasick;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::unigram::{Unigram, Way};
use super::wordpiece::WordPiece;
use crate::engines::reference::Normalizer;
use crate::engines::word_cache::{Remembered, Words};
use crate::error::Cause;
use crate::load::AddedToken;
use crate::load::type_of;

/// Encodes one word: appends its ids.
pub(crate) type EncodeWord<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Cause> + 'a;

/// What words are cut at.
const SEPARATORS: [u8; 4] = *b" \n\t\r";

/// The loaded engine, shared by all threads.
pub(crate) struct Wordwise {
    /// What changes texts before a step that asks for their user-perceived characters, if there is such a step.
    before_map: Option<Normalizer>,
    /// The model, where words that are met for the first time need no other engine.
    model: Option<Model>,
    /// Whether some added token has `lstrip` or `rstrip`.
    removes_white_space: bool,
}

/// A model that words are encoded by.
enum Model {
    WordPiece(WordPiece),
    Unigram(Box<Unigram>),
}

/// Room for what is made of a word.
#[derive(Default)]
pub(super) struct Room {
    pub(super) normalized: String,
    pub(super) sequence: String,
    pub(super) ways: Vec<Way>,
    pub(super) path: Vec<usize>,
}

/// Texts that added tokens may be found by: some are looked for in a text as it is, some in what a normalizer made of
/// it.
pub(super) struct AddedTexts(AhoCorasick);

impl AddedTexts {
    /// None if there is no telling.
    pub(super) fn of(
        added_tokens: &[AddedToken],
        normalized: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let mut texts = Vec::new();
        for token in added_tokens
            .iter()
            .filter(|token| !token.content.is_empty())
        {
            let normalized = normalized(&token.content);
            texts.push(normalized.filter(|text| !text.is_empty())?);
            texts.push(token.content.clone());
        }
        AhoCorasick::new(texts).ok().map(Self)
    }

    /// Whether one may be in a word.
    pub(super) fn may_be_in(&self, word: &str, normalized: &str) -> bool {
        self.0.is_match(word) || self.0.is_match(normalized)
    }
}

impl Model {
    /// That of a tokenizer.json, if nothing in it is done in other ways.
    fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        let word_piece = WordPiece::read(json, added_tokens).map(Self::WordPiece);
        let unigram = || Unigram::read(json, added_tokens);
        word_piece.or_else(|| Some(Self::Unigram(Box::new(unigram()?))))
    }

    /// Appends the ids of a word; false, and nothing appended, if it is one for the engine that knows all of the file.
    fn append(&self, word: &str, room: &mut Room, ids: &mut Vec<u32>) -> bool {
        match self {
            Self::WordPiece(model) => model.append(word, room, ids),
            Self::Unigram(model) => model.append(word, room, ids),
        }
    }
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
        remembered: &mut Remembered,
        ids: &mut Vec<u32>,
        encode_word: &mut EncodeWord<'_>,
    ) -> Result<bool, Cause> {
        let mut words = Parted {
            wordwise: self,
            room: Room::default(),
            encode_word,
        };
        remembered.append_ids(text.as_bytes(), &mut words, ids)
    }
}

/// Words between white space.
struct Parted<'a, 'e> {
    wordwise: &'a Wordwise,
    room: Room,
    encode_word: &'a mut EncodeWord<'e>,
}

impl Words for Parted<'_, '_> {
    #[inline(always)]
    fn next(&self, text: &[u8], mut at: usize) -> (usize, usize) {
        while at < text.len() && is_separator(text[at]) {
            at += 1;
        }
        let start = at;
        while at < text.len() && !is_separator(text[at]) {
            at += 1;
        }
        (start, at)
    }

    fn encode(&mut self, word: &[u8], ids: &mut Vec<u32>) -> Result<bool, Cause> {
        // A text is cut at characters of one byte, so that its words are texts.
        let word = std::str::from_utf8(word)?;
        if let Some(before_map) = &self.wordwise.before_map
            && !word.is_ascii()
            && !before_map
                .normalized(word)
                .is_some_and(|word| is_apart(&word))
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

impl Parted<'_, '_> {
    fn append(&mut self, word: &str, ids: &mut Vec<u32>) -> Result<(), Cause> {
        let model = self.wordwise.model.as_ref();
        match model.is_some_and(|model| model.append(word, &mut self.room, ids)) {
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
fn is_apart(word: &str) -> bool {
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

/// The steps of a normalizer, in order.
fn collect_steps<'a>(normalizer: &'a Value, steps: &mut Vec<&'a Value>) {
    match normalizer["normalizers"].as_array() {
        _ if normalizer.is_null() => {}
        Some(parts) if type_of(normalizer) == "Sequence" => {
            for part in parts {
                collect_steps(part, steps);
            }
        }
        _ => steps.push(normalizer),
    }
}

/// The steps before a SentencePiece map, if there is one, which leave ASCII what it is.
///
/// # Errors
/// There are several maps, or something before one does not leave it so.
fn normalizer_before_map(steps: &[&Value]) -> Result<Option<Normalizer>, String> {
    let is_map = |step: &&Value| type_of(step) == "Precompiled";
    let Some(map) = steps.iter().position(is_map) else {
        return Ok(None);
    };
    let (before, behind) = (&steps[..map], &steps[map + 1..]);
    if behind.iter().any(is_map) {
        return Err("it has more than one normalizer Precompiled".to_owned());
    }
    // White space beyond what words are cut at would be stripped off each word, which a map may make text of.
    if before.iter().any(|step| type_of(step) == "Strip") {
        return Err("its normalizer Precompiled comes after a Strip".to_owned());
    }
    // No other step makes anything else of ASCII.
    let replaces_by_others = |step: &&Value| {
        let content = step["content"].as_str();
        type_of(step) == "Replace" && !content.is_some_and(str::is_ascii)
    };
    if before.iter().any(replaces_by_others) {
        return Err(
            "its normalizer Precompiled comes behind a Replace by other than ASCII".to_owned(),
        );
    }
    let before = match before {
        [] => Value::Null,
        before => json!({"type": "Sequence", "normalizers": before}),
    };
    let read = Normalizer::read(&before);
    read.map(Some)
        .ok_or_else(|| "its normalizer cannot be read".to_owned())
}

/// # Errors
/// The normalizer makes something else than white space of what words are cut at, as a map made by SentencePiece can.
fn check_separators(normalizer: &Value) -> Result<(), String> {
    let normalizer = Normalizer::read(normalizer).ok_or("its normalizer cannot be read")?;
    for separator in SEPARATORS.map(char::from) {
        let is_white_space = |text: String| {
            let between = text
                .strip_prefix('a')
                .and_then(|text| text.strip_suffix('a'));
            between.is_some_and(|text| !text.is_empty() && text.chars().all(char::is_whitespace))
        };
        let normalized = normalizer.normalized(&format!("a{separator}a"));
        if !normalized.is_some_and(is_white_space) {
            return Err(format!("its normalizer makes text of {separator:?}"));
        }
    }
    Ok(())
}

/// # Errors
/// It is not known to leave alone what white space parts.
fn check_normalizer(step: &Value) -> Result<(), String> {
    let has_no_white_space = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let is_local = match type_of(step) {
        "BertNormalizer" | "Lowercase" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Nmt"
        | "Precompiled" | "Strip" | "StripAccents" => true,
        "Replace" => {
            let (string, regex) = (&step["pattern"]["String"], &step["pattern"]["Regex"]);
            string.as_str().is_some_and(has_no_white_space)
                || regex == " {2,}" && step["content"] == " "
        }
        _ => false,
    };
    match is_local {
        true => Ok(()),
        false => Err(format!(
            "its normalizer {} may change more than one word",
            type_of(step)
        )),
    }
}

/// # Errors
/// It is not known to take out white space, and to see one word at a time from then on.
fn check_pre_tokenizer(pre_tokenizer: &Value) -> Result<(), String> {
    match type_of(pre_tokenizer) {
        "BertPreTokenizer" | "Whitespace" | "WhitespaceSplit" => Ok(()),
        "Sequence" => {
            let steps = pre_tokenizer["pretokenizers"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            let (first, others) = steps
                .split_first()
                .ok_or("its pre-tokenizer has no steps")?;
            check_pre_tokenizer(first)?;
            others.iter().try_for_each(check_later_step)
        }
        other => Err(format!(
            "its pre-tokenizer {other} does not take out white space"
        )),
    }
}

/// # Errors
/// It is not known to see one word at a time.
fn check_later_step(step: &Value) -> Result<(), String> {
    match type_of(step) {
        "BertPreTokenizer" | "ByteLevel" | "Digits" | "Punctuation" | "Split" | "Whitespace"
        | "WhitespaceSplit" => Ok(()),
        // Old files say nothing, and mean always.
        "Metaspace" if step["prepend_scheme"] != "first" => Ok(()),
        other => Err(format!(
            "its pre-tokenizer {other} asks where in the text a word is"
        )),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use yada::builder::DoubleArrayBuilder;

    use super::*;

    #[test]
    fn a_mark_behind_a_blank_is_not_apart() {
        assert!(is_apart("a\u{301}"));
        assert!(!is_apart("\u{301}a"));
        // An Arabic sign that goes with what follows it.
        assert!(!is_apart("a\u{600}"));
        assert!(is_apart("語"));
        assert!(!is_apart("\u{200d}x"));
    }

    #[test]
    fn a_map_must_leave_white_space_white_space() {
        let map_of_blank = |text: &str| {
            let trie = DoubleArrayBuilder::build(&[(" ", 0)]).unwrap();
            let trie_bytes = u32::try_from(trie.len()).unwrap().to_le_bytes();
            let map = [&trie_bytes[..], &trie, text.as_bytes(), b"\0"].concat();
            json!({"type": "Precompiled", "precompiled_charsmap": BASE64.encode(map)})
        };
        assert_eq!(check_separators(&Value::Null), Ok(()));
        assert_eq!(check_separators(&map_of_blank("\u{3000}")), Ok(()));
        for text in ["b", "", " b"] {
            let reason = "its normalizer makes text of ' '".to_owned();
            assert_eq!(check_separators(&map_of_blank(text)), Err(reason));
        }
    }
}
