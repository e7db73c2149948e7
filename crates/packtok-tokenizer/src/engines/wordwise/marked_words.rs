//! Words of files whose only pre-tokenizer is `Metaspace`: white space is not removed, but becomes marks.
//!
//! ```text
//! text        The  cat\nsat\n          words   |The|  cat|\nsat|\n|   each with the white space before it
//! sequences   ▁The ▁ ▁cat ▁sat ▁       a word has one sequence for each of its marks
//! ```
//!
//! Separators are spaces, and of newline, tab and carriage return those that the normalizer turns into spaces. A word
//! ends where a separator begins, unless its last character is other white space or invisible, which may become a
//! space or nothing: then the next word is part of it. Its sequences do not depend on other words if
//!
//! - its normalized form begins with a space or the mark where the word has separators, since a sequence begins there,
//! - its normalized form does not end in white space or the mark: `Replace` of ` {2,}` would combine it with the
//!   spaces of the next word, and `Strip` would remove it at the end of a text only,
//! - and with a `Strip` of the left side: nothing but one space or mark is before its text, since at the start of a
//!   text no more than that is left, too.
//!
//! A text with another word falls back. The last word may end in white space; then the reference engine encodes it.

use serde_json::{Value, json};

use super::added_texts::AddedTexts;
use super::char_bpe::CharBpe;
use super::coverage::{
    SEPARATORS, check_normalizer, collect_steps, mark_of, normalizer_before_map,
};
use super::find::find_from;
use super::scratch::Scratch;
use super::separate::is_separate;
use super::unigram::Unigram;
use super::word_normalizer::WordNormalizer;
use crate::engines::reference::Normalizer;
use crate::load::{AddedToken, type_of};

/// The loaded steps before the model, and the model if the engine covers it.
pub(super) struct MarkedWords {
    mark: char,
    at_start: MarkAtStart,
    /// Which bytes separate words: those that the normalizer turns into spaces.
    is_separator: [bool; 256],
    /// What several spaces become; `None` if they stay.
    several_spaces: Option<char>,
    strips_left: bool,
    /// The steps before a SentencePiece map, if the file has a map, without `Strip`.
    before_map: Option<Normalizer>,
    /// All steps except `Strip`.
    normalizer: WordNormalizer,
    model: Option<Model>,
}

/// A model of sequences, each of which begins with its mark.
enum Model {
    Unigram(Unigram),
    Bpe(Box<CharBpe>, AddedTexts),
}

impl Model {
    fn read(
        json: &Value,
        added_tokens: &[AddedToken],
        normalizer: &WordNormalizer,
    ) -> Option<Self> {
        if let Some(unigram) = Unigram::read(json, added_tokens, normalizer) {
            return Some(Self::Unigram(unigram));
        }
        let added = AddedTexts::of(added_tokens, |content| normalizer.normalized(content))?;
        Some(Self::Bpe(Box::new(CharBpe::read(&json["model"])?), added))
    }

    /// Whether the reference engine must encode a word, because it may contain an added token or is
    /// too long.
    fn needs_reference(&self, word: &str, normalized: &str) -> bool {
        match self {
            Self::Unigram(unigram) => unigram.needs_reference(word, normalized),
            Self::Bpe(_, added) => added.may_occur_in(word, normalized),
        }
    }

    /// Appends the ids of the sequence in `scratch`. Returns `false` if the reference engine must encode it.
    fn append(&self, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        let Scratch {
            sequence,
            paths,
            heap,
            ..
        } = scratch;
        match self {
            Self::Unigram(unigram) => {
                unigram.append_sequence(sequence, paths, ids);
                true
            }
            Self::Bpe(bpe, _) => bpe.append(sequence, heap, ids),
        }
    }
}

/// Whether a mark is put before a text that does not begin with one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkAtStart {
    Never,
    Always,
    /// Unless the normalizer removes its first character.
    First,
}

