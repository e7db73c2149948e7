//! Writes samples into shard files.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::{Replace, TempFile, remove_abandoned};

use crate::mds::MAX_FILE_BYTES;
use crate::mds::check::{Compression, Hash, Hashed, STEP_BYTES};
use crate::mds::columns::Columns;
use crate::mds::encoding::Value;
use crate::mds::entry::{FileEntry, ShardEntry, shard_name};
use crate::mds::error::MdsError;
use crate::mds::index::{INDEX_FILE, publish_index};
use crate::mds::marker::Marker;

/// The size limit of a shard file that mosaicml-streaming's writer has by default.
pub const DEFAULT_SIZE_LIMIT: u64 = 1 << 26;
/// Samples in memory beyond which they are spooled to a file, for large size limits.
const SPOOL_BYTES: usize = 128 << 20;

/// How samples are written.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest size of a shard file with more than one sample. `None` is recorded as no limit; positions of 32 bits limit
    /// it nevertheless.
    pub size_limit: Option<u64>,
    /// The hashes of each file in the index.
    pub hashes: Vec<Hash>,
    /// The compression of the files.
    pub compression: Option<Compression>,
    /// The number of the first shard.
    pub first_shard: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size_limit: Some(DEFAULT_SIZE_LIMIT),
            hashes: vec![Hash::Sha256, Hash::Xxh64],
            compression: None,
            first_shard: 0,
        }
    }
}

/// Writes samples into the shard files of a folder.
///
/// A file is published when it is complete. The folder is an MDS dataset once its index is published, by [`Finished::publish`] or
/// [`publish_index`]. Memory is bounded: the samples of the open shard are kept up to 128 MiB, more are spooled.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    columns: Columns,
    options: Options,
    hash_names: Vec<String>,
    config: Vec<u8>,
    num_sizes: usize,
    /// Samples of the open shard that are not spooled.
    samples: Vec<u8>,
    /// The end of each sample of the open shard, counted from its first sample.
    ends: Vec<u32>,
    /// The first samples of the open shard, if they are many.
    spool: Option<File>,
    spooled: u64,
    entries: Vec<ShardEntry>,
    num_samples: u64,
}

/// What a writer wrote.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The folder.
    pub folder: PathBuf,
    /// The shards, for the index.
    pub entries: Vec<ShardEntry>,
    /// Number of samples.
    pub num_samples: u64,
}

impl Finished {
    /// Publishes the marker, if there is one, and then the index.
    ///
    /// # Errors
    /// They exist, or cannot be written.
    pub fn publish(&self, marker: Option<Marker>) -> Result<(), MdsError> {
        if let Some(marker) = marker {
            marker.with_index(&self.entries).publish(&self.folder)?;
        }
        publish_index(&self.folder, &self.entries, Replace::Never)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.stored().bytes).sum()
    }
}

impl Writer {
    /// Starts writing into `folder`, which is created if it is missing. Shard files of an earlier run are replaced.
    ///
    /// # Errors
    /// The folder has an index; an option is invalid; the folder cannot be written.
    pub fn create(folder: &Path, columns: Columns, mut options: Options) -> Result<Self, MdsError> {
        if let Some(found) = options.size_limit
            && !(1..=MAX_FILE_BYTES).contains(&found)
        {
            return Err(MdsError::SizeLimit { found });
        }
        let index = folder.join(INDEX_FILE);
        if index.exists() {
            return Err(packtok_pbin::Error::Exists { path: index }.into());
        }
        fs::create_dir_all(folder).map_err(MdsError::io(folder))?;
        remove_unfinished(folder)?;
        options.hashes.sort_unstable();
        options.hashes.dedup();
        let hash_names: Vec<_> = options
            .hashes
            .iter()
            .map(|hash| hash.name().to_owned())
            .collect();
        let compression = options.compression.as_ref().map(Compression::text);
        let config = columns.config(compression, &hash_names, options.size_limit);
        let num_sizes = columns
            .all()
            .iter()
            .filter(|column| column.size.is_none())
            .count();
        Ok(Self {
            folder: folder.into(),
            columns,
            hash_names,
            config,
            num_sizes,
            samples: Vec::new(),
            ends: Vec::new(),
            spool: None,
            spooled: 0,
            entries: Vec::new(),
            num_samples: 0,
            options,
        })
    }

