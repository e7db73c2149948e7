//! A group of rows.

/// One group of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The index of the group in the file, from 0.
    pub index: usize,
    /// Offset of its first byte.
    pub start: u64,
    /// Number of its first row in the file.
    pub first_row: u64,
    /// Number of its rows.
    pub rows: u64,
}
