//! Arithmetic on the masks of a SIMD block.

use crate::engines::simd::Masks;

/// For each byte, the bit of the byte before it.
#[inline(always)]
pub(super) fn before(mask: u64, carried: u64) -> u64 {
    mask << 1 | carried
}

/// For each byte, the bit of the byte after it.
#[inline(always)]
pub(super) fn after(mask: u64, next: u64) -> u64 {
    mask >> 1 | next << 63
}

/// The bits of `through` that follow a bit of `from` in the same run.
///
/// The carry of an addition propagates from a bit to the end of its run. If a run has several
/// bits, the addition leaves the later bits unchanged.
#[inline(always)]
pub(super) fn reached(from: u64, through: u64) -> u64 {
    let from = from & through;
    (through.wrapping_add(from) ^ through | from) & through
}

/// First bytes of white space characters after which no white space follows.
#[inline(always)]
pub(super) fn last_whitespace(masks: &Masks, next: &Masks) -> u64 {
    let first_bytes = masks.whitespace & !masks.inner;
    if masks.whitespace & masks.wide == 0 {
        return first_bytes & !after(masks.whitespace, next.whitespace);
    }
    // White space beyond ASCII has two or three bytes.
    let inner = after(masks.inner, next.inner);
    let inner_too = inner & (masks.inner >> 2 | next.inner << 62);
    let whitespace_after = |n: u32| masks.whitespace >> n | next.whitespace << (64 - n);
    let goes_on = !inner & whitespace_after(1)
        | inner & !inner_too & whitespace_after(2)
        | inner_too & whitespace_after(3);
    first_bytes & !goes_on
}
