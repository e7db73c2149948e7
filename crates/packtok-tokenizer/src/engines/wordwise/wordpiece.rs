//! WordPiece as in BERT, on words between white space.
//!
//! ```text
//! word        Naïve-looking    as it is between white space
//! normalized  naive-looking    characters removed, decomposed, lowercased
//! parts       naive - looking  punctuation separately
//! tokens      naive - look ##ing: the longest token, repeatedly; unknown if the part has no segmentation
//! ```
//!
//! A word does not depend on its surroundings, see `engine`. Properties of characters come from the crates that the
//! Python package uses, in the same versions.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

use super::added_texts::AddedTexts;
use super::scratch::Scratch;
use crate::engines::double_array::DoubleArray;
use crate::load::AddedToken;
use crate::load::{model_type, type_of};

/// The loaded model and the steps before it.
pub(super) struct WordPiece {
    normalizer: Normalizer,
    /// All tokens with their ids.
    tokens: DoubleArray,
    /// The trie node after the prefix of tokens inside words.
    inside: Option<u32>,
    unknown: u32,
    max_chars: usize,
    added: AddedTexts,
}

/// The settings of the normalizer. The default changes nothing.
#[derive(Default, Deserialize)]
struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

/// The model in the file, with the package's defaults.
#[derive(Deserialize)]
struct Model {
    #[serde(default = "Model::unk_token")]
    unk_token: String,
    #[serde(default = "Model::continuing_subword_prefix")]
    continuing_subword_prefix: String,
    #[serde(default = "Model::max_input_chars_per_word")]
    max_input_chars_per_word: usize,
    vocab: HashMap<String, u32>,
}

impl Model {
    fn unk_token() -> String {
        "[UNK]".to_owned()
    }

    fn continuing_subword_prefix() -> String {
        "##".to_owned()
    }

    fn max_input_chars_per_word() -> usize {
        100
    }
}

impl WordPiece {
    /// The model of a tokenizer.json; `None` if the engine does not cover the configuration.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Self> {
        if model_type(&json["model"]) != "WordPiece"
            || type_of(&json["pre_tokenizer"]) != "BertPreTokenizer"
        {
            return None;
        }
        let normalizer = match type_of(&json["normalizer"]) {
            "null" => Normalizer::default(),
            "BertNormalizer" => Normalizer::deserialize(&json["normalizer"]).ok()?,
            _ => return None,
        };
        let model = Model::deserialize(&json["model"]).ok()?;
        let unknown = *model.vocab.get(&model.unk_token)?;
        if model.vocab.values().any(|&id| id >= 1 << 31) {
            return None;
        }
        let tokens = model.vocab.into_iter();
        let tokens = tokens.map(|(token, id)| (token.into_bytes(), id)).collect();
        let tokens = DoubleArray::of(tokens).ok()?;
        let inside = tokens.lead(tokens.root(), model.continuing_subword_prefix.as_bytes());
        let added = AddedTexts::of(added_tokens, |content| {
            let mut normalized = String::new();
            normalizer.append(content, &mut normalized);
            Some(normalized)
        })?;
        Some(Self {
            normalizer,
            tokens,
            inside: inside.map(|(place, _)| place),
            unknown,
            max_chars: model.max_input_chars_per_word,
            added,
        })
    }

    /// Appends the ids of a word. Returns `false` if the word may contain an added token and falls
    /// back to the reference engine.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        let normalized = &mut scratch.normalized;
        normalized.clear();
        self.normalizer.append(word, normalized);
        if self.added.may_occur_in(word, normalized) {
            return false;
        }
        for_each_part(normalized, |part| {
            self.append_part(part, ids);
            true
        })
    }

    /// Appends the tokens of a part.
    fn append_part(&self, part: &str, ids: &mut Vec<u32>) {
        let first_id = ids.len();
        let mut rest = part.as_bytes();
        let mut place = Some(self.tokens.root());
        let is_short = part.len() <= self.max_chars || part.chars().count() <= self.max_chars;
        while !rest.is_empty() {
            let longest = place.filter(|_| is_short);
            let longest =
                longest.and_then(|place| self.tokens.longest_from(place, rest, usize::MAX));
            let Some((len, id)) = longest else {
                ids.truncate(first_id);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            rest = &rest[len..];
            place = self.inside;
        }
    }
}

/// Calls `append` with each part of a normalized word, until it returns `false`; returns whether it never did. White
/// space separates parts, and each punctuation character is one.
pub(super) fn for_each_part(normalized: &str, mut append: impl FnMut(&str) -> bool) -> bool {
    for word in normalized.split_whitespace() {
        let mut start = 0;
        for (at, mark) in word.char_indices().filter(|&(_, c)| is_mark(c)) {
            let end = at + mark.len_utf8();
            if !append(&word[start..at]) || !append(&word[at..end]) {
                return false;
            }
            start = end;
        }
        if !append(&word[start..]) {
            return false;
        }
    }
    true
}

impl Normalizer {
    /// Appends the normalized form of a word.
    fn append(&self, word: &str, normalized: &mut String) {
        let chars = word
            .chars()
            .filter(|&c| !self.clean_text || is_text(c))
            .flat_map(|c| {
                let alone = self.handle_chinese_chars && is_chinese(c);
                let c = if self.clean_text && c.is_whitespace() {
                    ' '
                } else {
                    c
                };
                let space = alone.then_some(' ');
                space.into_iter().chain([c]).chain(space)
            });
        // ASCII is already decomposed.
        if self.strip_accents.unwrap_or(self.lowercase) && !word.is_ascii() {
            let decomposed = chars.nfd().map(|(c, _)| c);
            self.append_cased(decomposed.filter(|c| !c.is_mark_nonspacing()), normalized);
        } else {
            self.append_cased(chars, normalized)
        }
    }

    fn append_cased(&self, chars: impl Iterator<Item = char>, normalized: &mut String) {
        if self.lowercase {
            normalized.extend(chars.flat_map(char::to_lowercase))
        } else {
            normalized.extend(chars)
        }
    }
}

/// Whether a character remains when a text is cleaned.
fn is_text(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => true,
        '\0' | '\u{fffd}' => false,
        _ => !c.is_other(),
    }
}

/// Whether BERT defines the character as a Chinese ideograph. Each ideograph is a word.
fn is_chinese(c: char) -> bool {
    matches!(
        c,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b920}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

/// Whether the character is punctuation. Each such character is a word.
fn is_mark(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_punctuation()
    } else {
        c.is_punctuation()
    }
}
