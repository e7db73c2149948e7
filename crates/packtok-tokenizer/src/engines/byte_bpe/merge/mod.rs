//! Merging the symbols of a word.

mod encode;
mod heap;
mod in_place;
mod rule;
mod rule_table;
mod rules;

pub(super) use self::heap::Heap;
pub(super) use self::rule::MOST_IDS;
pub(super) use self::rules::Merges;
