//! Positions between the records of a corpus, where reading can resume.

use serde::{Deserialize, Serialize};

/// A position before a record, and the checksum of its source up to there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Index of the source; all earlier sources are before this position.
    pub source: usize,
    /// Length of the source before it, in uncompressed bytes; for a table of row groups, in rows; for a
    /// source plug-in, in documents; for a corpus read by an index, in entries.
    pub offset: u64,
    /// CRC32C of that content; for a table, of all its bytes before the next group, combined with that
    /// of the part of the file that describes the groups. For a source plug-in, of its texts, each after
    /// its length as 8 bytes.
    pub crc32c: u32,
}
