//! What several steps, which are applied one after the other, know between two characters.
//!
//! A step passes on the characters that it reads to the next step, each with whether a word starts at it. It holds back
//! characters for which it does not know that yet:
//!
//! ```text
//! steps   \s?\p{L}+, then \s?\p{P}+
//! text    1 (a    Before "(", the first step does not know whether a match starts at " ". It holds " " back, and with
//!                 "(" it passes on both: none starts there.
//! ```
//!
//! So what all steps know is a state of one automaton (`cascade.rs`). If a step would hold back too much, or if it is not
//! clear which of several matches comes first, the automaton has no transition.

use std::collections::HashMap;

use super::classes::WIDE;
use super::dfa::{DEAD, START, StepDfa, Unit};
use crate::letters::Letters;

/// Characters that all steps together may hold back.
pub(super) const MAX_HELD: usize = 3;

/// Characters that a step holds back after a match that may still become longer. If there are more, it assumes that the
/// match has ended.
const MAX_HELD_IN_MATCH: usize = 1;

/// A character, or a byte after the first one of a character beyond ASCII, as the steps see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Symbol {
    /// Its class for each step.
    classes: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Ascii,
    /// A character beyond ASCII; for steps on bytes, its first byte.
    Wide,
    /// Another byte of such a character, which only steps on bytes read.
    Inner,
}

/// The number of a symbol.
type SymbolId = u8;

/// There is no transition.
#[derive(Debug)]
pub(super) struct Unclear;

/// Characters that a step passes on, each with whether a word starts at it.
type Passed = Vec<(SymbolId, bool)>;

/// What a step knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// Nothing was read.
    Start,
    /// The current word is a match, which ends before `held` or later.
    Match { state: usize, held: Vec<SymbolId> },
    /// A match is assumed to have ended, and `of_next` is the state of the next word. There is no transition if it turns
    /// out to be longer.
    Ended {
        of_longer: usize,
        of_next: Box<State>,
    },
    /// The current word is a match from its start, or it ends before the first match that follows: `held` are the
    /// characters from the first place on at which one may start.
    Unmatched { runs: Vec<Run>, held: Vec<SymbolId> },
}

/// A match that may start at a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Run {
    state: usize,
    /// The place in `held`, or `None` for the start of the word.
    start: Option<usize>,
}

impl State {
    fn num_held(&self) -> usize {
        match self {
            Self::Start => 0,
            Self::Match { held, .. } | Self::Unmatched { held, .. } => held.len(),
            Self::Ended { of_next, .. } => of_next.num_held(),
        }
    }

    /// Whether the last end of a word was assumed.
    pub(super) fn assumes_end(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

/// Passes on all characters. A word starts at `start`.
fn pass_on(held: Vec<SymbolId>, start: Option<usize>, passed: &mut Passed) {
    let all = held.into_iter().enumerate();
    passed.extend(all.map(|(i, symbol)| (symbol, start == Some(i))));
}

/// Steps that are applied one after the other: those on bytes are the last.
pub(super) struct StepsInARow<'a> {
    steps: &'a [StepDfa],
    symbols: Vec<Symbol>,
}

impl<'a> StepsInARow<'a> {
    /// The steps, and which symbol each byte and each character is: of bytes that begin a character beyond ASCII,
    /// [`WIDE`].
    ///
    /// `None` if they tell too many characters apart.
    pub(super) fn new(steps: &'a [StepDfa]) -> Option<(Self, [u8; 256], Vec<u8>)> {
        if !steps.is_sorted_by_key(|step| step.unit == Unit::Bytes) {
            return None;
        }
        let letters = Letters::new();
        let mut letter_of = ['\0'; 256];
        for (byte, letter) in letters.all() {
            letter_of[usize::from(byte)] = letter;
        }
        let mut numbers = HashMap::new();
        let mut symbols = Vec::new();
        let mut number = |scalar: u32, byte: u8, kind: Kind| -> Option<SymbolId> {
            let class = |step: &StepDfa| match step.unit {
                Unit::Chars => step.classes.of_scalar(scalar),
                Unit::Bytes => step.classes.of(letter_of[usize::from(byte)]),
            };
            let classes = steps.iter().map(class).collect();
            let symbol = Symbol { classes, kind };
            let next = symbols.len();
            let number = *numbers.entry(symbol.clone()).or_insert(next);
            if number == next {
                symbols.push(symbol);
            }
            SymbolId::try_from(number).ok()
        };
        let mut of_byte = [WIDE; 256];
        for byte in 0..0xc0 {
            of_byte[usize::from(byte)] = if byte < 0x80 {
                number(u32::from(byte), byte, Kind::Ascii)?
            } else {
                number(0, byte, Kind::Inner)?
            };
        }
        let mut of_char = vec![0; char::MAX as usize + 1];
        let changes = changes(steps);
        for (&first, &end) in changes.iter().zip(&changes[1..]) {
            let symbol = number(first, first_byte(first), Kind::Wide)?;
            of_char[first as usize..end as usize].fill(symbol);
        }
        Some((Self { steps, symbols }, of_byte, of_char))
    }

