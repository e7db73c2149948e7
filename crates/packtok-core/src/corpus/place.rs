//! Places between the lines of a corpus, where reading can be taken up again.

use serde::{Deserialize, Serialize};

/// A place before a line, and what was read of its source up to there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Index of the source; all before it lie before this place.
    pub source: usize,
    /// What of the source lies before it: bytes, uncompressed; in a corpus read by an index, entries.
    pub offset: u64,
    /// CRC32C of that.
    pub crc32c: u32,
}
