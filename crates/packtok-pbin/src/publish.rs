//! Publishes files atomically: filled under a temporary name next to the destination, synced, then
//! renamed.
//!
//! Responsible for the guarantee that a file under its final name is complete, for never
//! overwriting a file unless allowed, and for removing the temporary files of killed processes. The
//! caller provides the content.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::crash;
use crate::error::{Error, Result};

const SUFFIX: &str = ".tmp";
const RANDOM_CHARS: usize = 12;
/// A cleaner that locks a new file first costs one attempt. More than a few in a row are not a
/// coincidence.
const MAX_ATTEMPTS: u32 = 16;

/// What to do if the destination already exists.
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
            if is_ours(file.as_file()).map_err(Error::io(file.path()))? {
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
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Error::io(path))?;
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
        self.file.as_file().sync_all().map_err(Error::io(&self.dst))
    }

    /// Syncs the file, renames it to the destination atomically, and syncs the folder.
    ///
    /// # Errors
    /// [`Error::Exists`] if the destination exists and must not be replaced, [`Error::Io`]. In both
    /// cases the temporary file is removed.
    pub fn publish(mut self, replace: Replace) -> Result<()> {
        self.sync()?;
        crash::point("file synced");
        let Self { file, dst } = self;
        let published = match replace {
            Replace::Never => file.persist_noclobber(&dst),
            Replace::Existing => file.persist(&dst),
        };
        match published {
            Ok(_) => {
                crash::point("file renamed");
                sync_folder(place(&dst)?.0)
            }
            Err(failed)
                if replace == Replace::Never && failed.error.kind() == ErrorKind::AlreadyExists =>
            {
                Err(Error::Exists { path: dst })
            }
            Err(failed) => Err(Error::Io {
                path: dst,
                source: failed.error,
            }),
        }
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

fn create_new(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o666)
        .open(path)
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

/// Locks a new file and returns whether it is still usable.
///
/// A cleaner may have seen the file before it was locked. In that case the cleaner holds the lock,
/// or has removed the name already.
fn is_ours(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(TryLockError::WouldBlock) => Ok(false),
        // Files cannot be locked here, so no cleaner removes anything.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        // Some network file systems do not support syncing folders.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Unsupported | ErrorKind::InvalidInput
            ) =>
        {
            Ok(())
        }
        other => other.map_err(Error::io(folder)),
    }
}

/// Writes `bytes` to `dst` atomically, and removes what earlier attempts left.
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

fn remove_if_abandoned(path: &Path) -> io::Result<bool> {
    // Opening a FIFO would block, and a symbolic link would lead elsewhere.
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    let Ok(file) = File::open(path) else {
        return Ok(false);
    };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    // The file may have been published or removed since it was listed, and the name may belong to
    // another file now.
    let (Ok(named), locked) = (fs::symlink_metadata(path), file.metadata()?) else {
        return Ok(false);
    };
    if (named.dev(), named.ino()) != (locked.dev(), locked.ino()) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        // The owner found the file locked, removed it and created another.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}
