//! Splits texts into words by the patterns of current tokenizers, without a regular expression
//! engine.
//!
//! `blocks` splits 64 bytes at a time on the masks of a back end, by the rules of each pattern
//! (`gpt2`, `cl100k`, `o200k`, `deepseek`), or at token boundaries for texts without a pattern
//! (`pieces`). `oracle` splits word by word, a literal reading of each pattern; `tests` compare
//! the two. `tests/it/fast.rs` compares the blocks with the reference engine.

mod bits;
mod blocks;
mod cl100k;
mod classes;
mod contractions;
mod deepseek;
mod gpt2;
mod o200k;
#[cfg(test)]
mod oracle;
mod patterns;
mod pieces;
mod rules;
mod splitter;
#[cfg(test)]
mod tests;
mod wide;

pub(super) use self::blocks::{ROOM, SplitState};
pub(super) use self::classes::{ClassTable, INERT};
pub(super) use self::patterns::Pattern;
pub(crate) use self::patterns::{CL100K_PATTERN, O200K_PATTERN};
pub(super) use self::splitter::Splitter;
