//! Positions between the lines of a corpus, where reading can resume.

use serde::{Deserialize, Serialize};

/// A position before a line, and the checksum of its source up to there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Index of the source; all earlier sources are before this position.
    pub source: usize,
    /// Length of the source before it, in uncompressed bytes; for a corpus read by an index, in
    /// entries.
    pub offset: u64,
    /// CRC32C of that content.
    pub crc32c: u32,
}
