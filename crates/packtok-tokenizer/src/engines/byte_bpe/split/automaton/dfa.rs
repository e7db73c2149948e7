//! The automaton of a program: one state for each list of instructions that may be reached, in the order of
//! preference.
//!
//! A state has read a character. Whether the match ends after it may depend on the next one, so each transition
//! says that for the place before its character.

use std::collections::{HashMap, HashSet};

use super::classes::Classes;
use super::program::{Address, Instruction, Program, Sets};
use super::syntax::Node;

/// More states are refused.
const MAX_STATES: usize = 4000;

/// Pairs of more states are not examined.
const MAX_STATES_FOR_PAIRS: usize = 200;

/// No match is left.
pub(super) const DEAD: usize = 0;
/// Nothing was read.
pub(super) const START: usize = 1;

#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) next: usize,
    /// Whether the pattern matches what was read before this character, and perhaps nothing longer.
    pub(super) is_match: bool,
}

/// What a pattern is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Chars,
    /// The letters that stand for bytes in byte-level vocabularies.
    Bytes,
}

/// The automaton of a step.
pub(super) struct StepDfa {
    pub(super) dfa: Dfa,
    pub(super) classes: Classes,
    pub(super) unit: Unit,
}

pub(super) struct Dfa {
    /// For each state, the transitions by class, the end included.
    pub(super) states: Vec<Vec<Transition>>,
    /// For each state, whether the text may continue so that no match follows. If not, the current match ends where the
    /// state is reached, or later.
    pub(super) may_fail: Vec<bool>,
}

impl Dfa {
    /// The automaton of a pattern, and the classes that it tells apart.
    ///
    /// # Errors
    /// The pattern may match nothing, or is too large.
    pub(super) fn of(node: &Node) -> Result<(Self, Classes), String> {
        if node.is_nullable() {
            return Err("a match of no character".to_owned());
        }
        let mut sets = Sets::default();
        let program = Program::new(node, &mut sets)?;
        let classes = Classes::new(&sets)?;
        Ok((Self::new(&program, &classes)?, classes))
    }

    fn new(program: &Program, classes: &Classes) -> Result<Self, String> {
        let mut numbers = HashMap::from([(vec![], DEAD), (vec![program.start], START)]);
        let mut lists = vec![vec![], vec![program.start]];
        let mut states = Vec::new();
        while states.len() < lists.len() {
            let list = lists[states.len()].clone();
            let mut transitions = Vec::with_capacity(classes.len() + 1);
            for class in 0..=classes.end() {
                let (list, is_match) = step(program, classes, &list, class);
                let next = *numbers.entry(list).or_insert_with_key(|list| {
                    lists.push(list.clone());
                    lists.len() - 1
                });
                transitions.push(Transition { next, is_match });
            }
            states.push(transitions);
            if lists.len() > MAX_STATES {
                return Err(format!("more than {MAX_STATES} states"));
            }
        }
        let may_fail = may_fail(&states);
        // If another match follows for certain, this one does not matter. Without it, patterns have the same automaton
        // whether their repetitions are possessive or not.
        for transition in states.iter_mut().flatten() {
            transition.is_match &= may_fail[transition.next];
        }
        Ok(Self { states, may_fail })
    }

    /// For each class, whether a match may end with it.
    pub(super) fn last_classes(&self) -> Vec<bool> {
        let ends_before = |state: usize| {
            self.states[state]
                .iter()
                .any(|transition| transition.is_match)
        };
        let num_classes = self.states[START].len();
        let may_be_last = |class: usize| {
            let mut states = self.states.iter();
            states.any(|transitions| ends_before(transitions[class].next))
        };
        (0..num_classes).map(may_be_last).collect()
    }

