//! Splits texts into words by the patterns of current tokenizers, without a regular expression
//! engine.
//!
//! `simd_blocks` splits 64 bytes at a time on the masks of a back end, by the rules of each pattern
//! (`gpt2`, `cl100k`, `o200k`, `deepseek`), or at token boundaries for texts without a pattern
//! (`pieces`). `automaton` splits by any other pattern, a character at a time. `oracle` splits word
//! by word, a literal reading of each pattern; `tests` compare the SIMD blocks with it.
//! `tests/it/fast.rs` compares all of them with the reference engine.

mod automaton;
mod bits;
mod char_table;
mod cl100k;
mod classes;
mod contractions;
mod deepseek;
mod gpt2;
mod o200k;
#[cfg(test)]
mod oracle;
mod pattern_rules;
mod patterns;
mod pieces;
mod simd_blocks;
mod splitter;
#[cfg(test)]
mod tests;
mod wide;

pub(super) use self::automaton::{Finds, Step};
pub(in crate::engines) use self::automaton::{Steps, StepsProgress};
pub(super) use self::classes::{ClassTable, INERT};
pub(super) use self::patterns::Pattern;
pub(crate) use self::patterns::{
    CL100K_PATTERN, GPT2_PATTERN, KIMI_K2_PATTERN, O200K_PATTERN, QWEN_PATTERN,
};
pub(super) use self::simd_blocks::{ROOM, SplitState};
pub(super) use self::splitter::Splitter;
