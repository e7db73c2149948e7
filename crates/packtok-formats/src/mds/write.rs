//! Writes samples into shard files.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::Replace;

use crate::error::{Error, Result};
use crate::mds::MAX_FILE_BYTES;
use crate::mds::check::STEP_BYTES;
use crate::mds::columns::Columns;
use crate::mds::encoding::Value;
use crate::mds::entry::ShardEntry;
use crate::mds::index::{INDEX_FILE, publish_index};
use crate::mds::marker::Marker;
use crate::mds::options::Options;
use crate::mds::shard_file::Layout;

/// Maximum bytes of samples in memory. Beyond this, samples are spooled to a file, for large size
/// limits.
const SPOOL_BYTES: usize = 128 << 20;

/// Writes samples into the shard files of a folder.
///
/// A file is published when it is complete. The folder is an MDS dataset once
/// [`Finished::publish`] or [`publish_index`] has published its index. Memory is bounded: up to
/// 128 MiB of samples of the open shard are kept in memory, further samples are spooled.
#[derive(Debug)]
pub struct Writer {
    layout: Layout,
    /// Samples of the open shard that have not been spooled.
    samples: Vec<u8>,
    /// The end of each sample of the open shard, counted from its first sample.
    ends: Vec<u32>,
    /// The first samples of the open shard, if the samples exceed [`SPOOL_BYTES`].
    spool: Option<File>,
    spooled: u64,
    entries: Vec<ShardEntry>,
    num_samples: u64,
}

/// The shards that a writer has written.
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
    /// The marker or the index exists or cannot be written.
    pub fn publish(&self, marker: Option<Marker>) -> Result<()> {
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
    pub fn create(folder: &Path, columns: Columns, options: Options) -> Result<Self> {
        let index = folder.join(INDEX_FILE);
        if index.exists() {
            return Err(packtok_pbin::Error::Exists { path: index }.into());
        }
        Ok(Self {
            layout: Layout::new(folder, columns, options)?,
            samples: Vec::new(),
            ends: Vec::new(),
            spool: None,
            spooled: 0,
            entries: Vec::new(),
            num_samples: 0,
        })
    }

    /// The columns, in the order of the values that [`Writer::write`] takes.
    pub fn columns(&self) -> &Columns {
        &self.layout.columns
    }

    /// Number of samples that were written.
    pub fn num_samples(&self) -> u64 {
        self.num_samples
    }

    /// The shards that are published.
    pub fn entries(&self) -> &[ShardEntry] {
        &self.entries
    }

    /// Writes a sample: the values of all columns in the order of [`Writer::columns`], that is, in
    /// the order of their names. Allocates nothing.
    ///
    /// # Errors
    /// A value does not fit its column, in which case the sample is not written; a shard file
    /// cannot be written.
    pub fn write(&mut self, values: &[Value<'_>]) -> Result<()> {
        let start = self.samples.len();
        if let Err(error) = self.layout.append(values, &mut self.samples) {
            self.samples.truncate(start);
            return Err(error);
        }
        let sample_bytes = (self.samples.len() - start) as u64;
        let limit = self.layout.options.size_limit.unwrap_or(MAX_FILE_BYTES);
        if !self.ends.is_empty() && self.file_bytes(sample_bytes) > limit {
            self.finish_shard(start)?;
        }
        if self.file_bytes(sample_bytes) > MAX_FILE_BYTES {
            self.samples.clear();
            return Err(Error::MdsSampleTooLarge {
                path: self.layout.folder.clone(),
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

    /// Size of the open shard's file with one more sample of `sample_bytes`.
    fn file_bytes(&self, sample_bytes: u64) -> u64 {
        let ends = self.ends.last().map_or(0, |&end| u64::from(end));
        let samples = self.ends.len() as u64 + 1;
        self.layout.file_bytes(samples, ends + sample_bytes)
    }

    /// Moves the samples in memory to the spool.
    fn spool(&mut self) -> Result<()> {
        let io = |source| Error::Io {
            path: self.layout.folder.clone(),
            source,
        };
        if self.spool.is_none() {
            self.spool = Some(tempfile::tempfile_in(&self.layout.folder).map_err(io)?);
        }
        if let Some(spool) = &mut self.spool {
            spool.write_all(&self.samples).map_err(io)?;
        }
        self.spooled += self.samples.len() as u64;
        self.samples.clear();
        Ok(())
    }

    /// Publishes the open shard, whose samples in memory end at `stop`. Later samples belong to
    /// the next shard.
    fn finish_shard(&mut self, stop: usize) -> Result<()> {
        let number = self.layout.options.first_shard + self.entries.len() as u64;
        let mut file = self.layout.create(number, self.file_bytes(0) - 4)?;
        file.write_all(&self.layout.head(&self.ends))?;
        if let Some(spool) = &mut self.spool {
            spool.rewind().map_err(Error::io(&self.layout.folder))?;
            file.copy(spool, self.spooled)?;
        }
        for step in self.samples[..stop].chunks(STEP_BYTES) {
            file.write_all(step)?;
        }
        let (file, entry) = self.layout.finish(file, self.ends.len() as u64)?;
        file.publish(Replace::Existing)?;
        self.entries.push(entry);
        self.ends.clear();
        self.spooled = 0;
        self.spool = None;
        let rest = self.samples.len() - stop;
        self.samples.copy_within(stop.., 0);
        self.samples.truncate(rest);
        Ok(())
    }

    /// Publishes the last shard. The caller publishes the index.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<Finished> {
        if !self.ends.is_empty() {
            self.finish_shard(self.samples.len())?;
        }
        Ok(Finished {
            folder: self.layout.folder,
            entries: self.entries,
            num_samples: self.num_samples,
        })
    }

    /// Removes the shard files that were published.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn discard(self) -> Result<()> {
        for entry in &self.entries {
            let path = self.layout.folder.join(&entry.stored().basename);
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }
}
