//! The columns of a shard: names, encodings and sizes, as index and shard file list them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mds::encoding::Encoding;
use crate::mds::entry::{FileEntry, ShardEntry};
use crate::mds::fault::EncodingFault;
use crate::python_json::dumps;

/// The treatment of columns of pickles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pickles {
    /// A column of pickles is an error.
    Refused,
    /// The values of a column of pickles are read as bytes.
    AsBytes,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// The encoding as written in the files. An encoding may have several spellings.
    pub encoding_text: String,
    /// The parsed encoding.
    pub encoding: Encoding,
    /// Bytes of every value; `None` if they vary.
    pub size: Option<u64>,
}

/// The columns of a shard, in the order of their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

/// The description of the columns in a shard file.
#[derive(Serialize)]
struct Config<'a> {
    column_encodings: Vec<&'a str>,
    column_names: Vec<&'a str>,
    column_sizes: Vec<Option<u64>>,
    compression: Option<&'a str>,
    format: &'static str,
    hashes: &'a [String],
    size_limit: Option<u64>,
    version: u64,
}

/// What reading needs of the description.
#[derive(Deserialize)]
struct OwnColumns {
    column_encodings: Vec<String>,
    column_names: Vec<String>,
    column_sizes: Vec<Option<u64>>,
}

impl Columns {
    /// The columns with these names and encodings, sorted by name.
    ///
    /// # Errors
    /// An encoding that is unknown or not supported, no column.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut columns = columns
            .into_iter()
            .map(|(name, encoding)| Self::column(Path::new(""), name, encoding, Pickles::Refused))
            .collect::<Result<Vec<_>, _>>()?;
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        if columns.is_empty() {
            return Err(Error::MdsNoColumns);
        }
        Ok(Self(columns))
    }

    /// The entry in an index of a shard with these columns, which is not compressed and has no hashes.
    pub(super) fn entry(&self, raw_data: FileEntry, samples: u64) -> ShardEntry {
        let columns = self.0.iter();
        let encodings = columns.clone().map(|column| column.encoding_text.clone());
        let names = columns.clone().map(|column| column.name.clone());
        ShardEntry {
            column_encodings: encodings.collect(),
            column_names: names.collect(),
            column_sizes: columns.map(|column| column.size).collect(),
            compression: None,
            format: "mds".to_owned(),
            hashes: Vec::new(),
            raw_data,
            samples,
            size_limit: serde_json::Value::Null,
            version: 2,
            zip_data: None,
        }
    }

    /// The columns that an index lists for a shard.
    pub(super) fn of_entry(
        path: &Path,
        shard: usize,
        entry: &ShardEntry,
        pickles: Pickles,
    ) -> Result<Self> {
        let lists = (
            &entry.column_names[..],
            &entry.column_encodings[..],
            &entry.column_sizes[..],
        );
        Self::of_lists(path, shard, lists, pickles)
    }

    /// The columns in the description `config` of the shard file at `path`.
    pub(super) fn of_config(path: &Path, config: &[u8], pickles: Pickles) -> Result<Self> {
        let own: OwnColumns = serde_json::from_slice(config).map_err(|source| Error::MdsJson {
            path: path.into(),
            what: "the description of the columns",
            source,
        })?;
        let lists = (
            &own.column_names[..],
            &own.column_encodings[..],
            &own.column_sizes[..],
        );
        Self::of_lists(path, 0, lists, pickles)
    }

    fn of_lists(
        path: &Path,
        shard: usize,
        (names, encodings, sizes): (&[String], &[String], &[Option<u64>]),
        pickles: Pickles,
    ) -> Result<Self> {
        if names.is_empty() || names.len() != encodings.len() || names.len() != sizes.len() {
            return Err(Error::MdsColumnLists {
                path: path.into(),
                shard,
                names: names.len(),
                encodings: encodings.len(),
                sizes: sizes.len(),
            });
        }
        let columns = names.iter().zip(encodings).zip(sizes);
        let columns = columns.map(|((name, encoding), &size)| {
            let column = Self::column(path, name, encoding, pickles)?;
            if column.size == size {
                return Ok(column);
            }
            Err(Error::MdsColumnSize {
                path: path.into(),
                expected: column.size,
                found: size,
                column: column.name,
                encoding: column.encoding_text,
            })
        });
        Ok(Self(columns.collect::<Result<_, _>>()?))
    }

    fn column(path: &Path, name: &str, encoding_text: &str, pickles: Pickles) -> Result<Column> {
        let parsed =
            Encoding::parse(encoding_text).and_then(|encoding| match (&encoding, pickles) {
                (Encoding::Pickle, Pickles::Refused) => Err(EncodingFault::Pickle),
                _ => Ok(encoding),
            });
        let encoding = parsed.map_err(|source| Error::MdsEncoding {
            path: path.into(),
            column: name.to_owned(),
            encoding: encoding_text.to_owned(),
            source,
        })?;
        Ok(Column {
            name: name.to_owned(),
            encoding_text: encoding_text.to_owned(),
            size: encoding.size(),
            encoding,
        })
    }

    /// All columns.
    pub fn all(&self) -> &[Column] {
        &self.0
    }

    /// The position of the column of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|column| column.name == name)
    }

    /// Whether an entry of an index lists these columns.
    pub(super) fn are_of(&self, entry: &ShardEntry) -> bool {
        self.0.len() == entry.column_names.len()
            && self.0.len() == entry.column_encodings.len()
            && self.0.len() == entry.column_sizes.len()
            && self.0.iter().enumerate().all(|(i, column)| {
                column.name == entry.column_names[i]
                    && column.encoding_text == entry.column_encodings[i]
                    && column.size == entry.column_sizes[i]
            })
    }

    /// The JSON in every shard file with these columns.
    pub(super) fn config(
        &self,
        compression: Option<&str>,
        hashes: &[String],
        size_limit: Option<u64>,
    ) -> Vec<u8> {
        dumps(&Config {
            column_encodings: self.0.iter().map(|column| &*column.encoding_text).collect(),
            column_names: self.0.iter().map(|column| &*column.name).collect(),
            column_sizes: self.0.iter().map(|column| column.size).collect(),
            compression,
            format: "mds",
            hashes,
            size_limit,
            version: 2,
        })
    }
}
