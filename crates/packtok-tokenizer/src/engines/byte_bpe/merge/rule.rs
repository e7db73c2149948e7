//! One merge rule: its rank and the id that it gives, packed into a number.

/// The rank in the high bits, the id that the merge gives in the low bits. The lowest rank is merged first.
pub(super) type MergeRule = u64;

/// The id that a merge gives.
pub(super) fn id_of(merge: MergeRule) -> u32 {
    merge as u32 & NO_ID
}

/// The position of a merge in the list of merges.
pub(super) fn rank_of(merge: MergeRule) -> u32 {
    (merge >> ID_BITS) as u32
}

/// Ids and ranks are below [`NO_ID`].
pub(super) const ID_BITS: u32 = 20;

pub(crate) const MAX_IDS: usize = (1 << ID_BITS) - 1;

/// An id without merges.
pub(crate) const NO_ID: u32 = MAX_IDS as u32;

// The word cache must be able to hold the ids.
const _: () = assert!(MAX_IDS <= crate::engines::word_cache::MAX_IDS);
