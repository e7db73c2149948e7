//! Limits of mixtures.

/// Largest sum of weights: two of them still add in 64 bits, and products with a count fit in 128.
pub(crate) const MAX_TOTAL_WEIGHT: u64 = 1 << 62;
