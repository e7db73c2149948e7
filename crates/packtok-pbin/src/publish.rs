//! Publishes files atomically: filled under a temporary name next to the destination, synced, then
//! renamed.
//!
//! Responsible for the guarantee that a file under its final name is complete, for never
//! overwriting a file unless allowed, and for removing the temporary files of killed processes. The
//! caller provides the content.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::crash;
use crate::error::{Error, Result};
use crate::file_system;
use crate::locked_file::{create_new, is_ours, remove_if_abandoned};
use crate::rename::rename_new;

const SUFFIX: &str = ".tmp";
const RANDOM_CHARS: usize = 12;
/// Maximum number of attempts to create a file. A cleaner that locks a new file first costs one
/// attempt, but hardly more than a few in a row.
const MAX_ATTEMPTS: u32 = 16;

/// Whether an existing destination is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// The existing file stays, and publishing fails.
    Never,
    /// The existing file is replaced atomically.
    Existing,
}

/// A temporary file named `.<destination>.<random>.tmp` in the destination's folder.
///
/// It is locked while this value exists, so that [`remove_abandoned`] skips it. If it is dropped
/// before it is published, it is removed. Writes are not buffered.
#[derive(Debug)]
pub struct TempFile {
    file: NamedTempFile,
    dst: PathBuf,
}

impl TempFile {
    /// Creates a temporary file for `dst`, and `dst`'s folder if it is missing.
    ///
    /// # Errors
    /// [`Error::NoFileName`], [`Error::Io`].
    pub fn create(dst: &Path) -> Result<Self> {
        let (folder, prefix) = place(dst)?;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        for _ in 0..MAX_ATTEMPTS {
            let file = tempfile::Builder::new()
                .prefix(&prefix)
                .suffix(SUFFIX)
                .rand_bytes(RANDOM_CHARS)
                // Opened here because `tempfile` would replace the system's error number with text.
                .make_in(folder, create_new)
                .map_err(Error::io(folder))?;
            if is_ours(file.as_file(), file.path()).map_err(Error::io(file.path()))? {
                return Ok(Self {
                    file,
                    dst: dst.into(),
                });
            }
        }
        Err(Error::Io {
            path: dst.into(),
            source: ErrorKind::WouldBlock.into(),
        })
    }

    /// Opens or creates the file at `path`, keeping its content, to publish it as `dst` later.
    ///
    /// The file is neither locked nor removed on drop; both are the caller's responsibility. It
    /// must be on the same file system as `dst`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep(path: &Path, dst: &Path) -> Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(Error::io(path))?;
        // A process may have been killed after it linked the file to its destination and before it
        // removed this name. Writing to this name would then change a published file.
        if file_system::is_named(&file, dst).map_err(Error::io(dst))? {
            fs::remove_file(path).map_err(Error::io(path))?;
            file = options.open(path).map_err(Error::io(path))?;
        }
        let name = TempPath::try_from_path(path).map_err(Error::io(path))?;
        let mut file = NamedTempFile::from_parts(file, name);
        file.disable_cleanup(true);
        let dst = dst.into();
        Ok(Self { file, dst })
    }

    /// The temporary name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The destination that the file was created for.
    pub fn dst(&self) -> &Path {
        &self.dst
    }

    /// Waits until the content is on disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        file_system::sync(self.file.as_file()).map_err(Error::io(&self.dst))
    }

    /// Asks the system to start writing a range of the file to disk, without waiting for it.
    ///
    /// By default, the system waits until a tenth of the memory is dirty. For a large file that is
    /// written quickly, the disk is idle until then, and syncing takes longer by that time.
    pub fn start_writeback(&self, bytes: Range<u64>) {
        file_system::start_writeback(self.file.as_file(), bytes);
    }

    /// Syncs the file, renames it to the destination atomically, and syncs the folder.
    ///
    /// # Errors
    /// [`Error::Exists`] if the destination exists and must not be replaced, [`Error::Io`]. In both
    /// cases the temporary file is removed.
    pub fn publish(mut self, replace: Replace) -> Result<()> {
        self.sync()?;
        crash::point("file synced");
        let Self { mut file, dst } = self;
        let renamed = match replace {
            Replace::Never => rename_new(file.path(), &dst),
            Replace::Existing => fs::rename(file.path(), &dst),
        };
        match renamed {
            Ok(()) => {
                file.disable_cleanup(true);
                crash::point("file renamed");
                sync_folder(place(&dst)?.0)
            }
            Err(error) if replace == Replace::Never && error.kind() == ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: dst })
            }
            Err(source) => Err(Error::Io { path: dst, source }),
        }
    }

    /// Appends bytes of the file `source`, copied by the kernel where it can.
    ///
    /// # Errors
    /// [`Error::Io`]; `source` ends before the range.
    pub fn append_from(&mut self, source: &File, bytes: Range<u64>) -> Result<()> {
        let copied = self
            .copy_from(source, &bytes)
            .map_err(Error::io(&self.dst))?;
        if copied < bytes.end - bytes.start {
            return Err(Error::io(&self.dst)(ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    /// Copies bytes of a file as far as it has them, and returns their number.
    fn copy_from(&self, mut source: &File, bytes: &Range<u64>) -> io::Result<u64> {
        let num_bytes = bytes.end - bytes.start;
        let mut out = self.file.as_file();
        let copied = file_system::copy_range(source, bytes.start, out, num_bytes as usize)? as u64;
        source.seek(SeekFrom::Start(bytes.start + copied))?;
        Ok(copied + io::copy(&mut source.take(num_bytes - copied), &mut out)?)
    }

    /// Truncates or extends the file to `len_bytes`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_len(&self, len_bytes: u64) -> Result<()> {
        let file = self.file.as_file();
        file.set_len(len_bytes).map_err(Error::io(&self.dst))
    }

    /// The open file.
    pub(crate) fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Overwrites bytes at file offset `offset`, independent of the current write position.
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file
            .as_file()
            .write_all_at(bytes, offset)
            .map_err(Error::io(&self.dst))
    }
}

impl Write for TempFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for TempFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(position)
    }
}

