//! Shards as an index lists them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A shard file, compressed or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path of the file below the index's folder.
    pub basename: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Hexadecimal hashes by the names of the hash functions.
    pub hashes: BTreeMap<String, String>,
}

/// A shard as the index describes it. Fields are in alphabetical order, as the writer in Python sorts keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    /// Encodings of the columns.
    pub column_encodings: Vec<String>,
    /// Names of the columns.
    pub column_names: Vec<String>,
    /// For each column, the size of its values in bytes; `None` if they vary.
    pub column_sizes: Vec<Option<u64>>,
    /// The compression, with its level.
    pub compression: Option<String>,
    /// Always `mds`.
    pub format: String,
    /// Names of the hash functions.
    pub hashes: Vec<String>,
    /// The file, decompressed.
    pub raw_data: FileEntry,
    /// Number of samples.
    pub samples: u64,
    /// The size limit of the writer: a number, a text such as `64mb`, or null.
    pub size_limit: serde_json::Value,
    /// Always 2.
    pub version: u64,
    /// The compressed file.
    pub zip_data: Option<FileEntry>,
}

impl ShardEntry {
    /// The file on disk: the compressed file, if there is one.
    pub fn stored(&self) -> &FileEntry {
        self.zip_data.as_ref().unwrap_or(&self.raw_data)
    }

    /// Sets the file names to the names of shard `number`, without renaming the files.
    pub fn set_number(&mut self, number: u64) {
        self.raw_data.basename = shard_name(number, None);
        if let Some(file) = &mut self.zip_data {
            file.basename = shard_name(number, self.compression.as_deref());
        }
    }
}

/// The name of shard file `number`, with the ending of its compression.
pub fn shard_name(number: u64, compression: Option<&str>) -> String {
    match compression {
        Some(compression) => {
            let codec = compression.split(':').next().unwrap_or_default();
            format!("shard.{number:05}.mds.{codec}")
        }
        None => format!("shard.{number:05}.mds"),
    }
}
