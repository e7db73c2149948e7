//! The marker of a shard, written last. States that the shard is complete, and its range of the
//! corpus.

use std::path::{Path, PathBuf};

use packtok_jobs::Shard;
use packtok_pbin::{Counts, Replace, WriterInfo, publish_bytes};
use serde::{Deserialize, Serialize};

use super::folder::marker_path;
use crate::error::{Error, Result};
use crate::pack::RejectLimit;

/// The version of the marker.
pub(super) const VERSION: u32 = 1;

/// The description of a complete shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// Version of this record.
    pub packtok_shard: u32,
    /// Fingerprint of the plan.
    pub plan: String,
    /// Number of the shard, from 0.
    pub index: u64,
    /// Number of shards.
    pub count: u64,
    /// The program that packed it.
    pub writer: WriterInfo,
    /// Length of its pbin.
    pub file_bytes: u64,
    /// CRC32C of its tokens.
    pub data_crc32c: u32,
    /// Checksum of its trailer, which identifies the complete content.
    pub trailer_crc32c: u32,
    /// Counts of the shard.
    pub counts: Counts,
    /// Number of sources that it contains any part of.
    pub num_sources: u64,
    /// Raw bytes of sources that it covers.
    pub source_bytes: u64,
    /// Start of the shard in the corpus; `None` if the shard is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<CorpusOffset>,
    /// End of the shard in the corpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CorpusOffset>,
    /// The sources that the shard contains only in part, at most two.
    pub parts: Vec<SourcePart>,
    /// The option `max_rejects` of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rejects: Option<RejectLimit>,
    /// Wall-clock time of the run, in seconds.
    pub seconds: f64,
    /// The machine that packed it.
    pub hostname: String,
}

/// A position in the raw bytes of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusOffset {
    /// Number of the source, from 0.
    pub source: u64,
    /// Byte offset in that source.
    pub offset_bytes: u64,
}

/// A part of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePart {
    /// Number of the source, from 0.
    pub source: u64,
    /// Offset of the first byte of the part.
    pub start: u64,
    /// The byte after its last.
    pub stop: u64,
    /// CRC32C of its raw bytes.
    pub crc32c: u32,
    /// Number of its lines.
    pub lines: u64,
}

impl Marker {
    /// The marker of the shard at `shard_path`, if it exists and the shard has the recorded length.
    ///
    /// # Errors
    /// The marker cannot be read.
    pub fn find(shard_path: &Path) -> Result<Option<Self>> {
        let path = marker_path(shard_path);
        let text = match std::fs::read(&path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|cause| Error::io(&path, cause))?,
        };
        let marker: Self = serde_json::from_slice(&text)
            .map_err(|source| Error::DamagedMarker { path, source })?;
        let is_complete = std::fs::metadata(shard_path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() == marker.file_bytes);
        Ok(is_complete.then_some(marker))
    }

    /// Writes the marker of the shard at `shard_path`.
    pub(super) fn publish(&self, shard_path: &Path) -> Result<PathBuf> {
        let path = marker_path(shard_path);
        let mut text = serde_json::to_vec(self).map_err(|error| Error::io(&path, error.into()))?;
        text.push(b'\n');
        publish_bytes(&path, &text, Replace::Existing)?;
        Ok(path)
    }

    /// Checks that the marker belongs to `shard` of the plan with the fingerprint `plan`, written
    /// by this version of packtok.
    pub(super) fn check(&self, shard: Shard, plan: &str, shard_path: &Path) -> Result<()> {
        let writer = WriterInfo::default();
        let program = |writer: &WriterInfo| format!("{} {}", writer.name, writer.version);
        for (what, found, expected) in [
            (
                "its version",
                self.packtok_shard.to_string(),
                VERSION.to_string(),
            ),
            ("its plan", self.plan.clone(), plan.to_owned()),
            (
                "its shard",
                format!("{} of {}", self.index, self.count),
                format!("{} of {}", shard.index(), shard.count()),
            ),
            ("its writer", program(&self.writer), program(&writer)),
        ] {
            differing(&marker_path(shard_path), what, found, expected)?;
        }
        Ok(())
    }
}

/// Returns the error that a value in `path` differs from the expected value.
pub(super) fn differing(path: &Path, what: &str, found: String, expected: String) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::PartDiffers {
        path: path.into(),
        what: what.to_owned(),
        found,
        expected,
    })
}
