//! Splits texts at the matches of a pattern.

use super::classes::WIDE;
use super::dfa::{DEAD, Dfa, START, StepDfa, Unit};
use crate::engines::byte_bpe::split::char_table::CharTable;
use crate::letters::Letters;

/// A transition: the flags, and above them where the row of the next state starts.
type Packed = u32;

/// The pattern matches what was read before the character.
const MATCH: Packed = 1;
/// That match is a word, and the character is the first of the next word.
const BOUNDARY: Packed = 1 << 1;
/// No match is left, and none ends here or none begins.
const STUCK: Packed = 1 << 2;
const FLAG_BITS: u32 = 3;

/// What a pattern knows between two characters about the text before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// Words that follow may depend on it.
    Remembers,
    Forgets,
    /// It is forgotten, and a match ends.
    Ends,
}

/// The matches of a pattern in a text, and what is between them, are words.
pub(super) struct Automaton {
    /// The class of each byte, or [`WIDE`].
    of_byte: [u8; 256],
    /// The classes of characters; of a pattern that is applied to bytes, not used.
    of_char: CharTable,
    /// By state and class, a row for each state.
    transitions: Vec<Packed>,
    /// The row of the state that has read nothing.
    start: Packed,
    end_class: usize,
    /// For each byte, whether a character that it begins may begin a match.
    may_start: [bool; 256],
    /// For each class, whether a match may end with it.
    is_last: Vec<bool>,
    is_linear: bool,
}

/// A text falls back if this many times the length of it, or of a part of it, is read in vain. Only patterns that are
/// not linear can exceed it, on texts that are several times as long.
const MAX_IN_VAIN: usize = 256;

/// How far a text, or a part of it, is split.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    /// The start of the text, or of the part of it.
    start: usize,
    /// Bytes that were read more than once.
    in_vain: usize,
    has_given_up: bool,
    /// The next character.
    at: usize,
    /// The start of the current word.
    word: usize,
    /// The end of the longest match from there that is known; `word` if there is none.
    last_match: usize,
    /// The row of the current state.
    row: Packed,
}

impl Progress {
    /// Whether the words that were found last are not those of the pattern, because finding them takes too long.
    pub(super) fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// The start of the current word.
    pub(super) fn word(&self) -> usize {
        self.word
    }
}

impl Automaton {
    pub(super) fn new(step: &StepDfa) -> Self {
        let StepDfa { dfa, classes, unit } = step;
        let mut of_byte = [WIDE; 256];
        match unit {
            Unit::Chars => {
                for byte in 0..0x80 {
                    of_byte[usize::from(byte)] = classes.of(char::from(byte));
                }
            }
            Unit::Bytes => {
                for (byte, letter) in Letters::new().all() {
                    of_byte[usize::from(byte)] = classes.of(letter);
                }
            }
        }
        let mut of_char = vec![0; char::MAX as usize + 1];
        for &(first, last, class) in &classes.ranges {
            of_char[first as usize..=last as usize].fill(class);
        }
        let (transitions, start) = packed(dfa);
        let may_start = of_byte
            .map(|class| class == WIDE || dfa.states[START][usize::from(class)].next != DEAD);
        Self {
            may_start,
            of_byte,
            of_char: CharTable::new(&of_char),
            transitions,
            start,
            end_class: classes.end(),
            is_last: dfa.last_classes(),
            is_linear: dfa.is_linear(),
        }
    }

    /// Whether splitting takes time linear in the length of a text.
    pub(super) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// At the start of a text, or of a part that is split as a text of its own.
    pub(super) fn begin(&self, at: usize) -> Progress {
        Progress {
            start: at,
            in_vain: 0,
            has_given_up: false,
            at,
            word: at,
            last_match: at,
            row: self.start,
        }
    }

    /// Sets `bit` for each byte and character that a match may end with; of a pattern that is applied to bytes, for
    /// bytes only.
    pub(super) fn mark_last(&self, bit: u8, last_bytes: &mut [u8; 256], last_chars: &mut [u8]) {
        let may_be_last = |class: u8| self.is_last[usize::from(class)];
        for (byte, bits) in last_bytes.iter_mut().enumerate() {
            if self.of_byte[byte] != WIDE && may_be_last(self.of_byte[byte]) {
                *bits |= bit;
            }
        }
        if self.of_byte.contains(&WIDE) {
            for (scalar, bits) in last_chars.iter_mut().enumerate().skip(0x80) {
                if may_be_last(self.of_char.of(scalar)) {
                    *bits |= bit;
                }
            }
        }
    }

    /// The class of the character at `at`; of a pattern that is applied to bytes, that of its last byte.
    pub(super) fn last_class(&self, text: &[u8], at: usize) -> usize {
        let (class, len) = self.class(text, at);
        let last = at
            + if text[at] < 0x80 {
                0
            } else {
                len_of_wide(text[at]) - 1
            };
        if len == 1 && last > at {
            return self.class(text, last).0;
        }
        class
    }

