//! The journal of a long run, kept next to its output so that a killed run can resume.
//!
//! While an output `x` is being made, the folder `x.partial` contains the journal, the unfinished
//! parts and the claim of the owner. Entries are only appended. After a crash, a part may lack
//! data that an entry describes, so readers verify the data of each entry.

mod owner;
mod record;

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use owner::Owner;
use packtok_pbin::{crash, file_system};
use record::{complete_lines, entry_of, line_of};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::files::{remove_if_there, with_suffix};

/// File name of the journal.
const JOURNAL_NAME: &str = "journal";

/// Suffix of the folder.
const SUFFIX: &str = ".partial";

/// Maximum number of attempts to open the folder. Another run may remove the folder at the same
/// time, but hardly more than a few times in a row.
const MAX_ATTEMPTS: u32 = 16;

/// The folder of the unfinished parts of an output.
pub fn folder_of(output: &Path) -> PathBuf {
    with_suffix(output, SUFFIX)
}

/// Removes the private journals of `output` whose processes were killed on this machine.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_private_journals(output: &Path) -> Result<()> {
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
            && owner::has_ended(&entry.path().join(JOURNAL_NAME))
        {
            fs::remove_dir_all(entry.path()).map_err(io)?;
        }
    }
    Ok(())
}

/// A journal that this process owns.
#[derive(Debug)]
pub struct Journal {
    output: PathBuf,
    folder: PathBuf,
    file: File,
    /// The ends of the head and of each entry.
    ends: Vec<u64>,
    /// Whether the journal is private, so that no other run resumes it.
    is_private: bool,
    owner: Owner,
}

impl Journal {
    /// Takes ownership of the journal of `output`, creating it if needed.
    ///
    /// # Errors
    /// [`Error::OutputHeld`] if another process owns it; [`Error::Io`]; the error of `tick`,
    /// which is called while waiting.
    pub fn open(output: &Path, tick: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        Self::open_in(folder_of(output), output, tick)
    }

    /// As [`Journal::open`], but if another process owns the journal, opens a private journal,
    /// which cannot be resumed.
    ///
    /// For outputs that several processes may make at once because all of them write the same
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; the error of `tick`, which is called while waiting.
    pub fn open_or_private(output: &Path, tick: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        match Self::open(output, tick) {
            Err(Error::OutputHeld { .. }) => {
                let private = with_suffix(output, &format!(".{}{SUFFIX}", owner::new_attempt()));
                let journal = Self::open_in(private, output, tick)?;
                Ok(Self {
                    is_private: true,
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
            if file_system::is_named(&file, &path).map_err(|error| Error::io(&path, error))? {
                crash::point("journal opened");
                return Ok(Self {
                    output: output.to_owned(),
                    folder,
                    file,
                    ends: Vec::new(),
                    is_private: false,
                    owner,
                });
            }
        }
        Err(Error::io(&folder, ErrorKind::WouldBlock.into()))
    }

    /// Whether the journal has no entries in the part that was read.
    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    /// Whether the journal is private, so that no other run resumes it.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// The folder of the unfinished parts.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The head and the entries after it, up to the first incomplete entry; `None` if there is no
    /// head.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read<H: DeserializeOwned, E: DeserializeOwned>(
        &mut self,
    ) -> Result<Option<(H, Vec<E>)>> {
        let mut text = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut text))
            .map_err(|error| Error::io(&self.folder, error))?;
        let mut lines = complete_lines(&text);
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

    /// Discards everything and writes a new head.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(&mut self, head: &impl Serialize) -> Result<()> {
        self.ends.clear();
        self.cut(0)?;
        self.append(head)?;
        crash::point("journal begun");
        Ok(())
    }

    /// Discards all entries after the first `num_entries`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn truncate(&mut self, num_entries: usize) -> Result<()> {
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

    /// Appends an entry.
    ///
    /// # Errors
    /// [`Error::OutputTaken`] if another process took over the journal; [`Error::Io`].
    pub fn append(&mut self, entry: &impl Serialize) -> Result<()> {
        self.check_owner()?;
        let line = line_of(entry).map_err(|error| Error::io(&self.folder, error.into()))?;
        self.file
            .write_all(&line)
            .map_err(|error| Error::io(&self.folder, error))?;
        let end = self.ends.last().copied().unwrap_or(0) + line.len() as u64;
        self.ends.push(end);
        Ok(())
    }

    /// Checks that this process still owns the journal.
    ///
    /// # Errors
    /// [`Error::OutputTaken`] if another process owns the journal.
    pub fn check_owner(&self) -> Result<()> {
        if self.owner.is_lost() {
            return Err(Error::OutputTaken {
                path: self.output.clone(),
            });
        }
        Ok(())
    }

    /// Removes the journal and the unfinished parts.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
        let Self {
            folder,
            file,
            owner,
            ..
        } = self;
        let result = remove_files(&folder);
        drop(owner);
        let journal = folder.join(JOURNAL_NAME);
        // The journal file is removed last, while it is locked. Until then, no other process
        // starts here.
        let result = result.and_then(|()| remove_if_there(&journal));
        drop(file);
        result.map_err(|error| Error::io(&folder, error))?;
        // If the folder is not empty, another run has started in it.
        let _ = fs::remove_dir(&folder);
        crash::point("journal removed");
        Ok(())
    }
}

/// Removes everything except the journal and its claim.
fn remove_files(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != JOURNAL_NAME && entry.file_name() != owner::CLAIM_NAME {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}