impl MarkedWords {
    /// The words of a tokenizer.json; `None` if `Metaspace` is not its only pre-tokenizer.
    ///
    /// # Errors
    /// The reason why words depend on each other.
    pub(super) fn read(json: &Value, added_tokens: &[AddedToken]) -> Option<Result<Self, String>> {
        let metaspace = only_metaspace(&json["pre_tokenizer"])?;
        Some(Self::with_metaspace(metaspace, json, added_tokens))
    }

    fn with_metaspace(
        metaspace: &Value,
        json: &Value,
        added_tokens: &[AddedToken],
    ) -> Result<Self, String> {
        let mark = mark_of(metaspace).ok_or("its pre-tokenizer Metaspace cannot be read")?;
        if metaspace["split"] == false {
            return Err("its pre-tokenizer Metaspace does not split texts".to_owned());
        }
        if metaspace["add_prefix_space"] == false {
            return Err("its pre-tokenizer Metaspace has add_prefix_space: false".to_owned());
        }
        // Old files do not state the scheme; the default is `always`.
        let at_start = match metaspace["prepend_scheme"].as_str() {
            None | Some("always") => MarkAtStart::Always,
            Some("first") => MarkAtStart::First,
            Some("never") => MarkAtStart::Never,
            Some(_) => return Err("its pre-tokenizer Metaspace cannot be read".to_owned()),
        };
        let mut steps = Vec::new();
        collect_steps(&json["normalizer"], &mut steps);
        let several_spaces = check_steps(&steps, mark)?;
        let strips = |side: &str| {
            let mut strips = steps.iter().filter(|step| type_of(step) == "Strip");
            strips.any(|step| step[side] == true)
        };
        let strips_left = strips("strip_left");
        // At the start of a text, `Strip` removes what would be a sequence of its own elsewhere. A text of white
        // space alone would have a space left.
        if strips_left
            && (several_spaces.is_none()
                || at_start != MarkAtStart::Always
                || !strips("strip_right"))
        {
            return Err("its normalizer Strip changes the start of a text alone".to_owned());
        }
        if let Some(token) = json["added_tokens"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|token| token["rstrip"] == true)
        {
            return Err(format!(
                "its added token {} removes the white space after it",
                token["content"]
            ));
        }
        let other_steps: Vec<&Value> = steps
            .into_iter()
            .filter(|step| type_of(step) != "Strip")
            .collect();
        let before_map = normalizer_before_map(&other_steps)?;
        let normalizer = json!({"type": "Sequence", "normalizers": other_steps});
        let normalizer =
            WordNormalizer::read(&normalizer).ok_or("its normalizer cannot be read")?;
        let model = Model::read(json, added_tokens, &normalizer);
        if strips_left && model.is_none() {
            return Err("its normalizer Strip is covered with Unigram and BPE only".to_owned());
        }
        Ok(Self {
            mark,
            at_start,
            is_separator: separators(&normalizer, several_spaces)?,
            several_spaces,
            strips_left,
            before_map,
            model,
            normalizer,
        })
    }

    pub(super) fn mark(&self) -> char {
        self.mark
    }

    /// Whether the model is implemented here.
    pub(super) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    #[inline(always)]
    pub(super) fn is_separator(&self, byte: u8) -> bool {
        self.is_separator[usize::from(byte)]
    }

    /// Start and end of the first word at or after `at`; both are equal if there is no word.
    #[inline(always)]
    pub(super) fn next_word(&self, text: &[u8], at: usize) -> (usize, usize) {
        let mut end = at;
        loop {
            let start = find_from(text, end, |byte| !self.is_separator(byte));
            end = find_from(text, start, |byte| self.is_separator(byte));
            if end == text.len() || !joins_next(&text[start..end]) {
                return (at, end);
            }
        }
    }

    /// Whether a word is the last one of its text and may end in white space.
    pub(super) fn is_last(&self, word: &str) -> bool {
        let bytes = word.as_bytes();
        bytes.last().is_some_and(|&byte| self.is_separator(byte)) || joins_next(bytes)
    }

