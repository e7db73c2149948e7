//! The two sides of a split.

/// A part of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is trained on.
    Train,
    /// What is held out.
    Validation,
}

impl Side {
    /// The side in messages and fingerprints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
        }
    }
}
