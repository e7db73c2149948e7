//! Texts state into words, by hand for the split patterns that the tokenizers of today have.
//!
//! `blocks` does it 64 bytes at a time by the rules of each pattern (`gpt2`, `cl100k`, `o200k`, `deepseek`), and for
//! texts that no pattern splits (`pieces`), on the masks that a `lane` finds. `plain` does it word by word, as one reads
//! a pattern. The tests below hold one against the other; `tests/it/fast.rs` holds the blocks against the reference engine,
//! and that is held against the Python package.

mod blocks;
mod cl100k;
mod classes;
mod deepseek;
mod gpt2;
mod o200k;
#[cfg(test)]
mod oracle;
mod patterns;
mod pieces;
mod splitter;
#[cfg(test)]
mod tests;

pub(super) use self::blocks::{ROOM, SplitState};
pub(super) use self::classes::{ClassTable, INERT};
pub(super) use self::patterns::Pattern;
pub(crate) use self::patterns::{CL100K_PATTERN, O200K_PATTERN};
pub(super) use self::splitter::Splitter;
