//! Patterns that are applied one after the other: each splits the words of the one before it, as texts of their own.

use unicode_categories::UnicodeCategories;

use super::char_set::CharSet;
use super::cuts::Cuts;
use super::dfa::{are_equivalent, is_total};
use super::splitting::{Automaton, Progress, Unit};
use super::syntax::Node;
use crate::engines::byte_bpe::split::char_table::CharTable;

/// Words that a step finds at once, if there are several steps.
const WORDS_PER_CALL: usize = 16;

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
    /// The pattern cannot be read, is too large, or may match nothing.
    pub(super) fn automaton(&self) -> Result<Automaton, String> {
        Automaton::new(&self.node()?, self.unit()).map_err(not_read)
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
/// Most steps leave most words as they are. Each match of a step ends with one of a few characters, so a word without
/// any of these is not searched.
pub(crate) struct Steps {
    automata: Vec<Automaton>,
    /// For several steps: where a text can be cut, if a space and letters between cuts are one word.
    cuts: Option<Cuts>,
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
    first: Option<Progress>,
    /// The start of the next part between cuts.
    part: usize,
    /// The ends of the words that were found, and the number of those that were handed out.
    ends: Vec<u32>,
    num_taken: usize,
    has_given_up: bool,
}

impl StepsProgress {
    /// Moves ends that were found to `ends`, as far as there is room, and returns their number.
    fn hand_out(&mut self, ends: &mut [u32]) -> usize {
        let left = &self.ends[self.num_taken..];
        let num_ends = left.len().min(ends.len());
        ends[..num_ends].copy_from_slice(&left[..num_ends]);
        self.num_taken += num_ends;
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
        let automata: Vec<Automaton> = steps
            .iter()
            .map(Step::automaton)
            .collect::<Result<_, _>>()?;
        let mut last_bytes = [0; 256];
        let mut last_chars = vec![0; char::MAX as usize + 1];
        for (number, automaton) in automata.iter().enumerate() {
            automaton.mark_last(1 << number, &mut last_bytes, &mut last_chars);
        }
        let has_cuts = automata.len() > 1 && automata.iter().all(Automaton::keeps_letters);
        Ok(Self {
            cuts: has_cuts.then(|| Cuts::of(&automata)),
            automata,
            last_bytes,
            last_chars: CharTable::new(&last_chars),
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
        if let Some(cuts) = &self.cuts {
            return self.fill_from_parts(cuts, text, progress, ends);
        }
        let Some((automaton, others)) = self.automata.split_first() else {
            return 0;
        };
        let first = progress.first.get_or_insert_with(|| automaton.begin(0));
        if others.is_empty() {
            let num_ends = automaton.fill(text, first, ends);
            progress.has_given_up |= first.has_given_up();
            return num_ends;
        }
        if progress.num_taken == progress.ends.len() {
            progress.ends.clear();
            progress.num_taken = 0;
            progress.has_given_up |= self.push_words(
                text,
                0,
                self.all_steps(),
                first,
                WORDS_PER_CALL,
                &mut progress.ends,
            );
        }
        progress.hand_out(ends)
    }

    fn all_steps(&self) -> StepBits {
        StepBits::MAX >> (StepBits::BITS as usize - self.automata.len())
    }

    /// As [`Steps::fill`], part by part. Most parts are a word of letters, in which no step finds an end.
    fn fill_from_parts(
        &self,
        cuts: &Cuts,
        text: &[u8],
        progress: &mut StepsProgress,
        ends: &mut [u32],
    ) -> usize {
        let mut num_ends = progress.hand_out(ends);
        while num_ends < ends.len() && progress.part < text.len() && !progress.has_given_up {
            let start = progress.part;
            if let Some(end) = cuts.end_of_letters(text, start) {
                ends[num_ends] = end as u32;
                num_ends += 1;
                progress.part = end;
                continue;
            }
            let end = cuts.end_of_part(&self.automata, text, start);
            progress.part = end;
            progress.ends.clear();
            progress.num_taken = 0;
            progress.has_given_up = self.push_words(
                &text[..end],
                0,
                self.all_steps(),
                &mut self.automata[0].begin(start),
                usize::MAX,
                &mut progress.ends,
            );
            num_ends += progress.hand_out(&mut ends[num_ends..]);
        }
        num_ends
    }

    /// Appends the ends of the words of the steps from `step` on, in at most `most` words of this step. Returns whether
    /// a step has given up.
    fn push_words(
        &self,
        text: &[u8],
        step: usize,
        bits: StepBits,
        progress: &mut Progress,
        most: usize,
        ends: &mut Vec<u32>,
    ) -> bool {
        let mut of_step = [0; WORDS_PER_CALL];
        let mut num_words = 0;
        while num_words < most {
            let mut start = progress.word();
            let num_some = self.automata[step].fill(text, progress, &mut of_step);
            if num_some == 0 || progress.has_given_up() {
                return progress.has_given_up();
            }
            num_words += num_some;
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
                    if self.push_words(&text[..end], next, bits, progress, usize::MAX, ends) {
                        return true;
                    }
                }
                start = end;
            }
        }
        false
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
