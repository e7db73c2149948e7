//! The rejects file: one JSON line for each line of the corpus that was left out.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packtok_pbin::{Replace, TempFile, crash};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::suffix::with_suffix;

/// What is said of a line that was left out; its text stays in the corpus.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RejectRecord<'a> {
    /// The source, relative to the folder that all sources have in common.
    pub(crate) source: Cow<'a, str>,
    /// Which line it is.
    #[serde(flatten)]
    pub(crate) number: LineNumber,
    /// Place of its first byte in the uncompressed source.
    pub(crate) offset_bytes: u64,
    /// Its length without the `\n`.
    pub(crate) len_bytes: u64,
    pub(crate) reason: Cow<'a, str>,
}

/// 1-based number of a line.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineNumber {
    /// Counted from the start of the source.
    Line(u64),
    /// Counted from the first line that a shard has of the source.
    LineInShard(u64),
}

/// What tells the rejects written so far from any others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RejectsCheckpoint {
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

/// The rejects file of one output; there is none as long as nothing was rejected.
pub(crate) struct Rejects {
    dst: PathBuf,
    /// Where they stand until they are published, if that outlives the run.
    kept: Option<PathBuf>,
    file: Option<BufWriter<TempFile>>,
    written: RejectsCheckpoint,
}

impl Rejects {
    /// The rejects of a run, to be published as `dst`.
    pub(crate) fn new(dst: PathBuf) -> Self {
        Self {
            dst,
            kept: None,
            file: None,
            written: RejectsCheckpoint::default(),
        }
    }

    /// The same, kept at `path` until then, going on behind `written`, which is there.
    pub(crate) fn keep(dst: PathBuf, path: PathBuf, written: RejectsCheckpoint) -> Result<Self> {
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

    pub(crate) fn write(&mut self, record: &RejectRecord<'_>) -> Result<()> {
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

    /// Hands all that was written to the system and returns what tells it from anything else.
    pub(crate) fn checkpoint(&mut self) -> Result<RejectsCheckpoint> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|cause| Error::io(&self.dst, cause))?;
        Ok(self.written)
    }

    /// Publishes what was written so far as `dst`; the file itself stays as it is.
    pub(crate) fn publish_copy(&mut self, dst: &Path) -> Result<()> {
        self.checkpoint()?;
        let written = match (&self.kept, &self.file) {
            (_, None) => return Ok(()),
            (Some(path), _) => path,
            (None, Some(file)) => file.get_ref().path(),
        };
        Ok(copy(written, dst)?.publish(Replace::Existing)?)
    }

    /// Publishes the file, or removes that of an earlier run; returns its path if there is one.
    ///
    /// Called before the output itself is published, so that no output is ever without its rejects. What is kept
    /// stays where it is: the run may yet be killed before the output is published.
    pub(crate) fn publish(mut self) -> Result<Option<PathBuf>> {
        self.checkpoint()?;
        let Some(file) = self.file.take() else {
            return remove_if_there(&self.dst).map(|()| None);
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

/// The rejects of a run that failed and was to replace `output`, which keeps its own.
pub(crate) fn failed_rejects_path(output: &Path) -> PathBuf {
    with_suffix(output, ".failed.rejects.jsonl")
}

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(Error::io(path, cause)),
        _ => Ok(()),
    }
}

/// The file that rejects are written to, of which the first `len_bytes` are there and noted.
fn open(dst: &Path, kept: Option<&Path>, len_bytes: u64) -> Result<BufWriter<TempFile>> {
    let Some(path) = kept else {
        return Ok(BufWriter::new(TempFile::create(dst)?));
    };
    let io = |cause| Error::io(path, cause);
    let mut file = TempFile::keep(path, dst)?;
    // What stands behind was never noted.
    file.set_len(len_bytes)?;
    file.seek(SeekFrom::End(0)).map_err(io)?;
    Ok(BufWriter::new(file))
}

/// The file at `path` as one that can be published without it.
fn copy(path: &Path, dst: &Path) -> Result<TempFile> {
    let mut file = TempFile::create(dst)?;
    File::open(path)
        .and_then(|mut kept| std::io::copy(&mut kept, &mut file))
        .map_err(|cause| Error::io(dst, cause))?;
    Ok(file)
}

/// How many of `checkpoints`, in order, the file at `path` agrees with.
pub(crate) fn num_agreed(
    path: &Path,
    checkpoints: impl Iterator<Item = RejectsCheckpoint>,
) -> Result<usize> {
    let mut found = RejectsCheckpoint::default();
    let mut file = File::open(path).ok().map(BufReader::new);
    let mut num_agreed = 0;
    for checkpoint in checkpoints {
        if checkpoint.bytes > found.bytes {
            let Some(file) = &mut file else {
                break;
            };
            let mut more = Vec::new();
            file.take(checkpoint.bytes - found.bytes)
                .read_to_end(&mut more)
                .map_err(|cause| Error::io(path, cause))?;
            found.bytes += more.len() as u64;
            found.crc32c = crc32c::crc32c_append(found.crc32c, &more);
        }
        if found != checkpoint {
            break;
        }
        num_agreed += 1;
    }
    Ok(num_agreed)
}
