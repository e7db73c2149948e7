//! Patterns that are applied one after the other: each splits the words of the one before it, as texts of their own.

use std::ops::Range;

use unicode_categories::UnicodeCategories;

use super::cascade::{Cascade, MAX_PART_BYTES, Reading};
use super::char_set::CharSet;
use super::cuts::Cuts;
use super::dfa::{Dfa, StepDfa, Unit, are_equivalent, is_total};
use super::held::MAX_HELD;
use super::splitting::{Automaton, Progress};
use super::syntax::Node;
use crate::engines::byte_bpe::split::char_table::CharTable;

/// Words that a step finds at once, if there are several steps.
const WORDS_PER_CALL: usize = 16;

/// Parts of a text that are read at the same time.
const NUM_PARTS: usize = 3;

/// Bytes of each part, up to a cut that may be some bytes before or after.
const PART_BYTES: usize = 448;
const BEFORE_CUT: usize = 24;

/// If there are fewer bytes for each part, the text is read in one part.
const MIN_PART_BYTES: usize = 64;

/// If more than one byte in so many is not ASCII, a text is read by the only step.
const BYTES_FOR_EACH_WIDE: usize = 64;

/// Longer words are searched by the next step without a look at their characters.
const MAX_EXAMINED: usize = 32;

/// A step of a pre-tokenizer: what it finds are words, as is what is between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) finds: Finds,
    /// Whether it is applied to the letters that stand for the bytes of the text.
    pub(crate) is_on_bytes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finds {
    /// The matches of a regular expression.
    Regex(String),
    Text(String),
    /// Numbers of the standard library, each or in runs; its Unicode version may be newer than that of expressions.
    Digits {
        each: bool,
    },
    /// Punctuation, each or in runs.
    Punctuation {
        each: bool,
    },
}

impl Step {
    /// A step that is applied to the characters of the text.
    pub(crate) fn new(finds: Finds) -> Self {
        Self {
            finds,
            is_on_bytes: false,
        }
    }

    /// # Errors
    /// What the expression has that cannot be read.
    fn node(&self) -> Result<Node, String> {
        let of_set = |set: CharSet, each: bool| {
            if each {
                Node::Char(set)
            } else {
                Node::run(set)
            }
        };
        Ok(match &self.finds {
            Finds::Regex(pattern) => Node::parse(pattern).map_err(not_read)?,
            Finds::Text(text) => Node::literal(text),
            Finds::Digits { each } => of_set(CharSet::of_those(char::is_numeric), *each),
            Finds::Punctuation { each } => {
                let is_one = |char: char| char.is_ascii_punctuation() || char.is_punctuation();
                of_set(CharSet::of_those(is_one), *each)
            }
        })
    }

    /// # Errors
    /// As for `dfa`.
    #[cfg(test)]
    pub(super) fn automaton(&self) -> Result<Automaton, String> {
        Ok(Automaton::new(&self.dfa()?))
    }

    /// # Errors
    /// The pattern cannot be read, is too large, or may match nothing.
    fn dfa(&self) -> Result<StepDfa, String> {
        let (dfa, classes) = Dfa::of(&self.node()?).map_err(not_read)?;
        Ok(StepDfa {
            dfa,
            classes,
            unit: self.unit(),
        })
    }

    fn unit(&self) -> Unit {
        if self.is_on_bytes {
            Unit::Bytes
        } else {
            Unit::Chars
        }
    }

    /// Whether every character of every text is in a match.
    ///
    /// # Errors
    /// The pattern cannot be read, is too large, or may match nothing.
    pub(crate) fn is_total(&self) -> Result<bool, String> {
        is_total(&self.node()?).map_err(not_read)
    }

    /// Whether every text between matches is white space, and matches neither contain white space nor depend on it.
    ///
    /// # Errors
    /// The pattern cannot be read, is too large, or may match nothing.
    pub(crate) fn separates_at_white_space(&self) -> Result<bool, String> {
        let node = self.node()?;
        let white_space = CharSet::whitespace();
        if node.has_any_or_looks_ahead(&white_space) {
            return Ok(false);
        }
        let with_gaps = Node::Alternatives(vec![node, Node::Char(white_space)]);
        is_total(&with_gaps).map_err(not_read)
    }

