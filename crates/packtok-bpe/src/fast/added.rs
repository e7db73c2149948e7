//! Added tokens in a text, and what is between them, which is encoded apart.
//!
//! As the Python package has it, tokens are looked for in two rounds: those that are not normalized in the text as
//! it is, then the others in what the normalizer makes of each text between them. Here the second round sees the
//! same text, because a file whose normalizer changes it is not covered, or has its normalized tokens among those
//! that are foreign. In each round the first match counts, of those that begin there the longest.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use super::form::Form;
use super::is_nfc;
use super::model::{BLANK, Spelling};
use crate::load::AddedToken;

/// Finds tokens in texts.
pub(super) struct Added {
    rounds: Vec<Round>,
    /// What is not for this engine: tokens whose matches hang on more than their text, and what is written for
    /// blanks.
    foreign: Vec<String>,
    foreign_finder: Option<AhoCorasick>,
}

struct Round {
    finder: AhoCorasick,
    /// The id of each token, and whether it is special.
    tokens: Vec<(u32, bool)>,
}

/// A part of a text.
pub(super) enum Part<'a> {
    /// A token.
    Id(u32),
    /// Text without tokens, and whether it begins the whole.
    Text(&'a str, bool),
}

impl Added {
    /// # Errors
    /// The file has tokens that match other texts than theirs.
    pub(super) fn read(json: &Value, tokens: &[AddedToken], form: &Form) -> Result<Self, String> {
        let changes_text = form.spelling == Spelling::Text && !json["normalizer"].is_null();
        let mut foreign = Vec::new();
        if form.spelling == Spelling::Text {
            foreign.push(BLANK);
        }
        let mut rounds = [Vec::new(), Vec::new()];
        for token in tokens {
            let flags = Flags::read(json, token);
            // It would be found in texts that do not have it as it is.
            let is_changed = form.is_nfc && !is_nfc(&token.content)
                || changes_text && token.content.contains(BLANK);
            if flags.is_normalized != Some(false) && is_changed {
                return Err(format!("the added token {:?} is normalized", token.content));
            }
            match flags.is_normalized {
                Some(false) if flags.is_plain => rounds[0].push(token),
                Some(true) if flags.is_plain && !changes_text => rounds[1].push(token),
                _ => foreign.push(&token.content),
            }
        }
        Ok(Self {
            rounds: rounds
                .into_iter()
                .filter(|tokens| !tokens.is_empty())
                .map(Round::of)
                .collect::<Result<_, _>>()?,
            foreign_finder: match foreign[..] {
                [] => None,
                _ => Some(AhoCorasick::new(&foreign).map_err(|error| error.to_string())?),
            },
            foreign: foreign.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Whether a text is not for this engine.
    #[inline]
    pub(super) fn is_foreign(&self, text: &str) -> bool {
        let finder = self.foreign_finder.as_ref();
        finder.is_some_and(|finder| finder.is_match(text))
    }

    /// What makes a text none for this engine.
    pub(super) fn foreign(&self) -> &[String] {
        &self.foreign
    }

    /// Calls `put` with each part of a text, in order.
    #[inline]
    pub(super) fn parts<'t>(
        &self,
        text: &'t str,
        special_tokens_are_text: bool,
        put: &mut impl FnMut(Part<'t>),
    ) {
        match &self.rounds[..] {
            [] => put(Part::Text(text, true)),
            [only] => only.parts(text, true, special_tokens_are_text, put),
            [first, second, ..] => {
                first.parts(
                    text,
                    true,
                    special_tokens_are_text,
                    &mut |part| match part {
                        Part::Text(text, is_first) => {
                            second.parts(text, is_first, special_tokens_are_text, put);
                        }
                        id => put(id),
                    },
                );
            }
        }
    }
}

impl Round {
    fn of(tokens: Vec<&AddedToken>) -> Result<Self, String> {
        let contents = tokens.iter().map(|token| &token.content);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(contents)
            .map_err(|error| error.to_string())?;
        let tokens = tokens.iter().map(|token| (token.id, token.is_special));
        Ok(Self {
            finder,
            tokens: tokens.collect(),
        })
    }

    #[inline]
    fn parts<'t>(
        &self,
        text: &'t str,
        is_first: bool,
        special_tokens_are_text: bool,
        put: &mut impl FnMut(Part<'t>),
    ) {
        let mut start = 0;
        let put_text = |start: usize, end: usize, put: &mut dyn FnMut(Part<'t>)| {
            if start < end {
                put(Part::Text(&text[start..end], is_first && start == 0));
            }
        };
        for found in self.finder.find_iter(text) {
            let (id, is_special) = self.tokens[found.pattern().as_usize()];
            // Found it is all the same: nothing else is found in its text.
            if is_special && special_tokens_are_text {
                continue;
            }
            put_text(start, found.start(), put);
            put(Part::Id(id));
            start = found.end();
        }
        put_text(start, text.len(), put);
    }
}

/// What a file says of how a token is found.
struct Flags {
    /// `None` if it is said in two ways, or not at all.
    is_normalized: Option<bool>,
    /// Found wherever its text is, and nothing else with it.
    is_plain: bool,
}

impl Flags {
    fn read(json: &Value, token: &AddedToken) -> Self {
        let entries = json["added_tokens"].as_array().into_iter().flatten();
        let entries: Vec<&Value> = entries
            .filter(|entry| entry["content"] == token.content[..])
            .collect();
        let is_off = |entry: &&Value| {
            let mut flags = ["single_word", "lstrip", "rstrip"].into_iter();
            flags.all(|flag| entry[flag] == false)
        };
        Self {
            is_normalized: match entries[..] {
                [entry] => entry["normalized"].as_bool(),
                _ => None,
            },
            is_plain: entries.iter().all(is_off),
        }
    }
}
