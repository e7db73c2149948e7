//! Merging the symbols of a word.

mod encode;
mod heap;
mod in_place;
mod rule;
mod rule_table;
mod rules;

pub(super) use self::heap::MergeHeap;
pub(super) use self::rule::MAX_IDS;
pub(super) use self::rules::MergeRules;