    /// Whether a text is split in time linear in its length: whether no characters, however many, are read in vain
    /// both for a word and for the next one.
    pub(super) fn is_linear(&self) -> bool {
        if self.states.len() > MAX_STATES_FOR_PAIRS {
            return false;
        }
        let continues_in_vain = |transition: &Transition| {
            !transition.is_match && transition.next != DEAD && self.may_fail[transition.next]
        };
        // Pairs of states of two words that are read at the same place, the later of which starts after the last match
        // of the other.
        let mut next_pairs: HashMap<(usize, usize), Vec<(usize, usize)>> = HashMap::new();
        let mut waiting: Vec<(usize, usize)> = (START..self.states.len())
            .map(|state| (state, START))
            .collect();
        while let Some(pair) = waiting.pop() {
            if next_pairs.contains_key(&pair) {
                continue;
            }
            let mut in_vain = Vec::new();
            for (first, second) in self.states[pair.0].iter().zip(&self.states[pair.1]) {
                if continues_in_vain(first) && second.next != DEAD {
                    waiting.push((first.next, second.next));
                    if continues_in_vain(second) {
                        in_vain.push((first.next, second.next));
                    }
                }
            }
            next_pairs.insert(pair, in_vain);
        }
        // A circle is left if pairs that lead to no other are removed until there are none.
        loop {
            let num_before = next_pairs.len();
            let ends: HashSet<(usize, usize)> = next_pairs
                .iter()
                .filter(|(_, next)| next.iter().all(|pair| !next_pairs.contains_key(pair)))
                .map(|(&pair, _)| pair)
                .collect();
            next_pairs.retain(|pair, _| !ends.contains(pair));
            if next_pairs.len() == num_before {
                return next_pairs.is_empty();
            }
        }
    }
}

/// For each state, whether a path without a match leads to the end of all matches.
fn may_fail(states: &[Vec<Transition>]) -> Vec<bool> {
    let mut may_fail = vec![false; states.len()];
    may_fail[DEAD] = true;
    loop {
        let mut has_changed = false;
        for (state, transitions) in states.iter().enumerate() {
            let fails = |transition: &Transition| !transition.is_match && may_fail[transition.next];
            if !may_fail[state] && transitions.iter().any(fails) {
                may_fail[state] = true;
                has_changed = true;
            }
        }
        if !has_changed {
            return may_fail;
        }
    }
}

/// Whether every character of every text is in a match.
///
/// # Errors
/// The pattern may match nothing, or is too large.
pub(super) fn is_total(node: &Node) -> Result<bool, String> {
    let (dfa, _) = Dfa::of(node)?;
    let (_end, of_chars) = dfa.states[START].split_last().expect("the end is a class");
    Ok(of_chars.iter().all(|first| !dfa.may_fail[first.next]))
}

/// The list after a character of this class, and whether the pattern matches what was read before it.
fn step(
    program: &Program,
    classes: &Classes,
    list: &[Address],
    class: usize,
) -> (Vec<Address>, bool) {
    let mut seen = vec![false; program.instructions.len()];
    let mut after = Vec::new();
    // The last is the most preferred.
    let mut waiting: Vec<Address> = list.iter().rev().copied().collect();
    while let Some(address) = waiting.pop() {
        if std::mem::replace(&mut seen[address as usize], true) {
            continue;
        }
        match program.instructions[address as usize] {
            Instruction::Char(set, next) => {
                if classes.is_in(class, set) && !after.contains(&next) {
                    after.push(next);
                }
            }
            Instruction::LookAhead { set, or_end, next } => {
                if classes.is_in(class, set) || or_end && class == classes.end() {
                    waiting.push(next);
                }
            }
            Instruction::Either(first, second) => waiting.extend([second, first]),
            // Less preferred ways are given up.
            Instruction::Match => return (after, true),
        }
    }
    (after, false)
}

/// Whether two patterns have the same matches in every text.
///
/// # Errors
/// They are too large.
pub(super) fn are_equivalent(nodes: [&Node; 2]) -> Result<bool, String> {
    let mut sets = Sets::default();
    let [a, b] = nodes;
    let programs = [Program::new(a, &mut sets)?, Program::new(b, &mut sets)?];
    let classes = Classes::new(&sets)?;
    let [a, b] = programs;
    let (a, b) = (Dfa::new(&a, &classes)?, Dfa::new(&b, &classes)?);
    let mut seen = HashSet::from([(START, START)]);
    let mut waiting = vec![(START, START)];
    while let Some((of_a, of_b)) = waiting.pop() {
        for (a, b) in a.states[of_a].iter().zip(&b.states[of_b]) {
            if a.is_match != b.is_match {
                return Ok(false);
            }
            if seen.insert((a.next, b.next)) {
                waiting.push((a.next, b.next));
            }
        }
    }
    Ok(true)
}