    pub(super) fn num_symbols(&self) -> usize {
        self.symbols.len()
    }

    pub(super) fn have_bytes(&self) -> bool {
        self.steps.iter().any(|step| step.unit == Unit::Bytes)
    }

    /// At the start of a text.
    pub(super) fn start(&self) -> Vec<State> {
        vec![State::Start; self.steps.len()]
    }

    /// The states after a character, or after the end of the text, and a bit for each place at which a word ends: the last
    /// one of [`MAX_HELD`] + 1 is before the character, the others are so many characters before it.
    pub(super) fn after(
        &self,
        states: &[State],
        symbol: Option<SymbolId>,
    ) -> Result<(Vec<State>, u32), Unclear> {
        let mut states = states.to_vec();
        let mut passed: Passed = symbol.map(|symbol| (symbol, false)).into_iter().collect();
        let kind = symbol.map(|symbol| self.symbols[usize::from(symbol)].kind);
        for (number, state) in states.iter_mut().enumerate() {
            if kind == Some(Kind::Inner) && self.steps[number].unit == Unit::Chars {
                continue;
            }
            let mut next = Vec::new();
            for passed in passed {
                self.read(number, state, passed, &mut next)?;
            }
            if symbol.is_none() {
                self.read_end(number, state, &mut next)?;
            }
            passed = next;
        }
        let num_held: usize = states.iter().map(State::num_held).sum();
        // Places are counted in bytes.
        if num_held > MAX_HELD || num_held > 0 && kind != Some(Kind::Ascii) {
            return Err(Unclear);
        }
        // The last of all is the character itself. The end of the text is after the last.
        let num_all = passed.len() + num_held;
        let last = num_all - usize::from(symbol.is_some());
        let starts = passed.iter().enumerate().filter(|(_, (_, starts))| *starts);
        let ends = starts.fold(0, |ends, (i, _)| ends | 1 << (MAX_HELD - (last - i)));
        Ok((states, ends))
    }

    /// A step reads a character, at which a word of the previous step may start.
    fn read(
        &self,
        number: usize,
        state: &mut State,
        (symbol, starts): (SymbolId, bool),
        passed: &mut Passed,
    ) -> Result<(), Unclear> {
        if starts {
            self.read_end(number, state, passed)?;
            *state = State::Start;
        }
        let step = &self.steps[number];
        let class = self.class(number, symbol);
        *state = match std::mem::replace(state, State::Start) {
            State::Start => {
                passed.push((symbol, true));
                self.first(number, symbol)
            }
            State::Match { state, held } => {
                self.read_in_match(number, (state, held), symbol, passed)?
            }
            State::Unmatched { runs, held } => {
                self.read_unmatched(number, (runs, held), symbol, passed)?
            }
            State::Ended {
                of_longer,
                mut of_next,
            } => {
                let longer = step.dfa.states[of_longer][class];
                if longer.is_match || !step.dfa.may_fail[longer.next] {
                    return Err(Unclear);
                }
                self.read(number, &mut of_next, (symbol, false), passed)?;
                match longer.next {
                    DEAD => *of_next,
                    of_longer => State::Ended { of_longer, of_next },
                }
            }
        };
        Ok(())
    }

    fn class(&self, number: usize, symbol: SymbolId) -> usize {
        usize::from(self.symbols[usize::from(symbol)].classes[number])
    }

    /// After the first character of a word.
    fn first(&self, number: usize, symbol: SymbolId) -> State {
        let dfa = &self.steps[number].dfa;
        let held = Vec::new();
        match dfa.states[START][self.class(number, symbol)].next {
            DEAD => State::Unmatched {
                runs: Vec::new(),
                held,
            },
            state if dfa.may_fail[state] => State::Unmatched {
                runs: vec![Run { state, start: None }],
                held,
            },
            state => State::Match { state, held },
        }
    }

