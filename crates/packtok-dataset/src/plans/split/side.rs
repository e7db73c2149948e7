//! The two sides of a split.

/// A side of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The documents for training.
    Train,
    /// The held-out documents.
    Validation,
}

impl Side {
    /// The name of the side in messages and fingerprints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
        }
    }
}
