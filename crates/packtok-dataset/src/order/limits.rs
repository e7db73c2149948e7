//! Limits of mixtures.

/// Maximum sum of weights. The sum of two such values fits in 64 bits, and the product with a
/// count in 128 bits.
pub(crate) const MAX_TOTAL_WEIGHT: u64 = 1 << 62;
