//! Splits texts by any pattern of the kinds that tokenizers use, with an automaton.
//!
//! ```text
//! pattern ─▶ syntax: Node ─▶ program: instructions ─▶ dfa: states ─┬▶ held, cascade: several patterns at once ─▶ words
//!                └ char_set: sets ─▶ classes: sets that no pattern ┘ └▶ splitting: one after the other ───────▶ words
//!                                    tells apart
//! ```
//!
//! A pattern takes its first alternative that matches, at each position. The automaton of a pattern reads a text once
//! to find that: its states are the lists of places in the pattern that are still possible, the preferred first.
//! Patterns look ahead by at most one character, and so does the automaton.
//!
//! Two patterns that split all texts alike have the same automaton, whatever their spelling. So the patterns that SIMD
//! blocks split (`patterns.rs`) are recognized by it.

mod cascade;
mod char_set;
mod classes;
mod cuts;
mod dfa;
mod held;
mod program;
mod splitting;
mod steps;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use self::char_set::CharSet;
pub(crate) use self::steps::{Finds, Step, Steps, StepsProgress, split_alike};
