//! Finds added tokens in a text. The text between them is encoded separately.
//!
//! As in the Python package, there are two rounds. The first round matches tokens that are not
//! normalized in the original text. The second round normalizes the text between these matches and
//! matches the normalized tokens there. In each round, the first match wins, and of the tokens
//! that match at one position the longest. A token may match as a single word only, and may consume the white space
//! beside it ([`Surroundings`]).
//!
//! A normalizer that changes texts either applies normal form C, or writes spaces as `▁` and may
//! prepend one. In the second case, this engine does the reverse: a `▁` becomes a space, which is
//! equivalent, and the prepended space is only implied. With a prepended space, the token `<s>` is
//! found as ` <s>`, or at the start of a text.

use std::borrow::Cow;
use std::collections::HashSet;

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, Input, Match, MatchKind};
use memchr::memmem;
use regex_syntax::is_word_character;
use serde_json::Value;

use super::beginnings::Beginnings;
use super::model::{SPACE_MARK, Spelling};
use super::normal_form::NormalForm;
use super::preprocessing::{Prefix, Preprocessing};
use crate::load::AddedToken;

/// Finds added tokens in texts. By default, there are none.
#[derive(Default)]
pub(super) struct AddedTokens {
    /// For tokens in the original text.
    rounds: Vec<Round>,
    /// For tokens in the normalized text.
    normalized_round: Option<Round>,
    normalization: Normalization,
    /// Tokens whose surroundings matter in a text with spaces for `▁`, tokens whose entries contradict each other, and
    /// what a normalizer replaces like a space. A text that contains such a token falls back.
    fallback_tokens: Vec<String>,
    fallback_finder: Option<TextFinder>,
    /// Whether some of these are matched in the normalized text.
    has_normalized_fallback_tokens: bool,
}

/// The normalization of the text between non-normalized tokens.
#[derive(Default)]
enum Normalization {
    #[default]
    None,
    /// Spaces in place of `▁`, which this searcher finds.
    MarksToSpaces(Box<memmem::Finder<'static>>),
    Form(Box<NormalForm>),
}

impl Normalization {
    fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::None => text.into(),
            Self::MarksToSpaces(finder) => match finder.find(text.as_bytes()) {
                Some(_) => text.replace(SPACE_MARK, " ").into(),
                None => text.into(),
            },
            Self::Form(form) => form.normalized(text),
        }
    }
}

/// Tokens that are searched for together.
struct Round {
    finder: TextFinder,
    tokens: Vec<RoundToken>,
    /// Implied before each text, and the beginning of all search texts of the round.
    prefix: &'static str,
    /// The value for texts that follow a token of this round.
    as_preceding: Preceding,
}

struct RoundToken {
    search_text: String,
    id: u32,
    is_special: bool,
    surroundings: Surroundings,
}

/// What is beside a match of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Surroundings {
    /// `single_word`: no match beside a character of a word.
    is_single_word: bool,
    /// `lstrip`: white space before a match belongs to it, as far as no token before it has it.
    takes_space_before: bool,
    /// `rstrip`: white space after a match belongs to it. Tokens are found there nevertheless.
    takes_space_after: bool,
}

impl Surroundings {
    /// Whether a match between these texts counts.
    fn allow(self, before: &str, after: &str) -> bool {
        let is_of_word = |char: Option<char>| char.is_some_and(is_word_character);
        !self.is_single_word
            || !(is_of_word(before.chars().next_back()) || is_of_word(after.chars().next()))
    }
}

pub(super) enum TextPart<'a> {
    AddedToken(u32),
    /// Normalized text without added tokens, with spaces for `▁`.
    Text(&'a str, Preceding),
}

/// What precedes a part of a text. It decides whether a space is prepended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preceding {
    /// The part begins the text.
    Nothing,
    Token,
    /// A token that was matched in a text with an implied prefix.
    NormalizedToken,
}

