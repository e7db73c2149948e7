//! WordPiece in BERT's node: the ids of a word that is met for the first time.
//!
//! ```text
//! word        Naïve-looking    as it is between white space
//! normalized  naive-looking    characters taken out, decomposed, lowered
//! parts       naive - looking  marks stand alone
//! tokens      naive - look ##ing: the longest that is there, again and again; one that does not come out is unknown
//! ```
//!
//! Nothing of a word hangs on what is around it, see `wordwise`. Characters are asked for what they are in the tables
//! of the crates that Python's package is made with, in the same versions.

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

/// The loaded model with all that is before it.
pub(super) struct WordPiece {
    normalizer: Normalizer,
    /// All tokens with their ids.
    tokens: DoubleArray,
    /// Where those go on that are for the inside of words.
    inside: Option<u32>,
    unknown: u32,
    max_chars: usize,
    added: AddedTexts,
}

/// What is done to characters; nothing, if nothing is said.
#[derive(Default, Deserialize)]
struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

/// The model as it is in the file, with what the package takes for what is missing.
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
    /// That of a tokenizer.json; none where anything of the file is done in another node.
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

    /// Appends the ids of a word; false if it may hold an added token, which the engine that knows all of the file
    /// looks for.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) -> bool {
        let normalized = &mut scratch.normalized;
        normalized.clear();
        self.normalizer.append(word, normalized);
        if self.added.may_occur_in(word, normalized) {
            return false;
        }
        for part in normalized.split(char::is_whitespace) {
            let mut start = 0;
            for (at, mark) in part.char_indices().filter(|&(_, c)| is_mark(c)) {
                let end = at + mark.len_utf8();
                self.append_part(&part[start..at], ids);
                self.append_part(&part[at..end], ids);
                start = end;
            }
            self.append_part(&part[start..], ids);
        }
        true
    }

    /// Appends the tokens of what is looked up as a whole.
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

impl Normalizer {
    /// Appends what it makes of a word.
    fn append(&self, word: &str, normalized: &mut String) {
        let chars = word
            .chars()
            .filter(|&c| !self.clean_text || is_text(c))
            .flat_map(|c| {
                let alone = self.handle_chinese_chars && is_chinese(c);
                let c = match self.clean_text && c.is_whitespace() {
                    true => ' ',
                    false => c,
                };
                let blank = alone.then_some(' ');
                blank.into_iter().chain([c]).chain(blank)
            });
        // Of ASCII nothing is decomposed.
        match self.strip_accents.unwrap_or(self.lowercase) && !word.is_ascii() {
            true => {
                let decomposed = chars.nfd().map(|(c, _)| c);
                self.append_cased(decomposed.filter(|c| !c.is_mark_nonspacing()), normalized);
            }
            false => self.append_cased(chars, normalized),
        }
    }

    fn append_cased(&self, chars: impl Iterator<Item = char>, normalized: &mut String) {
        match self.lowercase {
            true => normalized.extend(chars.flat_map(char::to_lowercase)),
            false => normalized.extend(chars),
        }
    }
}

/// What is left when a text is cleaned.
fn is_text(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => true,
        '\0' | '\u{fffd}' => false,
        _ => !c.is_other(),
    }
}

/// Ideographs of Chinese, as BERT counts them, which are words by themselves.
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

/// Punctuation, which is a word by itself.
fn is_mark(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_punctuation(),
        false => c.is_punctuation(),
    }
}
