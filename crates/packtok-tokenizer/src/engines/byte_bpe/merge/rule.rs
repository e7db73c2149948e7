//! One merge in a number.

/// Place in the list of merges, the lowest of which is merged first, and in the low bits the id it gives.
pub(super) type Merge = u64;

pub(super) const NO_MERGE: Merge = (1 << (2 * ID_BITS)) - 1;

/// The id that a merge gives.
#[inline(always)]
pub(super) fn id_of(merge: Merge) -> u32 {
    merge as u32 & NO_ID
}

/// Place in the list of merges.
#[inline(always)]
pub(super) const fn rank_of(merge: Merge) -> u32 {
    (merge >> ID_BITS) as u32
}

/// Ids and ranks are below [`NO_ID`], so that two make one number with room for more.
pub(super) const ID_BITS: u32 = 20;

pub(in crate::engines::byte_bpe) const MOST_IDS: usize = (1 << ID_BITS) - 1;

/// No id: it is in no merge.
pub(super) const NO_ID: u32 = MOST_IDS as u32;

// The cache keeps ids of words.
const _: () = assert!(MOST_IDS <= crate::engines::word_cache::MOST_IDS);
