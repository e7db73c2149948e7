//! Merges the symbols of a word: the ids of words that are not in the cache.
//!
//! - `rule` packs one merge rule into a number. `rules` holds those of a vocabulary that can apply (`possible`). They
//!   number the tokens as symbols (`symbol`), and `row_table` finds what two symbols merge into.
//! - `in_place` merges short words, `heap` long ones; `encode` chooses.

mod encode;
mod heap;
mod in_place;
mod in_registers;
mod possible;
mod row_table;
mod rule;
mod rules;
mod symbol;

pub(in crate::engines) use self::heap::MergeHeap;
pub(in crate::engines) use self::rule::MAX_IDS;
pub(super) use self::rule::NO_ID;
pub(in crate::engines) use self::rules::MergeRules;
