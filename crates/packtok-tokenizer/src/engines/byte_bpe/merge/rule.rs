//! One merge in a number.

/// Place in the list of merges, the lowest of which is merged first, and in the low bits the id it gives.
pub(super) type MergeRule = u64;

pub(super) const NO_RULE: MergeRule = (1 << (2 * ID_BITS)) - 1;

/// The id that a merge gives.
#[inline(always)]
pub(super) fn id_of(merge: MergeRule) -> u32 {
    merge as u32 & NO_ID
}

/// Place in the list of merges.
#[inline(always)]
pub(super) const fn rank_of(merge: MergeRule) -> u32 {
    (merge >> ID_BITS) as u32
}

/// Ids and ranks are below [`NO_ID`], so that two make one number with room for more.
pub(super) const ID_BITS: u32 = 20;

pub(in crate::engines::byte_bpe) const MAX_IDS: usize = (1 << ID_BITS) - 1;

/// No id: it is in no merge.
pub(super) const NO_ID: u32 = MAX_IDS as u32;

// The cache keeps ids of words.
const _: () = assert!(MAX_IDS <= crate::engines::word_cache::MAX_IDS);