    fn read_in_match(
        &self,
        number: usize,
        (state, mut held): (usize, Vec<SymbolId>),
        symbol: SymbolId,
        passed: &mut Passed,
    ) -> Result<State, Unclear> {
        let dfa = &self.steps[number].dfa;
        let transition = dfa.states[state][self.class(number, symbol)];
        if transition.is_match {
            pass_on(std::mem::take(&mut held), None, passed);
            if transition.next == DEAD {
                passed.push((symbol, true));
                return Ok(self.first(number, symbol));
            }
        }
        held.push(symbol);
        if transition.next == DEAD {
            // The match ends before what was held back.
            return self.read_again(number, held, passed);
        }
        let state = transition.next;
        if !dfa.may_fail[state] {
            pass_on(std::mem::take(&mut held), None, passed);
        }
        if held.len() <= MAX_HELD_IN_MATCH {
            return Ok(State::Match { state, held });
        }
        let of_next = self.read_again(number, held, passed)?;
        Ok(State::Ended {
            of_longer: state,
            of_next: Box::new(of_next),
        })
    }

    /// Reads characters that were held back, at the first of which a word starts.
    fn read_again(
        &self,
        number: usize,
        held: Vec<SymbolId>,
        passed: &mut Passed,
    ) -> Result<State, Unclear> {
        let mut state = State::Start;
        for symbol in held {
            self.read(number, &mut state, (symbol, false), passed)?;
        }
        Ok(state)
    }

    fn read_unmatched(
        &self,
        number: usize,
        (mut runs, mut held): (Vec<Run>, Vec<SymbolId>),
        symbol: SymbolId,
        passed: &mut Passed,
    ) -> Result<State, Unclear> {
        let dfa = &self.steps[number].dfa;
        let class = self.class(number, symbol);
        let start = Some(held.len());
        let mut seen = vec![DEAD];
        let mut left: Vec<Run> = Vec::new();
        runs.push(Run {
            state: START,
            start,
        });
        for Run { state, start } in runs {
            let transition = dfa.states[state][class];
            let state = transition.next;
            if transition.is_match {
                if !left.is_empty() {
                    // An earlier one may still match.
                    return Err(Unclear);
                }
                pass_on(held, start, passed);
                if state != DEAD {
                    let held = vec![symbol];
                    return Ok(State::Match { state, held });
                }
                passed.push((symbol, true));
                return Ok(self.first(number, symbol));
            }
            // Of two in the same state, only the earlier one can become a match.
            if !seen.contains(&state) {
                seen.push(state);
                left.push(Run { state, start });
            }
        }
        held.push(symbol);
        if let Some(&Run { state, start }) = left.first()
            && !dfa.may_fail[state]
        {
            pass_on(held, start, passed);
            return Ok(State::Match {
                state,
                held: Vec::new(),
            });
        }
        let first = left.iter().find_map(|run| run.start).unwrap_or(held.len());
        let rest = held.split_off(first);
        pass_on(held, None, passed);
        for run in &mut left {
            run.start = run.start.map(|start| start - first);
        }
        Ok(State::Unmatched {
            runs: left,
            held: rest,
        })
    }

    /// A word of the previous step, or the text, ends.
    fn read_end(
        &self,
        number: usize,
        state: &mut State,
        passed: &mut Passed,
    ) -> Result<(), Unclear> {
        let step = &self.steps[number];
        let matches_at_end = |state: usize| step.dfa.states[state][step.classes.end()].is_match;
        match std::mem::replace(state, State::Start) {
            State::Start => {}
            State::Match { state, held } if matches_at_end(state) => pass_on(held, None, passed),
            State::Match { held, .. } => {
                let mut of_next = self.read_again(number, held, passed)?;
                self.read_end(number, &mut of_next, passed)?;
            }
            State::Ended { of_longer, .. } if matches_at_end(of_longer) => return Err(Unclear),
            State::Ended { mut of_next, .. } => self.read_end(number, &mut of_next, passed)?,
            State::Unmatched { runs, held } => {
                let run = runs.iter().find(|run| matches_at_end(run.state));
                pass_on(held, run.and_then(|run| run.start), passed);
            }
        }
        Ok(())
    }
}

/// The scalars beyond ASCII at which the class for a step or the first byte may change, and the one after the last.
fn changes(steps: &[StepDfa]) -> Vec<u32> {
    let mut changes = vec![char::MAX as u32 + 1];
    for step in steps {
        let firsts = step.classes.ranges.iter().map(|&(first, ..)| first);
        changes.extend(firsts.filter(|&first| first > 0x80));
    }
    changes.extend((0x80..0x800).step_by(1 << 6));
    changes.extend((0x800..0x1_0000).step_by(1 << 11));
    changes.extend((0x1_0000..=char::MAX as u32).step_by(1 << 16));
    changes.sort_unstable();
    changes.dedup();
    changes
}

/// The first byte of a character beyond ASCII, or of a surrogate.
fn first_byte(scalar: u32) -> u8 {
    let byte = match scalar {
        0..0x800 => 0xc0 | scalar >> 6,
        0x800..0x1_0000 => 0xe0 | scalar >> 12,
        _ => 0xf0 | scalar >> 18,
    };
    byte as u8
}
