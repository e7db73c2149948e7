//! The rejects file: one JSON line per skipped record of the corpus. [`Rejects`] writes it and
//! publishes it with an output; [`RejectRecord`] is a line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packtok_jobs::with_suffix;
use packtok_pbin::{Replace, TempFile, crash};
use serde::{Deserialize, Serialize};

use crate::RecordNumber;
use crate::error::{Error, Result};

/// A skipped record; its text stays in the corpus.
#[derive(Debug, Serialize, Deserialize)]
pub struct RejectRecord<'a> {
    /// The source, relative to the common folder of all sources.
    pub source: Cow<'a, str>,
    /// Number of the record in the source.
    #[serde(flatten)]
    pub number: RecordNumber,
    /// Offset of its first byte in the uncompressed source; absent for tables of row groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_bytes: Option<u64>,
    /// Length of the record in bytes; the length of a line excludes the `\n`.
    pub len_bytes: u64,
    /// The reason, as a message for the user.
    pub reason: Cow<'a, str>,
}

/// Identifies the rejects written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectsCheckpoint {
    /// Length of the file.
    pub bytes: u64,
    /// CRC32C of the file.
    pub crc32c: u32,
}

/// The rejects file of one output; it is created at the first reject.
pub struct Rejects {
    dst: PathBuf,
    /// The file that holds the rejects until they are published, if it outlives the run.
    kept: Option<PathBuf>,
    file: Option<BufWriter<TempFile>>,
    written: RejectsCheckpoint,
}

impl Rejects {
    /// The rejects of a run, to be published as `dst`.
    pub fn new(dst: PathBuf) -> Self {
        Self {
            dst,
            kept: None,
            file: None,
            written: RejectsCheckpoint::default(),
        }
    }

    /// As [`Rejects::new`], but keeps the unpublished rejects at `path`, and resumes after
    /// `written`.
    ///
    /// # Errors
    /// The file at `path` is shorter than `written` or cannot be opened.
    pub fn keep(dst: PathBuf, path: PathBuf, written: RejectsCheckpoint) -> Result<Self> {
        let file = match written.bytes {
            0 => None,
            len_bytes => Some(open(&dst, Some(&path), len_bytes)?),
        };
        Ok(Self {
            dst,
            kept: Some(path),
            file,
            written,
        })
    }

    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn write(&mut self, record: &RejectRecord<'_>) -> Result<()> {
        let io = |cause| Error::io(&self.dst, cause);
        let mut line = serde_json::to_vec(record).map_err(|cause| io(cause.into()))?;
        line.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.dst, self.kept.as_deref(), self.written.bytes)?),
        };
        file.write_all(&line).map_err(io)?;
        self.written.bytes += line.len() as u64;
        self.written.crc32c = crc32c::crc32c_append(self.written.crc32c, &line);
        Ok(())
    }

    /// Flushes all rejects to the system and returns a checkpoint.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn checkpoint(&mut self) -> Result<RejectsCheckpoint> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|cause| Error::io(&self.dst, cause))?;
        Ok(self.written)
    }

    /// Publishes a copy of the rejects so far as `dst`; the file itself is unchanged.
    ///
    /// # Errors
    /// The copy cannot be written.
    pub fn publish_copy(&mut self, dst: &Path) -> Result<()> {
        self.checkpoint()?;
        let written = match (&self.kept, &self.file) {
            (_, None) => return Ok(()),
            (Some(path), _) => path,
            (None, Some(file)) => file.get_ref().path(),
        };
        Ok(copy(written, dst)?.publish(Replace::Existing)?)
    }

    /// Publishes the file, or removes the rejects file of an earlier run. Returns the path of the
    /// file if there are rejects.
    ///
    /// Called before the output is published, so that an output never lacks its rejects. A kept
    /// file stays in place, because the run may still be killed before the output is published.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    pub fn publish(mut self) -> Result<Option<PathBuf>> {
        self.checkpoint()?;
        let Some(file) = self.file.take() else {
            return remove_rejects(&self.dst).map(|()| None);
        };
        let file = file
            .into_inner()
            .map_err(|error| Error::io(&self.dst, error.into_error()))?;
        let file = match &self.kept {
            None => file,
            Some(path) => copy(path, &self.dst)?,
        };
        file.publish(Replace::Existing)?;
        crash::point("rejects published");
        Ok(Some(self.dst))
    }
}

/// Path of the rejects of a failed run that would have replaced `output`. `output` keeps its own
/// rejects.
pub fn failed_rejects_path(output: &Path) -> PathBuf {
    with_suffix(output, ".failed.rejects.jsonl")
}

/// Removes a rejects file if it exists.
///
/// # Errors
/// The file exists and cannot be removed.
pub fn remove_rejects(path: &Path) -> Result<()> {
    packtok_jobs::remove_if_there(path).map_err(|cause| Error::io(path, cause))
}

/// Opens the file for rejects, keeping its first `len_bytes`.
fn open(dst: &Path, kept: Option<&Path>, len_bytes: u64) -> Result<BufWriter<TempFile>> {
    let Some(path) = kept else {
        return Ok(BufWriter::new(TempFile::create(dst)?));
    };
    let io = |cause| Error::io(path, cause);
    let mut file = TempFile::keep(path, dst)?;
    // Bytes after that were written after the last checkpoint.
    file.set_len(len_bytes)?;
    file.seek(SeekFrom::End(0)).map_err(io)?;
    Ok(BufWriter::new(file))
}

/// A copy of the file at `path` that can be published.
fn copy(path: &Path, dst: &Path) -> Result<TempFile> {
    let mut file = TempFile::create(dst)?;
    File::open(path)
        .and_then(|mut kept| std::io::copy(&mut kept, &mut file))
        .map_err(|cause| Error::io(dst, cause))?;
    Ok(file)
}

/// Number of leading `checkpoints` that match the file at `path`.
///
/// # Errors
/// The file exists and cannot be read.
pub fn num_matching(
    path: &Path,
    checkpoints: impl Iterator<Item = RejectsCheckpoint>,
) -> Result<usize> {
    let mut reached = RejectsCheckpoint::default();
    let mut file = File::open(path).ok().map(BufReader::new);
    let mut num_matching = 0;
    for checkpoint in checkpoints {
        if checkpoint.bytes > reached.bytes {
            let Some(file) = &mut file else {
                break;
            };
            let mut more = Vec::new();
            file.take(checkpoint.bytes - reached.bytes)
                .read_to_end(&mut more)
                .map_err(|cause| Error::io(path, cause))?;
            reached.bytes += more.len() as u64;
            reached.crc32c = crc32c::crc32c_append(reached.crc32c, &more);
        }
        if reached != checkpoint {
            break;
        }
        num_matching += 1;
    }
    Ok(num_matching)
}

/// Position and reason of the first line in the rejects file at `path`, for the end of a message.
///
/// Empty if the file cannot be read, so that the caller still reports its own error.
pub fn first_reject(path: &Path) -> String {
    let mut line = Vec::new();
    let read = File::open(path).and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
    let record = read
        .ok()
        .and_then(|_| serde_json::from_slice::<RejectRecord<'_>>(&line).ok());
    record.map_or_else(String::new, |record| {
        let RejectRecord { source, reason, .. } = &record;
        let place = match (record.number, record.offset_bytes) {
            // The line in the shard is of no use for finding it in the source.
            (RecordNumber::LineInShard(_), Some(byte)) => format!("{source}: byte {byte}"),
            (number, _) => number.shown_in(source),
        };
        format!("; the first is {place}: {reason}")
    })
}
