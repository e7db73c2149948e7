//! The rejects file: one JSON line for each line of the corpus that was left out.

use std::borrow::Cow;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use packtok_pbin::{Replace, TempFile};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

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

/// The rejects file of one output; there is none as long as nothing was rejected.
pub(crate) struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<TempFile>>,
}

impl Rejects {
    /// The rejects of a run, to be published as `path`.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    pub(crate) fn write(&mut self, record: &RejectRecord<'_>) -> Result<()> {
        let io = |cause| Error::io(&self.path, cause);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(TempFile::create(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, record).map_err(|cause| io(cause.into()))?;
        file.write_all(b"\n").map_err(io)
    }

    /// Publishes the file, or removes that of an earlier run; returns its path if there is one.
    ///
    /// Called before the output itself is published, so that no output is ever without its rejects.
    pub(crate) fn publish(self) -> Result<Option<PathBuf>> {
        let Some(file) = self.file else {
            return match std::fs::remove_file(&self.path) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    Err(Error::io(&self.path, cause))
                }
                _ => Ok(None),
            };
        };
        let file = file
            .into_inner()
            .map_err(|error| Error::io(&self.path, error.into_error()))?;
        file.publish(Replace::Existing)?;
        Ok(Some(self.path))
    }
}