    /// Normalizes a word. Returns `false` if its ids may depend on other words.
    pub(super) fn normalize(&self, word: &str, normalized: &mut String) -> bool {
        normalized.clear();
        let count = word
            .bytes()
            .take_while(|&byte| self.is_separator(byte))
            .count();
        let (separators, text) = word.split_at(count);
        if text.is_empty() {
            return true;
        }
        let is_last = self.is_last(word);
        if !self.append_separators(separators, normalized)
            || !self.normalizer.append_letters(text, normalized)
        {
            normalized.clear();
            if !self.is_apart(text, is_last) || !self.normalizer.append(word, normalized) {
                return false;
            }
        }
        let is_space = |char: char| char == self.mark || char.is_whitespace();
        let normalized_text = match (count, normalized.strip_prefix([' ', self.mark])) {
            (0, _) => normalized,
            (_, Some(text)) => text,
            (_, None) => return false,
        };
        let begins_apart = !self.strips_left
            || !normalized_text.starts_with(is_space)
                && self.is_same_stripped(text, normalized_text);
        begins_apart && (is_last || !normalized.is_empty() && !normalized.ends_with(is_space))
    }

    /// Whether a text has the same normalized form without the white space before it.
    fn is_same_stripped(&self, text: &str, normalized: &str) -> bool {
        let stripped = text.trim_start();
        stripped.len() == text.len()
            || self
                .normalizer
                .normalized(stripped)
                .is_some_and(|stripped| stripped == normalized)
    }

    /// Appends what the separators before letters become. Returns `false` if that may depend on
    /// how they follow each other.
    fn append_separators(&self, separators: &str, normalized: &mut String) -> bool {
        if separators.contains('\r') {
            return false;
        }
        match (separators.len(), self.several_spaces) {
            (2.., Some(space)) => normalized.push(space),
            (count, _) => normalized.extend(std::iter::repeat_n(' ', count)),
        }
        true
    }

    /// Whether no grapheme cluster contains a character of a word and a space beside it. That after
    /// the last word does not matter.
    fn is_apart(&self, text: &str, is_last: bool) -> bool {
        let Some(before_map) = &self.before_map else {
            return true;
        };
        let is_apart = |mut text: String| {
            if is_last {
                text.push('a');
            }
            is_separate(&text)
        };
        text.is_ascii() || before_map.normalized(text).is_some_and(is_apart)
    }

    /// Whether the reference engine may encode a word alone. It would remove the space before an
    /// added token.
    pub(super) fn is_encoded_alone(&self, word: &str, normalized: &str) -> bool {
        let needs_reference = |model: &Model| model.needs_reference(word, normalized);
        !self.strips_left || !self.model.as_ref().is_none_or(needs_reference)
    }

    /// Appends the ids of a word whose normalized form is in `scratch`. Returns `false`, with
    /// nothing appended, if the reference engine must encode it.
    pub(super) fn append(&self, word: &str, scratch: &mut Scratch<'_>, ids: &mut Vec<u32>) -> bool {
        let Some(model) = &self.model else {
            return false;
        };
        if self.is_last(word) || model.needs_reference(word, &scratch.normalized) {
            return false;
        }
        scratch.sequence.clear();
        if !scratch.normalized.starts_with([' ', self.mark]) {
            match self.at_start {
                MarkAtStart::Never => {}
                MarkAtStart::Always => scratch.sequence.push(self.mark),
                MarkAtStart::First => return false,
            }
        }
        let start = ids.len();
        let normalized = std::mem::take(&mut scratch.normalized);
        let mut has_all = true;
        for char in normalized.chars() {
            let is_mark = char == ' ' || char == self.mark;
            if is_mark && !scratch.sequence.is_empty() {
                has_all &= model.append(scratch, ids);
                scratch.sequence.clear();
            }
            scratch
                .sequence
                .push(if is_mark { self.mark } else { char });
        }
        scratch.normalized = normalized;
        has_all &= model.append(scratch, ids);
        if !has_all {
            ids.truncate(start);
        }
        has_all
    }
}

