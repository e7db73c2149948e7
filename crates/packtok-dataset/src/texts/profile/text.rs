//! The figures about texts.

use regex::bytes::Regex;

use super::largest::{Counter, Largest, RepeatCounter};
use super::letters::{CONTROL, Classes, NUM_CLASSES, REPLACEMENT, ends_word, script_names};
use super::patterns::{EMAIL, KEY, num_phones};
use super::repetition::Repetition;
use super::report::{Place, Script, TextFigures, Word};

/// The share of bytes in repeated lines above which a document counts as repetitive. From the rules of
/// MassiveText: Rae et al., "Scaling Language Models: Methods, Analysis & Insights from Training Gopher"
/// (2021), table A1.
const LINES_LIMIT: f64 = 0.2;
/// Characters of a long word that are kept.
const WORD_CHARS: usize = 100;

/// Collects the figures.
pub(super) struct TextCounter {
    classes: Classes,
    bytes: u64,
    /// Letters by class of letters.
    letters: Vec<Counter>,
    repeated_lines: RepeatCounter,
    emails: Counter,
    phones: Counter,
    keys: Counter,
    control_characters: Counter,
    replacement_characters: Counter,
    longest_words: Largest<(u64, String)>,
}

impl TextCounter {
    pub(super) fn new() -> Self {
        Self {
            classes: Classes::new(),
            bytes: 0,
            letters: script_names().map(|_| Counter::default()).collect(),
            repeated_lines: RepeatCounter::new(LINES_LIMIT),
            emails: Counter::default(),
            phones: Counter::default(),
            keys: Counter::default(),
            control_characters: Counter::default(),
            replacement_characters: Counter::default(),
            longest_words: Largest::default(),
        }
    }

    pub(super) fn add(&mut self, document: u64, text: &str, repetition: &mut Repetition) {
        self.bytes += text.len() as u64;
        self.add_characters(document, text);
        self.repeated_lines.add(document, repetition.of_lines(text));
        let bytes = text.as_bytes();
        let number = |pattern: &Regex| pattern.find_iter(bytes).count() as u64;
        self.emails.add(document, number(&EMAIL));
        self.phones.add(document, num_phones(bytes));
        self.keys.add(document, number(&KEY));
    }

    fn add_characters(&mut self, document: u64, text: &str) {
        let mut counts = [0u64; NUM_CLASSES];
        let mut word_start = 0;
        for (at, char) in text.char_indices() {
            let class = self.classes.of(char);
            counts[usize::from(class)] += 1;
            if ends_word(class) {
                self.add_word(document, &text[word_start..at]);
                word_start = at + char.len_utf8();
            }
        }
        self.add_word(document, &text[word_start..]);
        for (counter, count) in self.letters.iter_mut().zip(counts) {
            counter.add(document, count);
        }
        self.control_characters
            .add(document, counts[usize::from(CONTROL)]);
        self.replacement_characters
            .add(document, counts[usize::from(REPLACEMENT)]);
    }

    /// Adds a word if it is one of the longest. The list has each word once.
    fn add_word(&mut self, document: u64, word: &str) {
        // A word has at most as many characters as bytes.
        if word.is_empty() || !self.longest_words.has_room(word.len() as u64) {
            return;
        }
        let characters = word.chars().count() as u64;
        let start: String = word.chars().take(WORD_CHARS).collect();
        let is_same =
            |(key, (_, other)): &(u64, (u64, String))| *key == characters && *other == start;
        if !self.longest_words.iter().any(is_same) {
            self.longest_words.add(characters, (document, start));
        }
    }

    pub(super) fn figures(&self, place: impl Fn(u64) -> Place) -> TextFigures {
        let figure = |counter: &Counter| counter.figure(&place);
        let mut scripts: Vec<Script> = script_names()
            .zip(&self.letters)
            .map(|(script, counter)| Script {
                script,
                figure: figure(counter),
            })
            .filter(|script| script.figure.occurrences > 0)
            .collect();
        // Stable, so that equal numbers have a fixed order.
        scripts.sort_by_key(|script| std::cmp::Reverse(script.figure.occurrences));
        let words = self.longest_words.iter();
        TextFigures {
            bytes: self.bytes,
            letters: scripts.iter().map(|script| script.figure.occurrences).sum(),
            scripts,
            repeated_lines: self.repeated_lines.repeats(&place),
            emails: figure(&self.emails),
            phones: figure(&self.phones),
            keys: figure(&self.keys),
            control_characters: figure(&self.control_characters),
            replacement_characters: figure(&self.replacement_characters),
            longest_words: words
                .map(|(characters, (number, start))| Word {
                    place: place(*number),
                    characters: *characters,
                    start: start.clone(),
                })
                .collect(),
        }
    }
}
