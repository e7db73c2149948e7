//! The order in which the pages of a file will be read, as advice to the system.

use memmap2::Advice;

/// The expected access pattern of a file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessPattern {
    /// The system's default.
    Normal,
    /// Sequential: the system reads far ahead.
    Sequential,
    /// Random: the system reads only the requested pages.
    Random,
}

impl AccessPattern {
    /// The advice for a map.
    pub(crate) fn advice(self) -> Advice {
        match self {
            Self::Normal => Advice::Normal,
            Self::Sequential => Advice::Sequential,
            Self::Random => Advice::Random,
        }
    }
}
