//! A group of rows.

/// One group of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// The index of the group in the file, from 0.
    pub(super) index: usize,
    /// Offset of its first byte.
    pub(super) start: u64,
    /// Number of its first row in the file.
    pub(super) first_row: u64,
    pub(super) rows: u64,
}
