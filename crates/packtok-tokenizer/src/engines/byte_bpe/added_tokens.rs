//! Finds added tokens in a text. The text between them is encoded separately.
//!
//! As in the Python package, there are two rounds. The first round matches tokens that are not
//! normalized in the original text. The second round normalizes the text between these matches and
//! matches the normalized tokens there. In each round, the first match wins, and of the tokens
//! that match at one position the longest.
//!
//! A normalizer that changes texts either applies normal form C, or writes spaces as `▁` and may
//! prepend one. In the second case, this engine does the reverse: a `▁` becomes a space, which is
//! equivalent, and the prepended space is only implied. With a prepended space, the token `<s>` is
//! found as ` <s>`, or at the start of a text.

use std::borrow::Cow;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Input, Match, MatchKind};
use memchr::memmem;
use serde_json::Value;

use super::model::{SPACE_MARK, Spelling};
use super::nfc::Nfc;
use super::preprocessing::{Prefix, Preprocessing};
use crate::load::AddedToken;

/// Finds added tokens in texts.
pub(super) struct Added {
    /// For tokens in the original text.
    rounds: Vec<Round>,
    /// For tokens in the normalized text.
    of_normalized: Option<Round>,
    normal: Normal,
    /// Tokens for which a match of the text does not suffice. A text that contains such a token
    /// falls back.
    fallback_tokens: Vec<String>,
    fallback_finder: Option<Finder>,
    /// Whether some of these are matched in the normalized text.
    has_normalized_fallback_tokens: bool,
}

/// The normalization of the text between non-normalized tokens.
enum Normal {
    Same,
    /// Spaces in place of `▁`, which this searcher finds.
    WithSpaces(Box<memmem::Finder<'static>>),
    FormC(Box<Nfc>),
}

impl Normal {
    fn of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Same => text.into(),
            Self::WithSpaces(finder) => match finder.find(text.as_bytes()) {
                Some(_) => text.replace(SPACE_MARK, " ").into(),
                None => text.into(),
            },
            Self::FormC(nfc) => nfc.normalized(text),
        }
    }
}

struct Round {
    finder: Finder,
    /// For each token: its search text, its id, and whether it is special.
    tokens: Vec<(String, u32, bool)>,
    /// Implied before each text, and the beginning of all tokens of the round.
    prefix: &'static str,
    /// The place of texts after these tokens.
    after: Place,
}

/// A part of a text.
pub(super) enum Part<'a> {
    /// An added token.
    Id(u32),
    /// Normalized text without added tokens, with spaces for `▁`.
    Text(&'a str, Place),
}

/// Where a part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    AfterToken,
    /// After a token that was matched in a text with an implied prefix.
    AfterNormalizedToken,
}

