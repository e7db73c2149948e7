//! Limits of mixtures.

/// Maximum sum of weights. Two of them still add in 64 bits, and products with a count fit in 128
/// bits.
pub(crate) const MAX_TOTAL_WEIGHT: u64 = 1 << 62;
