//! Positions between the records of a corpus, where reading can resume.

use serde::{Deserialize, Serialize};

/// A position before a record, and the checksum of the source before that position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Index of the source; all earlier sources are before this position.
    pub source: usize,
    /// Length of the source before the position, in uncompressed bytes. For a table of row groups,
    /// in rows; for a source plug-in, in documents; for a corpus read by an index, in entries.
    pub offset: u64,
    /// CRC32C of the source before the position. For a table, the checksum covers all bytes before
    /// the next group and is combined with the checksum of the part of the file that describes the
    /// groups. For a source plug-in, it covers the texts, each after its length as 8 bytes.
    pub crc32c: u32,
}