    /// Whether both split every text alike.
    ///
    /// # Errors
    /// A pattern cannot be read, or is too large.
    fn is_equivalent(&self, other: &Self) -> Result<bool, String> {
        Ok(self == other
            || self.is_on_bytes == other.is_on_bytes
                && are_equivalent([&self.node()?, &other.node()?]).map_err(not_read)?)
    }
}

/// The reason why this engine does not apply a step: what its pattern has.
fn not_read(what: String) -> String {
    format!("the pattern of its pre-tokenizer has {what}")
}

/// Whether both lists of steps split every text alike.
///
/// # Errors
/// A pattern cannot be read, or is too large.
pub(crate) fn split_alike(steps: &[Step], others: &[Step]) -> Result<bool, String> {
    if steps.len() != others.len() {
        return Ok(false);
    }
    for (step, other) in steps.iter().zip(others) {
        if !step.is_equivalent(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The automata of the steps.
///
/// One automaton for all of them splits nearly every text. Where it has no transition, the steps split the part of the text
/// between two cuts, one after the other.
///
/// Most steps leave most words as they are. Each match of a step ends with one of a few characters, so a word without
/// any of these is not searched.
pub(crate) struct Steps {
    /// `None` if the steps tell too many characters apart.
    cascade: Option<Cascade>,
    automata: Vec<Automaton>,
    cuts: Cuts,
    /// For each byte, a bit for each step with a match that may end with it. For the first byte of a character beyond
    /// ASCII, and of steps that read characters, see `last_chars`.
    last_bytes: [StepBits; 256],
    last_chars: CharTable,
}

/// A bit for each step.
type StepBits = u8;

/// How far a text is split.
#[derive(Default)]
pub(crate) struct StepsProgress {
    reading: Reading,
    /// The progress of the only step, if it reads the text by itself.
    alone: Option<Progress>,
    /// The start of a part between cuts, at `reading` or before it.
    part: usize,
    /// The ends of words that were found and not yet handed out, after the `num_taken` that were.
    ends: Vec<u32>,
    num_taken: usize,
    /// The last end that was handed out.
    last: u32,
    has_given_up: bool,
}

impl StepsProgress {
    /// Moves ends that were found to `ends`, as far as there is room, and returns their number.
    fn hand_out(&mut self, ends: &mut [u32]) -> usize {
        let left = &self.ends[self.num_taken..];
        let num_ends = left.len().min(ends.len());
        ends[..num_ends].copy_from_slice(&left[..num_ends]);
        self.last = left[..num_ends].last().copied().unwrap_or(self.last);
        self.num_taken += num_ends;
        if self.num_taken == self.ends.len() {
            self.ends.clear();
            self.num_taken = 0;
        }
        num_ends
    }

    /// Whether the words that were found last are not those of the patterns, because finding them takes too long.
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}

impl Steps {
    /// # Errors
    /// A pattern cannot be read, is too large, may match nothing, or there are too many.
    pub(crate) fn new(steps: &[Step]) -> Result<Self, String> {
        if steps.len() > StepBits::BITS as usize {
            return Err(format!(
                "its pre-tokenizer has more than {} steps",
                StepBits::BITS
            ));
        }
        let dfas: Vec<StepDfa> = steps.iter().map(Step::dfa).collect::<Result<_, _>>()?;
        let automata: Vec<Automaton> = dfas.iter().map(Automaton::new).collect();
        let mut last_bytes = [0; 256];
        let mut last_chars = vec![0; char::MAX as usize + 1];
        for (number, automaton) in automata.iter().enumerate() {
            automaton.mark_last(1 << number, &mut last_bytes, &mut last_chars);
        }
        Ok(Self {
            cascade: Cascade::new(&dfas),
            cuts: Cuts::of(&automata),
            automata,
            last_bytes,
            last_chars: CharTable::new(&last_chars),
        })
    }

    #[cfg(test)]
    pub(super) fn has_one_automaton(&self) -> bool {
        self.cascade.is_some()
    }

    /// Without the automaton for all steps. Tests compare the words that it finds with those of the steps.
    #[cfg(test)]
    pub(super) fn one_after_the_other(steps: &[Step]) -> Result<Self, String> {
        Ok(Self {
            cascade: None,
            ..Self::new(steps)?
        })
    }

    /// Whether splitting takes time linear in the length of a text.
    pub(crate) fn are_linear(&self) -> bool {
        self.automata.iter().all(Automaton::is_linear)
    }

    /// Writes the ends of the next words to `ends`, and returns their number; 0 at the end of the text.
    #[inline(never)]
    pub(crate) fn fill(
        &self,
        text: &[u8],
        progress: &mut StepsProgress,
        ends: &mut [u32],
    ) -> usize {
        if let [automaton] = &self.automata[..] {
            let is_begun = progress.alone.is_some() || progress.reading.at > 0;
            if !is_begun && self.is_read_alone(text) {
                progress.alone = Some(automaton.begin(0));
            }
            if let Some(alone) = &mut progress.alone {
                let num_ends = automaton.fill(text, alone, ends);
                progress.has_given_up = alone.has_given_up();
                return num_ends;
            }
        }
        let mut num_ends = progress.hand_out(ends);
        while num_ends < ends.len() && progress.reading.at < text.len() && !progress.has_given_up {
            match &self.cascade {
                Some(cascade) => self.find_more(cascade, text, progress),
                None => self.find_slowly(text, progress),
            }
            num_ends += progress.hand_out(&mut ends[num_ends..]);
        }
        num_ends
    }

    /// Whether the only step reads a text by itself. This takes less time if few groups of bytes are ASCII, since the
    /// automaton of the step does not read each byte of a character.
    fn is_read_alone(&self, text: &[u8]) -> bool {
        if self.cascade.is_none() {
            return true;
        }
        let of_chunk = |chunk: &[u8]| usize::from(chunk.iter().map(|byte| byte >> 7).sum::<u8>());
        let num_wide: usize = text.chunks(64).map(of_chunk).sum();
        num_wide > text.len() / BYTES_FOR_EACH_WIDE
    }

    /// Finds the words of the next bytes, in several parts at the same time if there are cuts.
    fn find_more(&self, cascade: &Cascade, text: &[u8], progress: &mut StepsProgress) {
        let start = progress.reading.at;
        let part_bytes = ((text.len() - start) / NUM_PARTS).min(PART_BYTES);
        if part_bytes >= MIN_PART_BYTES
            && let Some(parts) = self.parts(text, start, part_bytes)
        {
            return self.find_in_parts(cascade, text, progress, &parts);
        }
        let part = start..text.len().min(start + PART_BYTES);
        self.find_in_parts(cascade, text, progress, std::array::from_ref(&part));
    }

    /// Parts of about so many bytes.
    fn parts(
        &self,
        text: &[u8],
        start: usize,
        num_bytes: usize,
    ) -> Option<[Range<usize>; NUM_PARTS]> {
        let mut start = start;
        let mut parts = [const { 0..0 }; NUM_PARTS];
        for part in &mut parts[..NUM_PARTS - 1] {
            let until = text.len().min(start + MAX_PART_BYTES);
            let least = start + num_bytes - BEFORE_CUT;
            let end = self.cuts.end_of_part(&self.automata, &text[..until], least);
            if end == until {
                return None;
            }
            *part = start..end;
            start = end;
        }
        parts[NUM_PARTS - 1] = start..text.len().min(start + num_bytes);
        Some(parts)
    }

    /// Finds the words of parts. The first continues what was read before; before the others, the text can be cut.
    fn find_in_parts<const N: usize>(
        &self,
        cascade: &Cascade,
        text: &[u8],
        progress: &mut StepsProgress,
        parts: &[Range<usize>; N],
    ) {
        let results = cascade.read(text, progress.reading, parts);
        for (number, (result, part)) in results.iter().zip(parts).enumerate() {
            if number > 0 {
                progress.reading = Reading::new(part.start);
                progress.part = part.start;
            }
            let StepsProgress { reading, ends, .. } = progress;
            let mut is_read = cascade.append(text, result, part, reading, ends);
            let ends_text = number + 1 < N || part.end == text.len();
            loop {
                let StepsProgress { reading, ends, .. } = progress;
                if is_read && reading.is_within_part() {
                    is_read = if ends_text {
                        cascade.read_end(reading, ends)
                    } else {
                        cascade.is_certain(reading)
                    };
                }
                if is_read {
                    break;
                }
                self.find_slowly(text, progress);
                if progress.has_given_up {
                    return;
                }
                let StepsProgress { reading, ends, .. } = progress;
                let left = reading.at..part.end;
                is_read = left.is_empty() || {
                    let [result] = cascade.read(text, *reading, std::array::from_ref(&left));
                    cascade.append(text, &result, &left, reading, ends)
                };
            }
        }
    }

    /// Finds the words from the last cut before the current place to the next one, by one step after the other.
    #[inline(never)]
    fn find_slowly(&self, text: &[u8], progress: &mut StepsProgress) {
        // All ends before it are known: none is that of a character that is held back.
        let known = (progress.reading.at + 1).saturating_sub(MAX_HELD);
        let (automata, part) = (&self.automata, progress.part);
        let start = self.cuts.start_of_part(automata, text, part, known);
        let end = self.cuts.end_of_part(&self.automata, text, start);
        let ends = &mut progress.ends;
        ends.truncate(ends.partition_point(|&end| end as usize <= start));
        let last = ends.last().copied().unwrap_or(progress.last);
        let mut of_part = vec![start as u32];
        progress.has_given_up = self.push_words(
            &text[..end],
            0,
            StepBits::MAX >> (StepBits::BITS as usize - self.automata.len()),
            &mut self.automata[0].begin(start),
            &mut of_part,
        );
        // Some may have been found and handed out before.
        ends.extend(of_part.into_iter().filter(|&end| end > last));
        (progress.reading, progress.part) = (Reading::new(end), end);
    }

    /// Appends the ends of the words of the steps from `step` on. Returns whether a step has given up.
    fn push_words(
        &self,
        text: &[u8],
        step: usize,
        bits: StepBits,
        progress: &mut Progress,
        ends: &mut Vec<u32>,
    ) -> bool {
        let mut of_step = [0; WORDS_PER_CALL];
        loop {
            let mut start = progress.word();
            let num_some = self.automata[step].fill(text, progress, &mut of_step);
            if num_some == 0 || progress.has_given_up() {
                return progress.has_given_up();
            }
            for end in of_step[..num_some].iter().map(|&end| end as usize) {
                let word = &text[start..end];
                let last = match word.len() {
                    // No step can split it.
                    1 => 0,
                    2..=MAX_EXAMINED => self.last(word),
                    _ => StepBits::MAX,
                };
                let bits = bits & last & StepBits::MAX << step << 1;
                if bits == 0 {
                    ends.push(end as u32);
                } else {
                    let next = bits.trailing_zeros() as usize;
                    let progress = &mut self.automata[next].begin(start);
                    if self.push_words(&text[..end], next, bits, progress, ends) {
                        return true;
                    }
                }
                start = end;
            }
        }
    }

    /// The steps that may match anything in a word.
    #[inline]
    fn last(&self, word: &[u8]) -> StepBits {
        let mut bits = 0;
        for (at, &byte) in word.iter().enumerate() {
            bits |= self.last_bytes[usize::from(byte)];
            if byte >= 0xc0 {
                bits |= self.last_chars.of_wide(word, at);
            }
        }
        bits
    }
}
