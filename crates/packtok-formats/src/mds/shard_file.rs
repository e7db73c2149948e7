//! The bytes of a shard file that is being written: its head, its samples, its hashes, and its
//! entry in the index.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::{TempFile, remove_abandoned};

use crate::error::{Error, Result};
use crate::mds::MAX_FILE_BYTES;
use crate::mds::check::{Compression, Hashed, STEP_BYTES};
use crate::mds::columns::Columns;
use crate::mds::encoding::Value;
use crate::mds::entry::{FileEntry, ShardEntry, shard_name};
use crate::mds::options::Options;

/// The properties that all shard files of a writer share.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) folder: PathBuf,
    pub(super) columns: Columns,
    pub(super) options: Options,
    hash_names: Vec<String>,
    config: Vec<u8>,
    num_sizes: usize,
}

impl Layout {
    /// Prepares `folder` for shard files.
    pub(super) fn new(folder: &Path, columns: Columns, mut options: Options) -> Result<Self> {
        if let Some(size_limit) = options.size_limit
            && !(1..=MAX_FILE_BYTES).contains(&size_limit)
        {
            return Err(Error::MdsSizeLimit { found: size_limit });
        }
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
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
            options,
            hash_names,
            config,
            num_sizes,
        })
    }

    /// Appends the bytes of a sample to `out`; after an error, `out` may have part of them.
    pub(super) fn append(&self, values: &[Value<'_>], out: &mut Vec<u8>) -> Result<()> {
        let columns = self.columns.all();
        if values.len() != columns.len() {
            return Err(Error::MdsNumValues {
                found: values.len(),
                expected: columns.len(),
            });
        }
        let mut head = out.len();
        out.resize(head + 4 * self.num_sizes, 0);
        for (column, value) in columns.iter().zip(values) {
            let start = out.len();
            let encoded = column.encoding.encode(value, out);
            encoded.map_err(|description| Error::MdsValue {
                column: column.name.clone(),
                found: description,
                expected: column.encoding_text.clone(),
            })?;
            if column.size.is_none() {
                let size = out.len() - start;
                let size = u32::try_from(size).map_err(|_| Error::MdsSampleTooLarge {
                    path: self.folder.clone(),
                    found: size as u64,
                })?;
                out[head..head + 4].copy_from_slice(&size.to_le_bytes());
                head += 4;
            }
        }
        Ok(())
    }

    /// Bytes of a file with samples of these total bytes.
    pub(super) fn file_bytes(&self, samples: u64, sample_bytes: u64) -> u64 {
        8 + self.config.len() as u64 + 4 * samples + sample_bytes
    }

    /// The bytes before the first sample. `ends` are the ends of the samples, counted from the
    /// first sample.
    pub(super) fn head(&self, ends: &[u32]) -> Vec<u8> {
        let first = self.file_bytes(ends.len() as u64, 0) as u32;
        let mut head = Vec::with_capacity(first as usize);
        head.extend_from_slice(&(ends.len() as u32).to_le_bytes());
        head.extend_from_slice(&first.to_le_bytes());
        for end in ends {
            head.extend_from_slice(&(first + end).to_le_bytes());
        }
        head.extend_from_slice(&self.config);
        head
    }

    /// Creates the file of shard `number`, which will have `bytes` bytes without compression.
    pub(super) fn create(&self, number: u64, bytes: u64) -> Result<ShardFile> {
        let compression = self.options.compression.as_ref();
        let raw_name = shard_name(number, None);
        let stored_name = shard_name(number, compression.map(Compression::text));
        let path = self.folder.join(&stored_name);
        let hashes = &self.options.hashes;
        let file = Hashed::new(TempFile::create(&path)?, hashes);
        let output = match compression {
            None => Output::Raw(Box::new(file)),
            Some(compression) => {
                let encoder = compressor(file, compression.level(), bytes);
                let encoder = encoder.map_err(Error::io(&path))?;
                Output::Compressed(Box::new(Hashed::new(encoder, hashes)))
            }
        };
        Ok(ShardFile {
            path,
            raw_name,
            stored_name,
            output,
        })
    }

    /// The complete file with `samples` samples, and its entry in the index.
    pub(super) fn finish(&self, file: ShardFile, samples: u64) -> Result<(TempFile, ShardEntry)> {
        let ShardFile {
            path,
            raw_name,
            stored_name,
            output,
        } = file;
        let (raw_data, zip_data, file) = match output {
            Output::Raw(file) => (file.entry(raw_name), None, *file),
            Output::Compressed(raw) => {
                let raw_data = raw.entry(raw_name);
                let file = raw.inner.finish().map_err(Error::io(&path))?;
                (raw_data, Some(file.entry(stored_name)), file)
            }
        };
        Ok((file.inner, self.entry(raw_data, zip_data, samples)))
    }

    fn entry(&self, raw_data: FileEntry, zip_data: Option<FileEntry>, samples: u64) -> ShardEntry {
        let compression = self.options.compression.as_ref();
        ShardEntry {
            compression: compression.map(|compression| compression.text().to_owned()),
            hashes: self.hash_names.clone(),
            size_limit: self.options.size_limit.into(),
            zip_data,
            ..self.columns.entry(raw_data, samples)
        }
    }
}

/// A shard file that is being written. Dropping it before it is published removes it.
pub(super) struct ShardFile {
    path: PathBuf,
    raw_name: String,
    stored_name: String,
    output: Output,
}

enum Output {
    Raw(Box<Hashed<TempFile>>),
    Compressed(Box<Hashed<zstd::Encoder<'static, Hashed<TempFile>>>>),
}

impl ShardFile {
    /// Writes the next bytes of the uncompressed content.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.output {
            Output::Raw(file) => file.write_all(bytes),
            Output::Compressed(file) => file.write_all(bytes),
        };
        written.map_err(Error::io(&self.path))
    }

    /// Writes the next `bytes` bytes of `source`.
    pub(super) fn copy(&mut self, source: &mut impl Read, bytes: u64) -> Result<()> {
        let mut step = vec![0; STEP_BYTES];
        let mut left = bytes;
        while left > 0 {
            let step = &mut step[..STEP_BYTES.min(left as usize)];
            source.read_exact(step).map_err(Error::io(&self.path))?;
            self.write_all(step)?;
            left -= step.len() as u64;
        }
        Ok(())
    }
}

/// A compressor of `bytes` bytes. The frame records this number, because `zstd.decompress` of
/// Python needs it.
fn compressor<W: Write>(file: W, level: i32, bytes: u64) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(file, level)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(bytes))?;
    Ok(encoder)
}

/// Removes temporary shard files of processes that have ended.
fn remove_unfinished(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let name = entry.map_err(Error::io(folder))?.file_name();
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
