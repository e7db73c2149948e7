//! Reads samples from a mapped shard file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use packtok_pbin::MappedFile;

use crate::error::{Error, Result};
use crate::mds::check::{check_bytes, decompress, verify};
use crate::mds::columns::{Columns, Pickles};
use crate::mds::encoding::Value;
use crate::mds::entry::{FileEntry, ShardEntry};
use crate::mds::fault::SampleFault;

/// Bounds the memory for a description of columns.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// An open shard file.
///
/// Opening checks the size of the file and its number of samples. Every position and size is
/// checked when it is used, because the file is not trusted.
#[derive(Debug)]
pub struct Shard {
    map: MappedFile,
    path: Box<Path>,
    columns: Arc<Columns>,
    num_samples: u64,
}

impl Shard {
    /// Opens the uncompressed shard file at `path`, which `entry` describes.
    ///
    /// # Errors
    /// The file cannot be mapped, or its size or number of samples differs.
    pub fn open(path: &Path, entry: &ShardEntry, columns: Arc<Columns>) -> Result<Self> {
        Self::open_copy(path, path, entry, columns)
    }

    /// The entry and the columns of the uncompressed shard file at `path`, which describes itself.
    ///
    /// # Errors
    /// The file cannot be mapped, or has no description of its columns.
    pub fn own_entry(path: &Path, pickles: Pickles) -> Result<(ShardEntry, Columns)> {
        let map = MappedFile::open(path)?;
        let (bytes, file_bytes) = (map.bytes(), map.bytes().len() as u64);
        let too_short = |expected| Error::MdsTooShort {
            path: path.into(),
            found: file_bytes,
            expected,
        };
        let num_samples = u32_at(bytes, 0).ok_or_else(|| too_short(4))?;
        let start = 4 + 4 * (u64::from(num_samples) + 1);
        let stop = u32_at(bytes, 4).ok_or_else(|| too_short(start))?;
        let config = bytes.get(start as usize..stop as usize);
        let config = config.ok_or_else(|| too_short(start.max(stop.into())))?;
        if config.len() as u64 > MAX_CONFIG_BYTES {
            return Err(Error::MdsJsonTooLarge {
                path: path.into(),
                bytes: config.len() as u64,
                most: MAX_CONFIG_BYTES,
            });
        }
        let columns = Columns::of_config(path, config, pickles)?;
        let name = path.file_name().unwrap_or_default();
        let file = FileEntry {
            basename: name.to_string_lossy().into_owned(),
            bytes: file_bytes,
            hashes: BTreeMap::new(),
        };
        Ok((columns.entry(file, num_samples.into()), columns))
    }

    /// Opens the uncompressed shard file at `path`, a copy of the file `original`. Errors about
    /// the content name `original`.
    ///
    /// # Errors
    /// As [`Shard::open`].
    pub fn open_copy(
        path: &Path,
        original: &Path,
        entry: &ShardEntry,
        columns: Arc<Columns>,
    ) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let file_bytes = map.bytes().len() as u64;
        check_bytes(original, file_bytes, entry.raw_data.bytes)?;
        let too_short = |expected| Error::MdsTooShort {
            path: original.into(),
            found: file_bytes,
            expected,
        };
        let num_samples = u32_at(map.bytes(), 0).ok_or_else(|| too_short(4))?.into();
        if num_samples != entry.samples {
            return Err(Error::MdsNumSamples {
                path: original.into(),
                found: num_samples,
                expected: entry.samples,
            });
        }
        let shard = Self {
            num_samples,
            columns,
            path: original.into(),
            map,
        };
        if shard.first_position() > entry.raw_data.bytes {
            return Err(too_short(shard.first_position()));
        }
        Ok(shard)
    }

    /// Decompresses the shard file at `path`, which an index entry describes, into a file. With
    /// `verified`, checks its hash. Errors about its content name `original`, of which the file
    /// may be a copy; errors of writing name the path in `out`.
    ///
    /// # Errors
    /// The compression is not supported, or the file does not have the content that the index
    /// describes.
    pub fn decompress(
        path: &Path,
        original: &Path,
        entry: &ShardEntry,
        verified: bool,
        out: (&Path, impl Write),
    ) -> Result<()> {
        let codec = entry.compression.as_deref().unwrap_or_default();
        decompress(
            path,
            original,
            codec,
            [entry.stored(), &entry.raw_data],
            verified,
            out,
        )
    }

    /// The path of the file. For a copy, the path of the original.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of samples.
    pub fn num_samples(&self) -> u64 {
        self.num_samples
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// Verifies all hashes that the index has of the file, or only the fastest.
    ///
    /// # Errors
    /// A hash differs, or the index has no hash.
    pub fn verify(&self, entry: &ShardEntry, all: bool) -> Result<()> {
        verify(&self.path, self.map.bytes(), &entry.raw_data, all)
    }

    /// Sample `number` of this shard.
    ///
    /// # Errors
    /// The sample does not exist, or its position is invalid.
    #[inline]
    pub fn sample(&self, number: u64) -> Result<Sample<'_>> {
        if number >= self.num_samples {
            return Err(Error::NoSuchMdsSample {
                path: self.path().into(),
                sample: number,
                num_samples: self.num_samples,
            });
        }
        let bytes = self.map.bytes();
        // Opening has checked that all positions are within the file.
        let at = 4 + 4 * number as usize;
        let [start, stop] = [at, at + 4].map(|at| u32_at(bytes, at).unwrap_or_default());
        let range =
            (u64::from(start) >= self.first_position()).then_some(start as usize..stop as usize);
        match range.and_then(|range| bytes.get(range)) {
            Some(bytes) => Ok(Sample {
                shard: self,
                number,
                bytes,
            }),
            None => Err(Error::MdsPosition {
                path: self.path().into(),
                sample: number,
                start: start.into(),
                stop: stop.into(),
                first: self.first_position(),
                file_bytes: bytes.len() as u64,
            }),
        }
    }

    /// The earliest position of a sample: that after all positions.
    fn first_position(&self) -> u64 {
        4 + 4 * (self.num_samples + 1)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// A sample in a mapped shard file.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    shard: &'a Shard,
    number: u64,
    bytes: &'a [u8],
}

