//! `packtok.json`: the description of the samples of a folder.
//!
//! The MDS format has no field for it, and readers of MDS ignore other files.
//! `docs/reference/mds_folders.md` describes the format.

use std::path::Path;

use packtok_jobs::hex;
use packtok_pbin::{Replace, publish_bytes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::mds::entry::ShardEntry;
use crate::mds::index::{check_version, index_bytes, read_at_most};

/// The name of the marker in a folder.
pub const MARKER_FILE: &str = "packtok.json";
const MAX_MARKER_BYTES: u64 = 256 << 20;
const VERSION: u64 = 1;

/// The description of the samples of a folder, with which folders that belong together can be
/// aligned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// The version of this format.
    pub version: u64,
    /// The kind of the samples: `samples`, `logits` or `retrieval`.
    pub kind: String,
    /// The fingerprint of the plan from which the samples were drawn. Folders with data about the
    /// same samples have the same fingerprint.
    pub plan: String,
    /// The side of the split: `train` or `test`.
    pub side: String,
    /// The domain.
    pub domain: String,
    /// The number of the first sample, in the order of the plan's samples of this side and domain.
    pub start: u64,
    /// The number after the number of the last sample.
    pub stop: u64,
    /// SHA-256 of the folder's `index.json`. Absent in the marker of a part, whose shards have no
    /// index yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_sha256: Option<String>,
    /// The shards of a part, with their hashes, for the index of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<Vec<ShardEntry>>,
    /// More about the samples: options, tokenizer, the teacher and its method.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl Marker {
    /// Reads the marker of a folder; `None` if the folder has no marker.
    ///
    /// # Errors
    /// The marker cannot be read or is invalid.
    pub fn of_folder(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(MARKER_FILE);
        match read_at_most(&path, MAX_MARKER_BYTES) {
            Ok(bytes) => Self::parse(&path, &bytes).map(Some),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Parses the marker at `path`, which errors name.
    ///
    /// # Errors
    /// The marker is invalid.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let marker: Self = serde_json::from_slice(bytes).map_err(|source| Error::MdsJson {
            path: path.into(),
            what: "the marker",
            source,
        })?;
        check_version(path, marker.version, VERSION)?;
        Ok(marker)
    }

    /// The marker of a folder with the index of `entries`.
    pub fn with_index(self, entries: &[ShardEntry]) -> Self {
        Self {
            version: VERSION,
            index_sha256: Some(hex(&Sha256::digest(index_bytes(entries)))),
            ..self
        }
    }

    /// Publishes the marker in a folder. Replaces an existing marker, because it belongs to a run
    /// that has not published its index.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub fn publish(&self, folder: &Path) -> Result<()> {
        self.publish_as(&folder.join(MARKER_FILE))
    }

    /// Publishes the marker of a part under another name.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub fn publish_as(&self, path: &Path) -> Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a marker has string keys");
        bytes.push(b'\n');
        Ok(publish_bytes(path, &bytes, Replace::Existing)?)
    }
}
