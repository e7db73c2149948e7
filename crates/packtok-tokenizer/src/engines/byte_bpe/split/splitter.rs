//! Splits texts by one of the patterns.

use super::automaton::Steps;
use super::cl100k::Cl100k;
use super::classes::{COMMON, ClassTable, OF_DEEPSEEK, WITH_MARKS};
use super::deepseek::Deepseek;
use super::gpt2::Gpt2;
use super::o200k::O200k;
use super::patterns::{Pattern, kimi_k2};
use super::pieces::{Pieces, Table};
use super::simd_blocks::{ROOM, SplitState};
use crate::engines::byte_pairs::Pairs;
use crate::engines::simd::Simd;

/// Splits texts into words.
pub(crate) struct Splitter {
    pub(super) pattern: Pattern,
    pub(super) classes: ClassTable,
    pub(super) table: Table,
    /// Of [`Pattern::Steps`], and of [`Pattern::KimiK2`] for texts with Chinese characters.
    steps: Option<Box<Steps>>,
}

impl Splitter {
    /// For a pattern, and tokens that contain these pairs of bytes.
    ///
    /// # Errors
    /// The engine cannot apply the pattern.
    pub(crate) fn new(pattern: Pattern, pairs: Pairs) -> Result<Self, String> {
        let steps = match &pattern {
            Pattern::Steps(steps) => Some(Box::new(Steps::new(steps)?)),
            Pattern::KimiK2 => Some(Box::new(Steps::new(&kimi_k2())?)),
            _ => None,
        };
        let classes = match pattern {
            Pattern::Gpt2BetweenNumbers => ClassTable::with_digits(),
            Pattern::Cl100kWithMarks => ClassTable::new(&WITH_MARKS),
            Pattern::Deepseek => ClassTable::new(&OF_DEEPSEEK),
            _ => ClassTable::new(&COMMON),
        };
        Ok(Self {
            pattern,
            classes,
            table: Table::new(pairs),
            steps,
        })
    }

    /// Whether splitting takes time linear in the length of any text.
    pub(crate) fn is_linear(&self) -> bool {
        self.steps.as_ref().is_none_or(|steps| steps.are_linear())
    }

    /// Whether the bytes of a word, as a text of their own, are one word. With patterns that look at what follows,
    /// they may be several.
    pub(crate) fn keeps_words(&self) -> bool {
        !matches!(self.pattern, Pattern::Steps(_) | Pattern::KimiK2)
    }

    /// Writes the ends of the next words to `ends` and returns their number; 0 at the end.
    #[inline(always)]
    pub(crate) fn fill(
        &self,
        simd: impl Simd,
        state: &mut SplitState,
        text: &str,
        ends: &mut [u32; ROOM],
    ) -> usize {
        let Self {
            pattern,
            classes,
            table,
            steps,
        } = self;
        // Constant arguments, so that each variant is compiled separately.
        match *pattern {
            Pattern::Gpt2 => {
                let numbers_apart = false;
                state.fill(simd, Gpt2 { numbers_apart }, classes, text, ends)
            }
            Pattern::Gpt2BetweenNumbers => {
                let numbers_apart = true;
                state.fill(simd, Gpt2 { numbers_apart }, classes, text, ends)
            }
            Pattern::Cl100k { digits: 1 } | Pattern::Cl100kWithMarks => {
                state.fill(simd, Cl100k { digits: 1 }, classes, text, ends)
            }
            Pattern::Cl100k { digits } => state.fill(simd, Cl100k { digits }, classes, text, ends),
            Pattern::O200k { is_tekken: true } => {
                let rules = O200k {
                    is_tekken: true,
                    takes_slashes: true,
                };
                state.fill(simd, rules, classes, text, ends)
            }
            Pattern::O200k { is_tekken } => {
                let rules = O200k {
                    is_tekken,
                    takes_slashes: true,
                };
                state.fill(simd, rules, classes, text, ends)
            }
            Pattern::KimiK2 => match steps {
                Some(steps) if state.has_han(classes, text) => state.fill_steps(steps, text, ends),
                _ => {
                    let rules = O200k {
                        is_tekken: false,
                        takes_slashes: false,
                    };
                    state.fill(simd, rules, classes, text, ends)
                }
            },
            Pattern::Deepseek => state.fill(simd, Deepseek, classes, text, ends),
            Pattern::Steps(_) => match steps {
                Some(steps) => state.fill_steps(steps, text, ends),
                None => unreachable!("the pattern has steps"),
            },
            Pattern::Pieces { each_space } => {
                state.fill(simd, Pieces { table, each_space }, classes, text, ends)
            }
        }
    }
}
