//! `index.json`: the shards of a folder.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use packtok_pbin::{Replace, publish_bytes};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mds::columns::{Columns, Pickles};
use crate::mds::entry::ShardEntry;
use crate::python_json::dumps;

/// The name of the index in a folder.
pub const INDEX_FILE: &str = "index.json";
/// Bounds the memory for a file that claims to be an index. A million shards need about 700 MB.
pub const MAX_INDEX_BYTES: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
struct Content<S> {
    shards: S,
    version: u64,
}

/// A parsed and checked index.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    shards: Vec<ShardEntry>,
    columns: Vec<Arc<Columns>>,
    /// The number of samples before each shard, and at last of all shards.
    starts: Vec<u64>,
}

impl Index {
    /// Reads the index of a folder.
    ///
    /// # Errors
    /// The index cannot be read or is invalid.
    pub fn open(folder: &Path, pickles: Pickles) -> Result<Self> {
        let path = folder.join(INDEX_FILE);
        let bytes = read_at_most(&path, MAX_INDEX_BYTES)?;
        Self::parse(&path, &bytes, pickles)
    }

    /// Parses the index at `path`, which errors name.
    ///
    /// # Errors
    /// The content is not an index; a shard has another format or unsupported columns; or a file
    /// is outside of the index's folder.
    pub fn parse(path: &Path, bytes: &[u8], pickles: Pickles) -> Result<Self> {
        let content: Content<Vec<ShardEntry>> =
            serde_json::from_slice(bytes).map_err(|source| Error::MdsJson {
                path: path.into(),
                what: "the index",
                source,
            })?;
        check_version(path, content.version, 2)?;
        let mut index = Self {
            path: path.into(),
            shards: Vec::new(),
            columns: Vec::new(),
            starts: vec![0],
        };
        let mut names = HashSet::new();
        for entry in &content.shards {
            let name = &entry.stored().basename;
            if !names.insert(name.as_str()) {
                return Err(Error::MdsTokens {
                    path: path.into(),
                    reason: format!("lists the file {name:?} twice"),
                });
            }
        }
        for (number, entry) in content.shards.into_iter().enumerate() {
            index.add(number, entry, pickles)?;
        }
        Ok(index)
    }

    fn add(&mut self, shard: usize, entry: ShardEntry, pickles: Pickles) -> Result<()> {
        let path = &*self.path;
        check_version(path, entry.version, 2)?;
        if entry.format != "mds" {
            return Err(Error::MdsFormat {
                path: path.into(),
                shard,
                found: entry.format,
            });
        }
        if entry.compression.is_some() != entry.zip_data.is_some() {
            return Err(Error::MdsCompressedFile {
                path: path.into(),
                shard,
                compression: entry.compression,
                has_file: entry.zip_data.is_some(),
            });
        }
        for file in [Some(&entry.raw_data), entry.zip_data.as_ref()]
            .into_iter()
            .flatten()
        {
            check_basename(path, shard, &file.basename)?;
        }
        let columns = match self.columns.last() {
            Some(columns) if columns.are_of(&entry) => Arc::clone(columns),
            _ => Arc::new(Columns::of_entry(path, shard, &entry, pickles)?),
        };
        let start = self.starts[shard];
        let stop = start.checked_add(entry.samples);
        let stop = stop.filter(|_| u32::try_from(entry.samples).is_ok());
        let stop = stop.ok_or_else(|| Error::MdsTooManySamples {
            path: path.into(),
            shard,
            found: entry.samples,
        })?;
        self.starts.push(stop);
        self.columns.push(columns);
        self.shards.push(entry);
        Ok(())
    }

    /// The path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All shards.
    pub fn shards(&self) -> &[ShardEntry] {
        &self.shards
    }

    /// The columns of a shard.
    pub fn columns(&self, shard: usize) -> &Arc<Columns> {
        &self.columns[shard]
    }

    /// Number of samples.
    pub fn num_samples(&self) -> u64 {
        self.starts[self.shards.len()]
    }

