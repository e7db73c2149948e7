//! Merging the symbols of a word.

mod heap;
mod in_place;
mod rule_table;
mod rules;

pub(super) use self::heap::Heap;
pub(in crate::engines) use self::rules::MOST_IDS;
pub(super) use self::rules::Merges;
