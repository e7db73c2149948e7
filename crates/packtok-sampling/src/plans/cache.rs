//! Plan files that are worked out once: found in one of several folders, or made in the first that takes them.
//!
//! Responsible for that one process makes a file while others wait for it, and for that nobody gets a file
//! that is damaged or of something else. Which folders are looked in is the caller's matter.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use packtok_pbin::remove_abandoned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::plans::plan_file::{Key, PlanFile};
use crate::progress::{Monitor, Progress, report};

/// Time between two looks at whether another process has made the file.
const WAIT: Duration = Duration::from_millis(20);
/// Bytes of the key's hash that a name holds.
const NAME_HASH_BYTES: usize = 16;

/// The name of the file that `key` stands for, the same everywhere.
pub fn file_name(key: &Key) -> String {
    let mut hash = Sha256::new();
    hash.update((key.kind as u32).to_le_bytes());
    hash.update(key.options[0].to_le_bytes());
    hash.update(key.options[1].to_le_bytes());
    hash.update(key.data);
    let hash = &hash.finalize()[..NAME_HASH_BYTES];
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hex}.plan", key.kind.name())
}

/// Returns the path of the file that `key` stands for, which `build` makes if no folder has it.
///
/// The first of `folders` that has it whole is taken, otherwise the first that it can be written to; a
/// folder that is missing is made. A file whose checksum or key is wrong counts as not there and is
/// replaced. Of several processes that ask at once for the same folders, one builds and the others wait;
/// if that one is killed, the next takes over. `build` gets the path to publish under, and is called once
/// more for the next folder if writing to the one before fails.
///
/// # Errors
/// [`Error::NoWritableFolder`]; [`Error::Cancelled`] if `monitor` says so while another process is waited
/// for; those of `build`.
pub fn find_or_build(
    folders: &[PathBuf],
    key: &Key,
    monitor: &mut Monitor<'_>,
    build: &mut dyn FnMut(&Path, &mut Monitor<'_>) -> Result<()>,
) -> Result<PathBuf> {
    let name = file_name(key);
    let paths = || folders.iter().map(|folder| folder.join(&name));
    if let Some(path) = paths().find(|path| is_right(path, key)) {
        return Ok(path);
    }
    let mut refusals = Vec::new();
    for path in paths() {
        match build_or_wait(&path, key, monitor, build) {
            Ok(()) => return Ok(path),
            Err(error) if is_about(&error, &path) => refusals.push(error),
            Err(error) => return Err(error),
        }
    }
    Err(Error::NoWritableFolder { name, refusals })
}

/// Whether `path` holds what `key` stands for, undamaged.
fn is_right(path: &Path, key: &Key) -> bool {
    let checked = PlanFile::open(path).and_then(|file| {
        file.require(key)?;
        file.verify()
    });
    checked.is_ok()
}

/// Whether a file at `dst` could not be written, as opposed to worked out.
fn is_about(error: &Error, dst: &Path) -> bool {
    let (Error::Io { path, .. } | Error::Pbin(packtok_pbin::Error::Io { path, .. })) = error else {
        return false;
    };
    let folder = folder_of(dst);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    // The file itself, its temporary names and its lock have its name in theirs.
    let is_beside = || {
        let (name, dst) = (name(path), name(dst));
        let at = name.len().min(1);
        name == dst || name.as_encoded_bytes()[at..].starts_with(dst.as_encoded_bytes())
    };
    path == folder || (folder_of(path) == folder && is_beside())
}

fn build_or_wait(
    path: &Path,
    key: &Key,
    monitor: &mut Monitor<'_>,
    build: &mut dyn FnMut(&Path, &mut Monitor<'_>) -> Result<()>,
) -> Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    loop {
        if let Some(lock) = Lock::try_take(path)? {
            // The one who had the lock before may have been done just now.
            if !is_right(path, key) {
                remove_damaged(path)?;
                remove_abandoned(&[path])?;
                build(path, monitor)?;
            }
            drop(lock);
            return Ok(());
        }
        report(monitor, &Progress::default())?;
        thread::sleep(WAIT);
        if is_right(path, key) {
            return Ok(());
        }
    }
}

/// Removes what is in the way, so that those who wait need not read it again and again.
fn remove_damaged(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The right to make a file: a locked file beside it, removed when the work is done.
struct Lock {
    path: PathBuf,
    /// Locked while it is open; the system unlocks it when its process ends.
    _file: File,
}

impl Lock {
    /// Takes the lock of `dst`, unless another process has it.
    fn try_take(dst: &Path) -> Result<Option<Self>> {
        let mut name = std::ffi::OsString::from(".");
        name.push(dst.file_name().unwrap_or_default());
        name.push(".lock");
        let path = folder_of(dst).join(name);
        let taken = Self::try_lock(&path).map_err(|source| Error::io(&path, source))?;
        Ok(taken.map(|file| Self { path, _file: file }))
    }

    fn try_lock(path: &Path) -> io::Result<Option<File>> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Nobody can lock here: all build, and the last one's file stays, which is the same.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its owner may have removed it between the opening and the locking: then it locks nothing.
        let (locked, named) = (file.metadata()?, fs::metadata(path));
        let is_named =
            named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino()));
        Ok(is_named.then_some(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // One that stays is taken by the next who builds here.
        let _ = fs::remove_file(&self.path);
    }
}