impl Added {
    /// Reads the added tokens of a tokenizer.json.
    ///
    /// # Errors
    /// The file has tokens that a search for their text cannot find.
    pub(super) fn read(
        json: &Value,
        tokens: &[AddedToken],
        preprocessing: &Preprocessing,
    ) -> Result<Self, String> {
        let mut ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        ids.sort_unstable();
        if let Some(two) = ids.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("two added tokens have id {}", two[0]));
        }
        let normal = match preprocessing.spelling {
            Spelling::Text => Normal::WithSpaces(Box::new(memmem::Finder::new(SPACE_MARK))),
            Spelling::Bytes if preprocessing.is_nfc => Normal::FormC(Box::new(Nfc::new())),
            Spelling::Bytes => Normal::Same,
        };
        let changes_text = !json["normalizer"].is_null();
        let mut has_normalized_fallback_tokens = false;
        let mut fallback_tokens: Vec<&str> = Vec::new();
        let (mut rounds, mut of_normalized) = ([Vec::new(), Vec::new()], Vec::new());
        for token in tokens {
            let flags = Flags::read(json, token);
            let is_as_it_is = flags.is_normalized == Some(false);
            match flags.is_normalized {
                Some(false) if flags.is_plain => rounds[0].push(token),
                Some(true) if flags.is_plain && changes_text => of_normalized.push(token),
                Some(true) if flags.is_plain => rounds[1].push(token),
                // The reference engine finds such a token in texts that do not contain it
                // literally.
                _ if !is_as_it_is && changes_text && may_change(&token.content, &normal) => {
                    return Err(format!("the added token {:?} is normalized", token.content));
                }
                _ => {
                    has_normalized_fallback_tokens |= !is_as_it_is;
                    fallback_tokens.push(&token.content);
                }
            }
        }
        let prefix = match preprocessing.prefix {
            Prefix::Always => " ",
            _ => "",
        };
        let rounds = rounds.into_iter().filter(|tokens| !tokens.is_empty());
        let rounds = rounds.map(|tokens| Round::of(&tokens, "", Place::AfterToken, str::to_owned));
        Ok(Self {
            rounds: rounds.collect::<Result<_, _>>()?,
            of_normalized: match of_normalized[..] {
                [] => None,
                _ => Some(Round::of(
                    &of_normalized,
                    prefix,
                    Place::AfterNormalizedToken,
                    |content| format!("{prefix}{}", normal.of(content)),
                )?),
            },
            normal,
            has_normalized_fallback_tokens,
            fallback_finder: match fallback_tokens[..] {
                [] => None,
                _ => Some(Finder::of(&fallback_tokens)?),
            },
            fallback_tokens: fallback_tokens.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Whether a text falls back because of an added token.
    #[inline]
    pub(super) fn needs_fallback(&self, text: &str) -> bool {
        let finder = self.fallback_finder.as_ref();
        finder.is_some_and(|finder| finder.find_from(text, 0).is_some())
            // The normalized text may contain a fallback token.
            || self.has_normalized_fallback_tokens
                && matches!(&self.normal, Normal::FormC(nfc) if !nfc.has(text))
    }

    /// Texts that contain any of these fall back.
    pub(super) fn fallback_tokens(&self) -> &[String] {
        &self.fallback_tokens
    }

    /// Calls `put` with each part of a text, in order.
    #[inline]
    pub(super) fn parts(
        &self,
        text: &str,
        special_tokens_are_text: bool,
        put: &mut dyn FnMut(Part<'_>),
    ) {
        self.parts_from(0, text, Place::First, special_tokens_are_text, put);
    }

    /// The parts of a text that the rounds before `round` have left over.
    fn parts_from(
        &self,
        round: usize,
        text: &str,
        place: Place,
        special_tokens_are_text: bool,
        put: &mut dyn FnMut(Part<'_>),
    ) {
        if let Some(of_round) = self.rounds.get(round) {
            return of_round.parts(
                text,
                place,
                special_tokens_are_text,
                &mut |part| match part {
                    Part::Text(text, place) => {
                        self.parts_from(round + 1, text, place, special_tokens_are_text, put);
                    }
                    id => put(id),
                },
            );
        }
        let text = self.normal.of(text);
        match &self.of_normalized {
            Some(of_round) => of_round.parts(&text, place, special_tokens_are_text, put),
            None => put(Part::Text(&text, place)),
        }
    }
}

impl Round {
    fn of(
        tokens: &[&AddedToken],
        prefix: &'static str,
        after: Place,
        found: impl Fn(&str) -> String,
    ) -> Result<Self, String> {
        let tokens = tokens.iter();
        let tokens = tokens.map(|token| (found(&token.content), token.id, token.is_special));
        let tokens: Vec<(String, u32, bool)> = tokens.collect();
        let texts: Vec<&str> = tokens.iter().map(|(text, ..)| &text[..]).collect();
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!(
                "two added tokens are both {:?} after normalization",
                two[0]
            ));
        }
        Ok(Self {
            finder: Finder::of(&texts)?,
            tokens,
            prefix,
            after,
        })
    }

    fn parts(
        &self,
        text: &str,
        place: Place,
        special_tokens_are_text: bool,
        put: &mut dyn FnMut(Part<'_>),
    ) {
        let (mut start, mut at) = (0, 0);
        let put_text = |start: usize, end: usize, put: &mut dyn FnMut(Part<'_>)| {
            if start < end {
                let place = if start == 0 { place } else { self.after };
                put(Part::Text(&text[start..end], place));
            }
        };
        while let Some(found) = self.find_from(text, at) {
            at = found.end;
            let (_, id, is_special) = self.tokens[found.token];
            // The match still counts: no other token is matched within its text.
            if is_special && special_tokens_are_text {
                continue;
            }
            if found.begin == 0 && !found.has_prefix && !self.prefix.is_empty() {
                // Only the prefix is before it.
                put(Part::Text(self.prefix, self.after));
            }
            put_text(start, found.begin, put);
            put(Part::Id(id));
            start = found.end;
        }
        put_text(start, text.len(), put);
    }

    /// The first token from `at` on.
    #[inline]
    fn find_from(&self, text: &str, at: usize) -> Option<Found> {
        if at == 0 && !self.prefix.is_empty() {
            let tokens = self.tokens.iter().enumerate();
            let after = tokens.map(|(token, (found, ..))| (token, &found[self.prefix.len()..]));
            let found = after.filter(|(_, after)| text.starts_with(after));
            if let Some((token, after)) = found.max_by_key(|(_, after)| after.len()) {
                return Some(Found {
                    token,
                    has_prefix: true,
                    begin: 0,
                    end: after.len(),
                });
            }
        }
        let found = self.finder.find_from(text, at)?;
        Some(Found {
            token: found.pattern().as_usize(),
            has_prefix: false,
            begin: found.start(),
            end: found.end(),
        })
    }
}

/// An added token in a text.
struct Found {
    token: usize,
    /// Whether it includes the implied prefix.
    has_prefix: bool,
    begin: usize,
    end: usize,
}

/// Whether a normalizer changes a token, or turns another text into it.
fn may_change(token: &str, normal: &Normal) -> bool {
    match normal {
        Normal::Same => false,
        Normal::WithSpaces(_) => token.contains(' ') || token.contains(SPACE_MARK),
        Normal::FormC(nfc) => !nfc.has(token),
    }
}

/// Finds the first position at which any of several texts matches, and the longest match there.
struct Finder {
    /// The common beginning of all texts if it has several bytes, most often `<|`.
    beginning: Option<memmem::Finder<'static>>,
    texts: Texts,
}

enum Texts {
    /// Vectorized search for the first bytes of all texts: for few texts, on most processors.
    Few(Searcher),
    Any(AhoCorasick),
}

impl Finder {
    /// For non-empty texts.
    fn of(texts: &[&str]) -> Result<Self, String> {
        let all_bytes = texts.iter().map(|text| text.as_bytes());
        let beginning = all_bytes.reduce(|one, other| common_beginning(one, other));
        let beginning = beginning.filter(|beginning| beginning.len() > 1);
        let few = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .builder()
            .extend(texts)
            .build();
        let texts = match few {
            Some(searcher) => Texts::Few(searcher),
            None => {
                let automaton = AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(texts);
                Texts::Any(automaton.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self {
            beginning: beginning.map(|text| memmem::Finder::new(text).into_owned()),
            texts,
        })
    }

    #[inline]
    fn find_from(&self, text: &str, at: usize) -> Option<Match> {
        let at = match &self.beginning {
            Some(beginning) => at + beginning.find(&text.as_bytes()[at..])?,
            None => at,
        };
        match &self.texts {
            Texts::Few(searcher) => searcher.find_in(text, (at..text.len()).into()),
            Texts::Any(automaton) => automaton.find(Input::new(text).span(at..text.len())),
        }
    }
}

/// The common beginning of two texts.
fn common_beginning<'a>(one: &'a [u8], other: &[u8]) -> &'a [u8] {
    let pairs = one.iter().zip(other);
    let num_alike = pairs
        .take_while(|(of_one, of_other)| of_one == of_other)
        .count();
    &one[..num_alike]
}

/// The properties of a token that control its matching.
struct Flags {
    /// `None` if the entries of a token contradict each other or lack the property.
    is_normalized: Option<bool>,
    /// Whether the token matches wherever its text occurs, without consuming surrounding white
    /// space.
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
