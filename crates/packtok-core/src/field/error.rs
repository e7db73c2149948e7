//! What can go wrong here, with the data to say so.

/// Why a filter cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// A jq pattern cannot be compiled.
    #[error("jq pattern {pattern:?}: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: super::bad::PatternError,
    },
}