    /// The shard of a sample, and the sample's number in the shard; `None` if the sample does not
    /// exist.
    #[inline]
    pub fn find(&self, sample: u64) -> Option<(usize, u64)> {
        if sample >= self.num_samples() {
            return None;
        }
        // A shard without samples has the same start as the next shard; the last such shard is
        // used.
        let shard = self.starts.partition_point(|&start| start <= sample) - 1;
        Some((shard, sample - self.starts[shard]))
    }
}

/// Publishes the index of `entries` in `folder`.
///
/// # Errors
/// The index exists and must not be replaced, or cannot be written.
pub fn publish_index(folder: &Path, entries: &[ShardEntry], replace: Replace) -> Result<()> {
    Ok(publish_bytes(
        &folder.join(INDEX_FILE),
        &index_bytes(entries),
        replace,
    )?)
}

/// The bytes of the index of `entries`.
pub(super) fn index_bytes(entries: &[ShardEntry]) -> Vec<u8> {
    dumps(&Content {
        shards: entries,
        version: 2,
    })
}

pub(super) fn check_version(path: &Path, version: u64, expected: u64) -> Result<()> {
    if version == expected {
        return Ok(());
    }
    Err(Error::MdsVersion {
        path: path.into(),
        found: version,
        expected,
    })
}

fn check_basename(path: &Path, shard: usize, name: &str) -> Result<()> {
    let mut components = Path::new(name).components().peekable();
    let is_below = components.peek().is_some()
        && components.all(|component| matches!(component, Component::Normal(_)))
        && !name.contains('\0');
    if is_below {
        return Ok(());
    }
    Err(Error::MdsBasename {
        path: path.into(),
        shard,
        found: name.to_owned(),
    })
}

/// The bytes of a file that may have at most `most`.
pub(super) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(Error::io(path))?;
    let bytes = file.metadata().map_err(Error::io(path))?.len();
    let mut content = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut content)
        .map_err(Error::io(path))?;
    if content.len() as u64 > most {
        return Err(Error::MdsJsonTooLarge {
            path: path.into(),
            bytes,
            most,
        });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mds::entry::FileEntry;

    fn entry(samples: u64) -> ShardEntry {
        ShardEntry {
            column_encodings: vec!["int".into()],
            column_names: vec!["a".into()],
            column_sizes: vec![Some(8)],
            compression: None,
            format: "mds".into(),
            hashes: Vec::new(),
            raw_data: FileEntry {
                basename: "shard.00000.mds".into(),
                bytes: 0,
                hashes: BTreeMap::new(),
            },
            samples,
            size_limit: serde_json::Value::Null,
            version: 2,
            zip_data: None,
        }
    }

    fn parse(entries: &[ShardEntry]) -> Result<Index> {
        Index::parse(Path::new("i"), &index_bytes(entries), Pickles::Refused)
    }

    #[test]
    fn shards_without_samples_are_skipped() {
        let mut entries = [entry(0), entry(2), entry(0), entry(1)];
        for (number, entry) in (0..).zip(&mut entries) {
            entry.set_number(number);
        }
        let index = parse(&entries).unwrap();
        let places: Vec<_> = (0..4).map(|sample| index.find(sample)).collect();
        assert_eq!(places, [Some((1, 0)), Some((1, 1)), Some((3, 0)), None]);
    }

    #[test]
    fn a_file_that_is_listed_twice_is_refused() {
        let message = parse(&[entry(1), entry(1)]).unwrap_err().to_string();
        assert!(message.contains("lists the file"), "{message}");
        assert!(message.contains("twice"), "{message}");
    }

    #[test]
    fn a_file_outside_of_the_folder_is_refused() {
        for name in ["", "/a", "../a", "a/../../b", "./../a", "a\0"] {
            let mut entry = entry(1);
            entry.raw_data.basename = name.into();
            assert!(
                matches!(parse(&[entry]), Err(Error::MdsBasename { .. })),
                "{name:?}"
            );
        }
        let mut below = entry(1);
        below.raw_data.basename = "0/shard.00000.mds".into();
        parse(&[below]).unwrap();
    }

    #[test]
    fn sizes_that_the_encoding_does_not_have_are_refused() {
        let mut other = entry(1);
        other.column_sizes = vec![Some(4)];
        assert_eq!(
            parse(&[other]).unwrap_err().to_string(),
            "i: column \"a\" has size 4, expected size 8 for encoding \"int\""
        );
    }
}
