//! The errors of this module.

/// Why sources cannot be mixed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// A mixture has no sources.
    #[error("the mixture has no source; give at least one")]
    MixtureWithoutSources,
    /// A weight is zero.
    #[error("the weight of source {source_index} is 0; remove the source")]
    MixtureWeightZero {
        /// Position of the source among the weights.
        source_index: usize,
    },
    /// The sum of the weights is too large for exact arithmetic.
    #[error(
        "the weights add up to {sum}, more than {}; divide them by a common factor",
        crate::order::limits::MAX_TOTAL_WEIGHT
    )]
    MixtureWeightsTooLarge {
        /// The sum.
        sum: u128,
    },
}
