//! What is done of a long piece of work, kept beside its output so that a killed run goes on.
//!
//! Beside an output `x` stands, while it is being made, the folder `x.partial`: the journal, the unfinished
//! parts, and who is at work. Entries are only ever added; a part that an entry speaks of may be torn, so whoever
//! reads an entry checks what it says.

mod error;
mod owner;
mod record;

pub use error::JournalError;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use packtok_pbin::crash;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::suffix::with_suffix;
use owner::Owner;
use record::{entry_of, line_of, whole_lines};

/// Name of the journal in its folder.
const JOURNAL_NAME: &str = "journal";

/// End of the folder's name.
const SUFFIX: &str = ".partial";

/// Another run may remove the folder while this one opens it; more than a few times in a row is no accident.
const MAX_ATTEMPTS: u32 = 16;

/// The folder that an output has while it is being made.
pub(crate) fn folder_of(output: &Path) -> PathBuf {
    with_suffix(output, SUFFIX)
}

/// Removes what processes left that had a journal of their own for `output` and were killed on this machine.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn remove_asides(output: &Path) -> Result<()> {
    let parent = output.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    let io = |error| Error::io(parent, error);
    let Some(name) = output.file_name() else {
        return Ok(());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    for entry in fs::read_dir(parent).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let attempt = name
            .strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix(SUFFIX));
        if attempt.is_some_and(owner::is_attempt)
            && owner::is_gone(&entry.path().join(JOURNAL_NAME))
        {
            fs::remove_dir_all(entry.path()).map_err(io)?;
        }
    }
    Ok(())
}

/// A journal that this process has for itself.
#[derive(Debug)]
pub(crate) struct Journal {
    output: PathBuf,
    folder: PathBuf,
    file: File,
    /// Where the head and each entry end.
    ends: Vec<u64>,
    /// Whether no other run will look for it.
    is_aside: bool,
    owner: Owner,
}

impl Journal {
    /// Takes the journal of `output` for this process; there is one afterwards.
    ///
    /// # Errors
    /// [`Error::OutputHeld`] if another process has it; [`Error::Io`]; what `tick`, called while waiting, returned.
    pub(crate) fn open(output: &Path, tick: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        Self::open_in(folder_of(output), output, tick)
    }

    /// The same; where another process has the journal, one of this process alone, which is not gone on with.
    ///
    /// For outputs that several processes may make at once, because all of them write the same.
    ///
    /// # Errors
    /// [`Error::Io`]; what `tick`, called while waiting, returned.
    pub(crate) fn open_or_aside(
        output: &Path,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        match Self::open(output, tick) {
            Err(Error::Journal(JournalError::OutputHeld { .. })) => {
                let aside = with_suffix(output, &format!(".{}{SUFFIX}", owner::new_attempt()));
                let journal = Self::open_in(aside, output, tick)?;
                Ok(Self {
                    is_aside: true,
                    ..journal
                })
            }
            journal => journal,
        }
    }

    fn open_in(
        folder: PathBuf,
        output: &Path,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
            let path = folder.join(JOURNAL_NAME);
            let opened = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let file = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| Error::io(&path, error))?,
            };
            let owner = match Owner::take(output, &folder, &file, tick) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
                owner => owner?,
            };
            let metadata = file.metadata().map_err(|error| Error::io(&path, error))?;
            if metadata.nlink() > 0 {
                crash::point("journal opened");
                return Ok(Self {
                    output: output.to_owned(),
                    folder,
                    file,
                    ends: Vec::new(),
                    is_aside: false,
                    owner,
                });
            }
        }
        Err(Error::io(&folder, ErrorKind::WouldBlock.into()))
    }

    /// Whether nothing is noted in it, as far as it was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    /// Whether no other run will go on with it.
    pub(crate) fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// Where the unfinished parts are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The head and the entries behind it, up to the first that is torn; `None` if there is no head.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn read<H: DeserializeOwned, E: DeserializeOwned>(
        &mut self,
    ) -> Result<Option<(H, Vec<E>)>> {
        let mut text = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut text))
            .map_err(|error| Error::io(&self.folder, error))?;
        let mut lines = whole_lines(&text);
        let head = lines
            .next()
            .and_then(|(line, end)| Some((entry_of(line)?, end)));
        let Some((head, end)) = head else {
            return Ok(None);
        };
        self.ends = vec![end as u64];
        let mut entries = Vec::new();
        for (line, end) in lines {
            let Some(entry) = entry_of(line) else {
                break;
            };
            entries.push(entry);
            self.ends.push(end as u64);
        }
        Ok(Some((head, entries)))
    }

    /// Forgets everything and writes a new head.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn begin(&mut self, head: &impl Serialize) -> Result<()> {
        self.ends.clear();
        self.cut(0)?;
        self.append(head)?;
        crash::point("journal begun");
        Ok(())
    }

    /// Forgets all entries behind the first `num_entries`, of those that were read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn truncate(&mut self, num_entries: usize) -> Result<()> {
        self.ends.truncate(num_entries + 1);
        self.cut(self.ends.last().copied().unwrap_or(0))
    }

    fn cut(&mut self, len_bytes: u64) -> Result<()> {
        self.file
            .set_len(len_bytes)
            .and_then(|()| self.file.seek(SeekFrom::End(0)))
            .map_err(|error| Error::io(&self.folder, error))?;
        Ok(())
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`Error::OutputTaken`] if another process has taken the journal; [`Error::Io`].
    pub(crate) fn append(&mut self, entry: &impl Serialize) -> Result<()> {
        self.check_owner()?;
        let line = line_of(entry).map_err(|error| Error::io(&self.folder, error.into()))?;
        self.file
            .write_all(&line)
            .map_err(|error| Error::io(&self.folder, error))?;
        let end = self.ends.last().copied().unwrap_or(0) + line.len() as u64;
        self.ends.push(end);
        Ok(())
    }

    /// Whether this process still has the journal.
    ///
    /// # Errors
    /// [`Error::OutputTaken`] if it has not.
    pub(crate) fn check_owner(&self) -> Result<()> {
        match self.owner.is_lost() {
            false => Ok(()),
            true => Err(Error::Journal(JournalError::OutputTaken {
                path: self.output.clone(),
            })),
        }
    }

    /// Removes the journal and the unfinished parts, which are not needed any more.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn remove(self) -> Result<()> {
        let Self {
            folder,
            file,
            owner,
            ..
        } = self;
        let result = remove_files(&folder);
        drop(owner);
        let journal = folder.join(JOURNAL_NAME);
        // Last, and while it is locked: until then nobody else begins here.
        let result = result.and_then(|()| ignoring_absence(fs::remove_file(&journal)));
        drop(file);
        result.map_err(|error| Error::io(&folder, error))?;
        // If it is not empty, another run has begun in it.
        let _ = fs::remove_dir(&folder);
        crash::point("journal removed");
        Ok(())
    }
}

/// Removes everything but the journal and the claim on it.
fn remove_files(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != JOURNAL_NAME && entry.file_name() != owner::CLAIM_NAME {
            ignoring_absence(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

fn ignoring_absence(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