impl AddedTokens {
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
        let normalization = if preprocessing.spelling == Spelling::Text {
            Normalization::MarksToSpaces(Box::new(memmem::Finder::new(SPACE_MARK)))
        } else if let Some(form) = preprocessing.form {
            Normalization::Form(Box::new(NormalForm::new(form)))
        } else {
            Normalization::None
        };
        let changes_text = !json["normalizer"].is_null();
        let mut has_normalized_fallback_tokens = false;
        let mut fallback_tokens: Vec<&str> =
            preprocessing.fallback_text.as_deref().into_iter().collect();
        let (mut original, mut normalized) = ([Vec::new(), Vec::new()], Vec::new());
        // In the other texts, `▁` is no white space.
        let has_white_space = preprocessing.spelling == Spelling::Bytes;
        for token in tokens {
            let flags = Flags::read(json, token);
            let is_in_original = flags.is_normalized == Some(false);
            let is_plain = flags.surroundings == Some(Surroundings::default());
            let can_be_found =
                is_plain || (flags.surroundings.is_some() && (is_in_original || has_white_space));
            let with_surroundings = (token, flags.surroundings.unwrap_or_default());
            match flags.is_normalized {
                Some(false) if can_be_found => original[0].push(with_surroundings),
                Some(true) if can_be_found && changes_text => normalized.push(with_surroundings),
                Some(true) if can_be_found => original[1].push(with_surroundings),
                // The reference engine finds such a token in texts that do not contain it
                // literally.
                _ if !is_in_original
                    && changes_text
                    && may_change(&token.content, &normalization) =>
                {
                    return Err(format!("the added token {:?} is normalized", token.content));
                }
                _ => {
                    has_normalized_fallback_tokens |= !is_in_original;
                    fallback_tokens.push(&token.content);
                }
            }
        }
        let prefix = match preprocessing.prefix {
            Prefix::Always => " ",
            _ => "",
        };
        let rounds = original.into_iter().filter(|tokens| !tokens.is_empty());
        let rounds = rounds.map(|tokens| Round::new(&tokens, "", Preceding::Token, str::to_owned));
        Ok(Self {
            rounds: rounds.collect::<Result<_, _>>()?,
            normalized_round: match normalized[..] {
                [] => None,
                _ => Some(Round::new(
                    &normalized,
                    prefix,
                    Preceding::NormalizedToken,
                    |content| format!("{prefix}{}", normalization.apply(content)),
                )?),
            },
            normalization,
            has_normalized_fallback_tokens,
            fallback_finder: match fallback_tokens[..] {
                [] => None,
                _ => Some(TextFinder::new(&fallback_tokens)?),
            },
            fallback_tokens: fallback_tokens.into_iter().map(str::to_owned).collect(),
        })
    }

    /// All tokens, if they can be isolated in texts before the rest is normalized: there are many, and they have no
    /// further conditions and no spaces, so that no token is in the text between others, once `▁` have become spaces.
    /// [`IsolatedTokens`](super::isolated_tokens::IsolatedTokens) are not empty and have no NUL.
    pub(super) fn isolated(&self) -> Option<Vec<AddedToken>> {
        let ([round], None, []) = (
            &self.rounds[..],
            &self.normalized_round,
            &self.fallback_tokens[..],
        ) else {
            return None;
        };
        let is_many = matches!(round.finder.searcher, MultiSearcher::Automaton(..));
        let marks_are_spaces = matches!(self.normalization, Normalization::MarksToSpaces(_));
        let is_plain = |token: &RoundToken| {
            token.surroundings == Surroundings::default()
                && !token.search_text.is_empty()
                && !token.search_text.contains([' ', '\0'])
        };
        (is_many && marks_are_spaces && round.tokens.iter().all(is_plain)).then(|| {
            let tokens = round.tokens.iter().map(|token| AddedToken {
                content: token.search_text.clone(),
                id: token.id,
                is_special: token.is_special,
            });
            tokens.collect()
        })
    }

    /// Whether normalization may change a text.
    #[inline]
    pub(super) fn may_change(&self, text: &str) -> bool {
        match &self.normalization {
            Normalization::None => false,
            Normalization::MarksToSpaces(finder) => finder.find(text.as_bytes()).is_some(),
            Normalization::Form(_) => true,
        }
    }

    /// Whether a text falls back because of an added token.
    #[inline]
    pub(super) fn needs_fallback(&self, text: &str) -> bool {
        let finder = self.fallback_finder.as_ref();
        finder.is_some_and(|finder| finder.find_from(text, 0).is_some())
            // The normalized text may contain a fallback token.
            || self.has_normalized_fallback_tokens
                && matches!(&self.normalization, Normalization::Form(form) if !form.has(text))
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
        put: &mut dyn FnMut(TextPart<'_>),
    ) {
        self.parts_from(0, text, Preceding::Nothing, special_tokens_are_text, put);
    }

    /// The parts of a text that the rounds before `round_number` have left over.
    fn parts_from(
        &self,
        round_number: usize,
        text: &str,
        preceding: Preceding,
        special_tokens_are_text: bool,
        put: &mut dyn FnMut(TextPart<'_>),
    ) {
        if let Some(round) = self.rounds.get(round_number) {
            return round.parts(
                text,
                preceding,
                special_tokens_are_text,
                &mut |part| match part {
                    TextPart::Text(text, preceding) => self.parts_from(
                        round_number + 1,
                        text,
                        preceding,
                        special_tokens_are_text,
                        put,
                    ),
                    token => put(token),
                },
            );
        }
        let text = self.normalization.apply(text);
        match &self.normalized_round {
            Some(round) => round.parts(&text, preceding, special_tokens_are_text, put),
            None => put(TextPart::Text(&text, preceding)),
        }
    }
}

impl Round {
    fn new(
        tokens: &[(&AddedToken, Surroundings)],
        prefix: &'static str,
        as_preceding: Preceding,
        search_text_of: impl Fn(&str) -> String,
    ) -> Result<Self, String> {
        let tokens: Vec<RoundToken> = tokens
            .iter()
            .map(|&(token, surroundings)| RoundToken {
                search_text: search_text_of(&token.content),
                id: token.id,
                is_special: token.is_special,
                surroundings,
            })
            .collect();
        let texts: Vec<&str> = tokens.iter().map(|token| &token.search_text[..]).collect();
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!(
                "two added tokens are both {:?} after normalization",
                two[0]
            ));
        }
        Ok(Self {
            finder: TextFinder::new(&texts)?,
            tokens,
            prefix,
            as_preceding,
        })
    }

    fn parts(
        &self,
        text: &str,
        preceding: Preceding,
        special_tokens_are_text: bool,
        put: &mut dyn FnMut(TextPart<'_>),
    ) {
        let (mut start, mut at) = (0, 0);
        let mut white_space = 0..0;
        let put_text = |start: usize, end: usize, put: &mut dyn FnMut(TextPart<'_>)| {
            if start < end {
                let preceding = if start == 0 {
                    preceding
                } else {
                    self.as_preceding
                };
                put(TextPart::Text(&text[start..end], preceding));
            }
        };
        while let Some(match_) = self.find_from(text, at) {
            at = match_.end;
            let token = &self.tokens[match_.token];
            // The match still counts: no other token is matched within its text.
            if token.is_special && special_tokens_are_text {
                continue;
            }
            let (before, after) = (&text[..match_.begin], &text[match_.end..]);
            if !token.surroundings.allow(before, after) {
                continue;
            }
            if match_.begin == 0 && !match_.includes_prefix && !self.prefix.is_empty() {
                // Only the prefix is before it.
                put(TextPart::Text(self.prefix, self.as_preceding));
            }
            let (mut begin, mut end) = (match_.begin, match_.end);
            if token.surroundings.takes_space_before {
                let between = text.get(start..begin).unwrap_or_default();
                begin = start + between.trim_end().len();
            }
            if token.surroundings.takes_space_after {
                // Of several tokens in a run of white space, only the first reads it.
                if !white_space.contains(&end) {
                    white_space = end..end + after.len() - after.trim_start().len();
                }
                end = end.max(white_space.end);
            }
            put_text(start, begin, put);
            put(TextPart::AddedToken(token.id));
            // Before the end of the token before it, if that has taken white space in which this token is: the
            // library then reads the rest of the white space again.
            start = end;
        }
        put_text(start, text.len(), put);
    }

    /// The first token from `at` on.
    #[inline]
    fn find_from(&self, text: &str, at: usize) -> Option<TokenMatch> {
        if at == 0 && !self.prefix.is_empty() {
            let rests = self
                .tokens
                .iter()
                .map(|token| &token.search_text[self.prefix.len()..]);
            let longest = rests
                .enumerate()
                .filter(|(_, rest)| text.starts_with(rest))
                .max_by_key(|(_, rest)| rest.len());
            if let Some((token, rest)) = longest {
                return Some(TokenMatch {
                    token,
                    includes_prefix: true,
                    begin: 0,
                    end: rest.len(),
                });
            }
        }
        let match_ = self.finder.find_from(text, at)?;
        Some(TokenMatch {
            token: match_.pattern().as_usize(),
            includes_prefix: false,
            begin: match_.start(),
            end: match_.end(),
        })
    }
}