    /// What this knows between a character of each class and a character of ASCII.
    pub(super) fn between(&self, next: u8) -> Vec<Between> {
        let next = usize::from(self.of_byte[usize::from(next)]);
        let row_len = self.end_class + 1;
        let is_stuck = |transition: Packed| transition & (BOUNDARY | STUCK) != 0;
        // Nothing that was read leads on, and whether it is a match does not depend on whether the text continues.
        let is_forgotten = |row: usize| {
            let transition = self.transitions[row + next];
            let at_end = self.transitions[row + self.end_class];
            is_stuck(transition) && (transition ^ at_end) & MATCH == 0
        };
        let of_class = |class: usize| {
            let mut entered = self
                .transitions
                .chunks(row_len)
                .map(|row| row[class])
                .filter(|transition| transition & STUCK == 0)
                .map(|transition| (transition >> FLAG_BITS) as usize);
            let alone = self.transitions[self.start as usize + class];
            if !entered.all(is_forgotten) {
                Between::Remembers
            } else if alone & STUCK == 0
                && self.transitions[(alone >> FLAG_BITS) as usize + next] & MATCH != 0
            {
                // The character is in a match, at least in one of its own.
                Between::Ends
            } else {
                Between::Forgets
            }
        };
        (0..self.end_class).map(of_class).collect()
    }

    /// Writes the ends of the next words to `ends`, and returns their number. It is less than there is room only at the
    /// end of the text, and 0 after it.
    #[inline]
    pub(super) fn fill(&self, text: &[u8], progress: &mut Progress, ends: &mut [u32]) -> usize {
        let Progress {
            mut at,
            mut word,
            mut last_match,
            mut row,
            ..
        } = *progress;
        let most_in_vain = MAX_IN_VAIN * (text.len() - progress.start);
        let mut num_ends = 0;
        while num_ends < ends.len() && word < text.len() {
            // While each match begins where the one before it ends.
            let num_before = num_ends;
            let mut transition = STUCK;
            while at < text.len() {
                let (class, len) = self.class(text, at);
                transition = self.transitions[row as usize + class];
                if transition & STUCK != 0 || num_ends == ends.len() {
                    break;
                }
                if transition & MATCH != 0 {
                    last_match = at;
                }
                // Written in any case, so that the end of a word costs no branch.
                ends[num_ends] = at as u32;
                num_ends += usize::from(transition & BOUNDARY != 0);
                row = transition >> FLAG_BITS;
                at += len;
            }
            if num_ends > num_before {
                word = ends[num_ends - 1] as usize;
            }
            if num_ends == ends.len() {
                break;
            }
            if at == text.len() {
                transition = self.transitions[row as usize + self.end_class];
            }
            // No match is left.
            if transition & MATCH != 0 {
                last_match = at;
            }
            let read = at - word;
            word = if last_match > word {
                progress.in_vain += read - (last_match - word);
                last_match
            } else {
                self.end_of_gap(text, word, &mut progress.in_vain, most_in_vain)
            };
            if progress.in_vain > most_in_vain {
                progress.has_given_up = true;
                word = text.len();
            }
            ends[num_ends] = word as u32;
            num_ends += 1;
            (at, last_match, row) = (word, word, self.start);
        }
        *progress = Progress {
            at,
            word,
            last_match,
            row,
            ..*progress
        };
        num_ends
    }

    /// The position of the next match, or the end of the text, if no match starts at `at`. Stops early if more than
    /// `most_in_vain` bytes are read in vain.
    fn end_of_gap(
        &self,
        text: &[u8],
        mut at: usize,
        in_vain: &mut usize,
        most_in_vain: usize,
    ) -> usize {
        at += self.class(text, at).1;
        while let Some(&byte) = text.get(at) {
            if self.may_start[usize::from(byte)] {
                let (is_match, end) = self.match_at(text, at);
                if is_match || *in_vain > most_in_vain {
                    break;
                }
                *in_vain += end - at;
            }
            at += self.len_of_char(byte);
        }
        at
    }

    /// Whether a match starts at `at`, and how far it was read to know that.
    fn match_at(&self, text: &[u8], mut at: usize) -> (bool, usize) {
        let mut row = self.start;
        while at < text.len() {
            let (class, len) = self.class(text, at);
            let transition = self.transitions[row as usize + class];
            if transition & (MATCH | STUCK) != 0 {
                return (transition & MATCH != 0, at);
            }
            row = transition >> FLAG_BITS;
            at += len;
        }
        let transition = self.transitions[row as usize + self.end_class];
        (transition & MATCH != 0, at)
    }

    /// The class of the character at `at`, and its length.
    #[inline(always)]
    fn class(&self, text: &[u8], at: usize) -> (usize, usize) {
        let byte = text[at];
        match self.of_byte[usize::from(byte)] {
            WIDE => {
                let class = self.of_char.of_wide(text, at);
                (usize::from(class), len_of_wide(byte))
            }
            class => (usize::from(class), 1),
        }
    }

    /// The length of a character with this first byte.
    #[inline]
    fn len_of_char(&self, byte: u8) -> usize {
        match self.of_byte[usize::from(byte)] {
            WIDE => len_of_wide(byte),
            _ => 1,
        }
    }
}

/// The length of a character beyond ASCII with this first byte.
#[inline]
fn len_of_wide(byte: u8) -> usize {
    match byte {
        0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// The transitions, row after row, and the row of the state that has read nothing.
fn packed(dfa: &Dfa) -> (Vec<Packed>, Packed) {
    let row_len = dfa.states[START].len();
    let row = |state: usize| (state * row_len) as Packed;
    let mut all = Vec::with_capacity(dfa.states.len() * row_len);
    for transitions in &dfa.states {
        for (class, transition) in transitions.iter().enumerate() {
            let is_match = if transition.is_match { MATCH } else { 0 };
            let first = dfa.states[START][class];
            all.push(match (transition.next, first.next) {
                (DEAD, DEAD) => is_match | STUCK,
                (DEAD, next) if transition.is_match => row(next) << FLAG_BITS | MATCH | BOUNDARY,
                (DEAD, _) => STUCK,
                (next, _) => row(next) << FLAG_BITS | is_match,
            });
        }
    }
    (all, row(START))
}