    /// The columns, in the order of the values that [`Writer::write`] takes.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Number of samples that were written.
    pub fn num_samples(&self) -> u64 {
        self.num_samples
    }

    /// The shards that are published.
    pub fn entries(&self) -> &[ShardEntry] {
        &self.entries
    }

    /// Writes a sample: the values of all columns in the order of [`Writer::columns`], which is that of their names. Allocates nothing.
    ///
    /// # Errors
    /// A value does not fit its column, in which case the sample is left out; a shard file cannot be written.
    pub fn write(&mut self, values: &[Value<'_>]) -> Result<(), MdsError> {
        let start = self.samples.len();
        if let Err(error) = self.append(values) {
            self.samples.truncate(start);
            return Err(error);
        }
        let sample_bytes = (self.samples.len() - start) as u64;
        let limit = self.options.size_limit.unwrap_or(MAX_FILE_BYTES);
        if !self.ends.is_empty() && self.file_bytes(sample_bytes) > limit {
            self.finish_shard(start)?;
        }
        if self.file_bytes(sample_bytes) > MAX_FILE_BYTES {
            self.samples.clear();
            return Err(MdsError::SampleTooLarge {
                path: self.folder.clone(),
                found: sample_bytes,
            });
        }
        // Fits in 32 bits, as the size of the file does.
        self.ends
            .push((self.spooled + self.samples.len() as u64) as u32);
        self.num_samples += 1;
        if self.samples.len() >= SPOOL_BYTES {
            self.spool()?;
        }
        Ok(())
    }

    fn append(&mut self, values: &[Value<'_>]) -> Result<(), MdsError> {
        let columns = self.columns.all();
        if values.len() != columns.len() {
            return Err(MdsError::Values {
                found: values.len(),
                expected: columns.len(),
            });
        }
        let mut head = self.samples.len();
        self.samples.resize(head + 4 * self.num_sizes, 0);
        for (column, value) in columns.iter().zip(values) {
            let start = self.samples.len();
            let encoded = column.encoding.encode(value, &mut self.samples);
            encoded.map_err(|found| MdsError::Value {
                column: column.name.clone(),
                found,
                expected: column.encoding_text.clone(),
            })?;
            if column.size.is_none() {
                let size = self.samples.len() - start;
                let size = u32::try_from(size).map_err(|_| MdsError::SampleTooLarge {
                    path: self.folder.clone(),
                    found: size as u64,
                })?;
                self.samples[head..head + 4].copy_from_slice(&size.to_le_bytes());
                head += 4;
            }
        }
        Ok(())
    }

    /// Size of the open shard's file with one more sample of `sample_bytes`.
    fn file_bytes(&self, sample_bytes: u64) -> u64 {
        let ends = self.ends.last().map_or(0, |&end| u64::from(end));
        8 + self.config.len() as u64 + ends + sample_bytes + 4 * (self.ends.len() as u64 + 1)
    }

    /// Moves the samples in memory to the spool.
    fn spool(&mut self) -> Result<(), MdsError> {
        let io = |source| MdsError::Io {
            path: self.folder.clone(),
            source,
        };
        if self.spool.is_none() {
            self.spool = Some(tempfile::tempfile_in(&self.folder).map_err(io)?);
        }
        if let Some(spool) = &mut self.spool {
            spool.write_all(&self.samples).map_err(io)?;
        }
        self.spooled += self.samples.len() as u64;
        self.samples.clear();
        Ok(())
    }

    /// Publishes the open shard, whose samples in memory end at `stop`; what follows belongs to the next one.
    fn finish_shard(&mut self, stop: usize) -> Result<(), MdsError> {
        let number = self.options.first_shard + self.entries.len() as u64;
        let compression = self.options.compression.as_ref().map(Compression::text);
        let raw_name = shard_name(number, None);
        let stored_name = shard_name(number, compression);
        let path = self.folder.join(&stored_name);
        let file = Hashed::new(TempFile::create(&path)?, &self.options.hashes);
        let (raw_data, zip_data, file) = match &self.options.compression {
            None => {
                let file = self.write_shard(file, stop).map_err(MdsError::io(&path))?;
                (file.entry(raw_name), None, file)
            }
            Some(compression) => {
                let raw = self.compressed(file, compression);
                let raw = raw
                    .and_then(|raw| self.write_shard(raw, stop))
                    .map_err(MdsError::io(&path))?;
                let raw_data = raw.entry(raw_name);
                let file = raw.inner.finish().map_err(MdsError::io(&path))?;
                (raw_data, Some(file.entry(stored_name)), file)
            }
        };
        file.inner.publish(Replace::Existing)?;
        self.entries.push(self.entry(raw_data, zip_data));
        self.ends.clear();
        self.spooled = 0;
        self.spool = None;
        let rest = self.samples.len() - stop;
        self.samples.copy_within(stop.., 0);
        self.samples.truncate(rest);
        Ok(())
    }

    /// A compressor whose input is hashed too. The frame records the size of its content, which `zstd.decompress` of Python needs.
    fn compressed<W: Write>(
        &self,
        file: W,
        compression: &Compression,
    ) -> std::io::Result<Hashed<zstd::Encoder<'static, W>>> {
        let mut encoder = zstd::Encoder::new(file, compression.level())?;
        encoder.include_contentsize(true)?;
        encoder.set_pledged_src_size(Some(self.file_bytes(0) - 4))?;
        Ok(Hashed::new(encoder, &self.options.hashes))
    }

    /// Writes all bytes of the open shard and returns `file`.
    fn write_shard<W: Write>(&self, mut file: W, stop: usize) -> std::io::Result<W> {
        let mut head = Vec::with_capacity(8 + 4 * self.ends.len() + self.config.len());
        let first = (8 + 4 * self.ends.len() + self.config.len()) as u32;
        head.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        head.extend_from_slice(&first.to_le_bytes());
        for end in &self.ends {
            head.extend_from_slice(&(first + end).to_le_bytes());
        }
        head.extend_from_slice(&self.config);
        file.write_all(&head)?;
        if let Some(mut spool) = self.spool.as_ref() {
            spool.rewind()?;
            let mut step = vec![0; STEP_BYTES];
            let mut left = self.spooled;
            while left > 0 {
                let step = &mut step[..STEP_BYTES.min(left as usize)];
                spool.read_exact(step)?;
                file.write_all(step)?;
                left -= step.len() as u64;
            }
        }
        for step in self.samples[..stop].chunks(STEP_BYTES) {
            file.write_all(step)?;
        }
        Ok(file)
    }

    fn entry(&self, raw_data: FileEntry, zip_data: Option<FileEntry>) -> ShardEntry {
        let columns = self.columns.all();
        ShardEntry {
            column_encodings: columns
                .iter()
                .map(|column| column.encoding_text.clone())
                .collect(),
            column_names: columns.iter().map(|column| column.name.clone()).collect(),
            column_sizes: columns.iter().map(|column| column.size).collect(),
            compression: self
                .options
                .compression
                .as_ref()
                .map(|compression| compression.text().to_owned()),
            format: "mds".to_owned(),
            hashes: self.hash_names.clone(),
            raw_data,
            samples: self.ends.len() as u64,
            size_limit: self.options.size_limit.into(),
            version: 2,
            zip_data,
        }
    }

    /// Publishes the last shard. The index is left to the caller.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<Finished, MdsError> {
        if !self.ends.is_empty() {
            self.finish_shard(self.samples.len())?;
        }
        Ok(Finished {
            folder: self.folder,
            entries: self.entries,
            num_samples: self.num_samples,
        })
    }

    /// Removes the shard files that were published.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn discard(self) -> Result<(), MdsError> {
        for entry in &self.entries {
            let path = self.folder.join(&entry.stored().basename);
            fs::remove_file(&path).map_err(MdsError::io(&path))?;
        }
        Ok(())
    }
}

/// Removes temporary shard files of processes that have ended.
fn remove_unfinished(folder: &Path) -> Result<(), MdsError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(MdsError::io(folder))? {
        let name = entry.map_err(MdsError::io(folder))?.file_name();
        files.extend(destination(&name).map(|file| folder.join(file)));
    }
    files.sort();
    files.dedup();
    remove_abandoned(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    Ok(())
}

/// The file that the temporary file `name` would become.
fn destination(name: &OsStr) -> Option<&str> {
    let name = name.to_str()?.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (file, _) = name.rsplit_once('.')?;
    file.starts_with("shard.").then_some(file)
}