/// An added token in a text.
struct TokenMatch {
    /// Index of the token in its round.
    token: usize,
    /// Whether the implied prefix is a part of the match.
    includes_prefix: bool,
    begin: usize,
    end: usize,
}

/// Whether a normalizer changes a token, or turns another text into it.
fn may_change(token: &str, normalization: &Normalization) -> bool {
    match normalization {
        Normalization::None => false,
        Normalization::MarksToSpaces(_) => token.contains(' ') || token.contains(SPACE_MARK),
        Normalization::Form(form) => !form.has(token),
    }
}

/// Finds the first position at which any of several texts matches, and the longest match there.
struct TextFinder {
    /// The common beginning of all texts if it has several bytes, most often `<|`.
    beginning: Option<memmem::Finder<'static>>,
    searcher: MultiSearcher,
}

enum MultiSearcher {
    /// Vectorized search for the first bytes of all texts: for few texts, on most processors.
    Packed(packed::Searcher),
    /// The automaton searches for up to three different first bytes with vector instructions. If there are more, the
    /// first two bytes are looked up before it reads a text.
    Automaton(Option<Beginnings>, AhoCorasick),
}

impl TextFinder {
    /// For non-empty texts.
    fn new(texts: &[&str]) -> Result<Self, String> {
        let all_bytes = texts.iter().map(|text| text.as_bytes());
        let beginning = all_bytes.reduce(|first, second| common_beginning(first, second));
        let beginning = beginning.filter(|beginning| beginning.len() > 1);
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .builder()
            .extend(texts)
            .build();
        let searcher = match packed {
            Some(searcher) => MultiSearcher::Packed(searcher),
            None => {
                let automaton = AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(texts);
                let first_bytes: HashSet<u8> =
                    texts.iter().map(|text| text.as_bytes()[0]).collect();
                let beginnings = (first_bytes.len() > 3)
                    .then(|| Beginnings::of(texts.iter().map(|text| text.as_bytes())));
                MultiSearcher::Automaton(beginnings, automaton.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self {
            beginning: beginning.map(|text| memmem::Finder::new(text).into_owned()),
            searcher,
        })
    }

    #[inline]
    fn find_from(&self, text: &str, at: usize) -> Option<Match> {
        let at = match &self.beginning {
            Some(beginning) => at + beginning.find(&text.as_bytes()[at..])?,
            None => at,
        };
        match &self.searcher {
            MultiSearcher::Packed(searcher) => searcher.find_in(text, (at..text.len()).into()),
            MultiSearcher::Automaton(beginnings, automaton) => {
                let at = match beginnings {
                    Some(beginnings) => beginnings.find_from(text.as_bytes(), at)?,
                    None => at,
                };
                automaton.find(Input::new(text).span(at..text.len()))
            }
        }
    }
}

/// The common beginning of two texts.
fn common_beginning<'a>(first: &'a [u8], second: &[u8]) -> &'a [u8] {
    let pairs = first.iter().zip(second);
    let num_equal = pairs.take_while(|(left, right)| left == right).count();
    &first[..num_equal]
}

/// The properties of a token that control its matching.
struct Flags {
    /// `None` if the entries of a token contradict each other or lack the property.
    is_normalized: Option<bool>,
    /// `None` if there are several entries with some surroundings, or an entry lacks one of these keys.
    surroundings: Option<Surroundings>,
}

impl Flags {
    fn read(json: &Value, token: &AddedToken) -> Self {
        let entries = json["added_tokens"].as_array().into_iter().flatten();
        let entries: Vec<&Value> = entries
            .filter(|entry| entry["content"] == token.content[..])
            .collect();
        let surroundings = |entry: &Value| {
            Some(Surroundings {
                is_single_word: entry["single_word"].as_bool()?,
                takes_space_before: entry["lstrip"].as_bool()?,
                takes_space_after: entry["rstrip"].as_bool()?,
            })
        };
        let is_plain = |entry: &&Value| surroundings(entry) == Some(Surroundings::default());
        Self {
            is_normalized: match entries[..] {
                [entry] => entry["normalized"].as_bool(),
                _ => None,
            },
            surroundings: match entries[..] {
                [entry] => surroundings(entry),
                _ => entries.iter().all(is_plain).then(Surroundings::default),
            },
        }
    }
}
