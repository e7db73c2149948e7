//! The errors of this module.

/// Why a filter cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// A jq pattern does not compile.
    #[error("jq pattern {pattern:?}: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: super::bad::PatternError,
    },
}