/// Whether the last character of a word is white space or invisible.
#[inline(always)]
fn joins_next(word: &[u8]) -> bool {
    match word.last() {
        None => false,
        Some(byte) if byte.is_ascii() => byte.is_ascii_whitespace() || byte.is_ascii_control(),
        Some(_) => last_char_joins_next(word),
    }
}

#[inline(never)]
fn last_char_joins_next(word: &[u8]) -> bool {
    let start = word.iter().rposition(|&byte| byte & 0xc0 != 0x80);
    let last = std::str::from_utf8(&word[start.unwrap_or(0)..]);
    last.is_ok_and(|last| {
        let invisible = |char: char| {
            matches!(char, '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202f}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}')
        };
        last.chars().any(|char| char.is_whitespace() || invisible(char))
    })
}

/// The pre-tokenizer of a file that has no other than `Metaspace`.
fn only_metaspace(pre_tokenizer: &Value) -> Option<&Value> {
    let step = match pre_tokenizer["pretokenizers"].as_array() {
        Some(steps) if type_of(pre_tokenizer) == "Sequence" => match &steps[..] {
            [step] => step,
            _ => return None,
        },
        _ => pre_tokenizer,
    };
    (type_of(step) == "Metaspace").then_some(step)
}

/// What several spaces become, `None` if they stay.
///
/// # Errors
/// A step may change more than one word, or sees words otherwise than other steps leave them.
fn check_steps(steps: &[&Value], mark: char) -> Result<Option<char>, String> {
    let is_strip = |step: &&Value| type_of(step) == "Strip";
    let space = |step: &Value| {
        let content = step["content"].as_str().unwrap_or_default();
        let char = [' ', mark]
            .into_iter()
            .find(|char| content == char.to_string());
        char.filter(|_| type_of(step) == "Replace" && step["pattern"]["Regex"] == " {2,}")
    };
    let others: Vec<&Value> = steps
        .iter()
        .filter(|step| !is_strip(step))
        .copied()
        .collect();
    let (before, several_spaces) = match others.split_last() {
        Some((last, before)) if space(last).is_some() => (before, space(last)),
        _ => (&others[..], None),
    };
    for step in before {
        check_normalizer(step)?;
        if space(step).is_some() {
            return Err("its normalizer changes texts after the Replace of spaces".to_owned());
        }
    }
    let first = steps
        .iter()
        .position(|step| !is_strip(step) && type_of(step) != "Lowercase")
        .unwrap_or(steps.len());
    let last = steps
        .iter()
        .rposition(|step| !is_strip(step) && space(step).is_none())
        .map_or(0, |last| last + 1);
    if steps[first..last.max(first)].iter().any(is_strip) {
        return Err("its normalizer Strip is between other steps".to_owned());
    }
    Ok(several_spaces)
}

/// The bytes that the normalizer turns into spaces.
///
/// # Errors
/// The normalizer turns a space into something else.
fn separators(
    normalizer: &WordNormalizer,
    several_spaces: Option<char>,
) -> Result<[bool; 256], String> {
    let mut is_separator = [false; 256];
    for byte in SEPARATORS {
        let between = |count: usize| {
            let separators = char::from(byte).to_string().repeat(count);
            let normalized = normalizer.normalized(&format!("a{separators}a"))?;
            let between = normalized.strip_prefix('a')?.strip_suffix('a')?;
            Some(between.to_owned())
        };
        let several = several_spaces.map_or("  ".to_owned(), String::from);
        is_separator[usize::from(byte)] = between(1).is_some_and(|one| one == " ")
            && between(2).is_some_and(|two| two == several);
    }
    if is_separator[usize::from(b' ')] {
        Ok(is_separator)
    } else {
        Err("its normalizer turns ' ' into text".to_owned())
    }
}
