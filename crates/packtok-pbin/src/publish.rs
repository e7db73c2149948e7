//! Publishing files: filled under a temporary name beside the destination, synced, then renamed.
//!
//! Responsible for that a file under its final name is whole, that nothing is overwritten unasked, and
//! for clearing away what killed processes left. What is in the file is the caller's matter.

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
/// A cleaner that takes a new file's lock first costs one attempt; more than a few in a row is no accident.
const MAX_ATTEMPTS: u32 = 16;

/// What happens to a file that has the destination's name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// It stays, and publishing fails.
    Never,
    /// It is replaced in one step.
    Existing,
}

/// A file that is being filled, named `.<destination>.<random>.tmp` in the destination's folder.
///
/// It is locked while it lives, so that [`remove_abandoned`] leaves it alone, and removed when it is
/// dropped unpublished. Writes are not buffered.
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
                // Opened here, because the library would hide the system's error number in a text.
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

    /// A file for `dst` that is, or will be, at `path` until it is published, with what is in it already.
    ///
    /// It is neither locked nor removed when it is dropped: whoever names the path answers for both. It must be
    /// on the same file system as `dst`.
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

    /// Waits until the content is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        self.file.as_file().sync_all().map_err(Error::io(&self.dst))
    }

    /// Syncs the file, gives it the destination's name in one step, and syncs the folder.
    ///
    /// # Errors
    /// [`Error::Exists`] if the name is taken and may not be replaced, [`Error::Io`]; the temporary
    /// file is gone then.
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

    /// Cuts or lengthens the file to `len_bytes`.
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

    /// Overwrites bytes at file offset `offset`, wherever writing stands.
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

/// The folder of `dst`, and what the names of its temporary files start with.
fn place(dst: &Path) -> Result<(&Path, OsString)> {
    let name = dst
        .file_name()
        .ok_or_else(|| Error::NoFileName { path: dst.into() })?;
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    Ok((folder_of(dst), prefix))
}

/// The folder that `path` is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Locks a new file and says whether it is still ours to fill.
///
/// A cleaner may have seen the file before it was locked: then the cleaner has the lock, or has removed
/// the name already.
fn is_ours(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(TryLockError::WouldBlock) => Ok(false),
        // Nobody can lock here, so no cleaner removes anything.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        // Some network file systems know no sync of folders.
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

/// Gives `bytes` the name `dst` in one step, and clears away what earlier attempts left.
///
/// # Errors
/// As [`TempFile::create`] and [`TempFile::publish`].
pub fn publish_bytes(dst: &Path, bytes: &[u8], replace: Replace) -> Result<()> {
    remove_abandoned(&[dst])?;
    let mut file = TempFile::create(dst)?;
    file.write_all(bytes).map_err(Error::io(dst))?;
    file.publish(replace)
}

/// Removes temporary files of `dsts` whose owner is provably gone, and returns their paths.
///
/// The proof is the file's lock, which the system takes back when its owner ends. Where files cannot be
/// locked or opened, nothing is removed. A folder is listed once, for all that are in it.
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
    // A FIFO of that name would block the opening, a link would lead elsewhere.
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    let Ok(file) = File::open(path) else {
        return Ok(false);
    };
    if file.try_lock().is_err() {
        return Ok(false);
    }
    // Published or removed since it was listed: the name may be another file's by now.
    let (Ok(named), locked) = (fs::symlink_metadata(path), file.metadata()?) else {
        return Ok(false);
    };
    if (named.dev(), named.ino()) != (locked.dev(), locked.ino()) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        // Its owner found the lock taken, gave the name up and took another.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}