impl<'a> Sample<'a> {
    /// The bytes of the sample.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Calls `each` with the position of each column and the bytes of its value.
    ///
    /// # Errors
    /// The size of the sample differs from the sizes of its values.
    pub fn each_value(&self, mut each: impl FnMut(usize, &'a [u8])) -> Result<()> {
        let columns = self.shard.columns.all();
        let mut at = 0;
        let num_sizes = columns
            .iter()
            .filter(|column| column.size.is_none())
            .count();
        let short = |column: usize, needed: u64, left: u64| {
            self.damaged(column, SampleFault::Short { needed, left })
        };
        let head_bytes = 4 * num_sizes;
        let left = self.bytes.len() as u64;
        let mut values = self
            .bytes
            .get(head_bytes..)
            .ok_or_else(|| short(0, head_bytes as u64, left))?;
        for (i, column) in columns.iter().enumerate() {
            let size = match column.size {
                Some(size) => size,
                None => {
                    let size = u32_at(self.bytes, at).unwrap_or_default();
                    at += 4;
                    size.into()
                }
            };
            let left = values.len() as u64;
            let count = usize::try_from(size).ok();
            let (value, rest) = count
                .and_then(|count| values.split_at_checked(count))
                .ok_or_else(|| short(i, size, left))?;
            values = rest;
            each(i, value);
        }
        if values.is_empty() {
            return Ok(());
        }
        let left = values.len() as u64;
        Err(self.damaged(columns.len() - 1, SampleFault::Long { left }))
    }

    /// The value of the column at this position.
    ///
    /// # Errors
    /// The sample is damaged.
    ///
    /// # Panics
    /// There is no such column.
    pub fn value(&self, column: usize) -> Result<Value<'a>> {
        let mut bytes = &[][..];
        self.each_value(|i, value| {
            if i == column {
                bytes = value;
            }
        })?;
        self.decode(column, bytes)
    }

    /// All values, in the order of the columns.
    ///
    /// # Errors
    /// The sample is damaged.
    pub fn values(&self) -> Result<Vec<Value<'a>>> {
        let mut bytes = Vec::with_capacity(self.shard.columns.all().len());
        self.each_value(|_, value| bytes.push(value))?;
        let bytes = bytes.into_iter().enumerate();
        bytes.map(|(i, bytes)| self.decode(i, bytes)).collect()
    }

    fn decode(&self, column: usize, bytes: &'a [u8]) -> Result<Value<'a>> {
        let shard: &'a Shard = self.shard;
        let encoding = &shard.columns.all()[column].encoding;
        encoding
            .decode(bytes)
            .map_err(|fault| self.damaged(column, fault))
    }

    fn damaged(&self, column: usize, fault: SampleFault) -> Error {
        Error::MdsSample {
            path: self.shard.path().into(),
            sample: self.number,
            column: self.shard.columns.all()[column].name.clone(),
            fault: fault.into(),
        }
    }
}