/// The folder of `dst`, and the prefix of the names of its temporary files.
fn place(dst: &Path) -> Result<(&Path, OsString)> {
    let name = dst
        .file_name()
        .ok_or_else(|| Error::NoFileName { path: dst.into() })?;
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    Ok((folder_of(dst), prefix))
}

/// The folder that contains `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|open| file_system::sync(&open))
        .map_err(Error::io(folder))
}

/// Writes `bytes` to `dst` atomically, and removes the files of earlier attempts.
///
/// # Errors
/// As [`TempFile::create`] and [`TempFile::publish`].
pub fn publish_bytes(dst: &Path, bytes: &[u8], replace: Replace) -> Result<()> {
    remove_abandoned(&[dst])?;
    let mut file = TempFile::create(dst)?;
    file.write_all(bytes).map_err(Error::io(dst))?;
    file.publish(replace)
}

/// Removes temporary files of `dsts` whose owner has ended, and returns their paths.
///
/// The file lock is the proof: the system releases it when the owner ends. Where files cannot be
/// locked or opened, nothing is removed. Each folder is listed once for all its destinations.
///
/// # Errors
/// [`Error::NoFileName`]; [`Error::Io`] if a folder cannot be listed or a file cannot be removed.
pub fn remove_abandoned(dsts: &[&Path]) -> Result<Vec<PathBuf>> {
    let mut prefixes_in = BTreeMap::<&Path, Vec<OsString>>::new();
    for dst in dsts {
        let (folder, prefix) = place(dst)?;
        prefixes_in.entry(folder).or_default().push(prefix);
    }
    let mut removed = Vec::new();
    for (folder, prefixes) in prefixes_in {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(Error::io(folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::io(folder))?;
            let (name, path) = (entry.file_name(), entry.path());
            if prefixes.iter().any(|prefix| is_temp_name(&name, prefix))
                && remove_if_abandoned(&path).map_err(Error::io(&path))?
            {
                removed.push(path);
            }
        }
    }
    removed.sort();
    Ok(removed)
}

fn is_temp_name(name: &OsStr, prefix: &OsStr) -> bool {
    let random = name
        .as_encoded_bytes()
        .strip_prefix(prefix.as_encoded_bytes());
    let random = random.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARS && random.iter().all(u8::is_ascii_alphanumeric)
    })
}
