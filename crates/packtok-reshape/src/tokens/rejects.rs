//! The rejects of a packed corpus, divided among the NPY files.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use packtok_jobs::remove_if_there;
use packtok_pbin::{Replace, TempFile};
use serde::Deserialize;

use crate::error::{Error, Result};

/// Suffix of the name of a rejects file.
const SUFFIX: &str = ".rejects.jsonl";

#[derive(Deserialize)]
struct Line {
    source: String,
}

/// The rejects file of a packed corpus, read in the order of its sources.
pub(super) struct Rejects {
    path: PathBuf,
    lines: Option<BufReader<File>>,
    /// The next line, and its source.
    next: Option<(String, Vec<u8>)>,
}

/// The rejects of the file at `path`.
pub(super) fn rejects_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

impl Rejects {
    /// The rejects of a pbin; empty if the pbin has no rejects file.
    pub(super) fn of(pbin: &Path) -> Result<Self> {
        let path = rejects_path(pbin);
        let lines = match File::open(&path) {
            Ok(file) => Some(BufReader::new(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let mut rejects = Self {
            path,
            lines,
            next: None,
        };
        rejects.advance()?;
        Ok(rejects)
    }

    /// Writes the rejects of a source next to its file `npy`, and returns their number.
    ///
    /// If the source has no rejects, removes the rejects file of an earlier run.
    pub(super) fn publish(&mut self, label: &str, npy: &Path) -> Result<u64> {
        let dst = rejects_path(npy);
        let mut num_rejected = 0;
        let mut file = None;
        while let Some((_, line)) = self.next.take_if(|(source, _)| source == label) {
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(TempFile::create(&dst)?),
            };
            file.write_all(&line).map_err(Error::io(&dst))?;
            num_rejected += 1;
            self.advance()?;
        }
        match file {
            Some(file) => file.publish(Replace::Existing)?,
            None => remove_if_there(&dst).map_err(Error::io(&dst))?,
        }
        Ok(num_rejected)
    }

    /// Skips the rejects of a source.
    pub(super) fn skip(&mut self, label: &str) -> Result<()> {
        while self.next.take_if(|(source, _)| source == label).is_some() {
            self.advance()?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        let Some(lines) = &mut self.lines else {
            return Ok(());
        };
        let mut line = Vec::new();
        lines
            .read_until(b'\n', &mut line)
            .map_err(Error::io(&self.path))?;
        if line.is_empty() {
            self.lines = None;
            return Ok(());
        }
        let parsed: Line =
            serde_json::from_slice(&line).map_err(|source| Error::DamagedRejects {
                path: self.path.clone(),
                source,
            })?;
        self.next = Some((parsed.source, line));
        Ok(())
    }
}
