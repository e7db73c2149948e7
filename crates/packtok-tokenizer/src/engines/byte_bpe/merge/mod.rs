//! Merges the symbols of a word: the ids of words that are not in the cache.
//!
//! - `rule` packs one merge rule into a number, `rule_table` finds the rule of two ids, `rules` holds those of a
//!   vocabulary that can apply (`possible`).
//! - `in_place` merges short words, `heap` long ones; `encode` chooses.

mod encode;
mod heap;
mod in_place;
mod possible;
mod rule;
mod rule_table;
mod rules;

pub(super) use self::heap::MergeHeap;
pub(super) use self::rule::{MAX_IDS, NO_ID};
pub(super) use self::rules::MergeRules;
