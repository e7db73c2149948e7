//! Ids of 21 bits, three in a number: ids are below 2^20.

const BITS: u32 = 21;
const ONE: u64 = (1 << BITS) - 1;
/// Ids in a number.
pub(super) const IDS: usize = 3;

const _: () = assert!(super::super::merges::MOST_IDS <= 1 << BITS);

/// Up to three ids.
pub(super) fn pack(ids: &[u32]) -> u64 {
    let places = ids.iter().zip((0..).step_by(BITS as usize));
    places.fold(0, |packed, (&id, place)| packed | u64::from(id) << place)
}

#[inline(always)]
pub(super) fn unpack(packed: u64) -> [u32; IDS] {
    [
        (packed & ONE) as u32,
        (packed >> BITS & ONE) as u32,
        (packed >> (2 * BITS)) as u32,
    ]
}
