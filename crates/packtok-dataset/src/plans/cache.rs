//! Finds a plan file in one of several folders, or builds it in the first writable folder.
//!
//! Responsible for letting one process build a file while others wait, and for never returning a
//! file that is damaged or belongs to other data. The caller chooses the folders.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use packtok_jobs::{Monitor, Progress, hex, report_progress};
use packtok_pbin::file_system::{self, Locked};
use packtok_pbin::remove_abandoned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::plans::plan_file::{Key, PlanFile};

/// Time between two checks whether another process has built the file.
const WAIT: Duration = Duration::from_millis(20);
/// Bytes of the key's hash in a file name.
const NAME_HASH_BYTES: usize = 16;

/// The file name for `key`, the same on every machine.
pub fn file_name(key: &Key) -> String {
    let mut hash = Sha256::new();
    hash.update((key.kind as u32).to_le_bytes());
    hash.update(key.options[0].to_le_bytes());
    hash.update(key.options[1].to_le_bytes());
    hash.update(key.data);
    let hash = &hash.finalize()[..NAME_HASH_BYTES];
    format!("{}-{}.plan", key.kind.name(), hex(hash))
}

/// Returns the path of the file for `key`; `build` builds it if no folder contains it.
///
/// Uses the first of `folders` with a valid file, otherwise the first writable folder. Missing
/// folders are created. A file with a wrong checksum or key counts as missing and is replaced. If
/// several processes call this for the same folders, one builds and the others wait; if the
/// builder is killed, the next process takes over. `build` receives the path to publish under, and
/// is called again for the next folder if writing to a folder fails.
///
/// # Errors
/// [`Error::NoWritableFolder`]; [`packtok_jobs::Error::Cancelled`] if `monitor` breaks while
/// waiting for another process; the errors of `build`.
pub fn find_or_build(
    folders: &[PathBuf],
    key: &Key,
    monitor: &mut Monitor<'_>,
    build: &mut dyn FnMut(&Path, &mut Monitor<'_>) -> Result<()>,
) -> Result<PathBuf> {
    let name = file_name(key);
    let paths = || folders.iter().map(|folder| folder.join(&name));
    if let Some(path) = paths().find(|path| is_valid(path, key)) {
        return Ok(path);
    }
    let mut refusals = Vec::new();
    for path in paths() {
        match build_or_wait(&path, key, monitor, build) {
            Ok(()) => return Ok(path),
            Err(error) if is_about(&error, &path) => refusals.push(packtok_pbin::chain(&error)),
            Err(error) => return Err(error),
        }
    }
    Err(Error::NoWritableFolder { name, refusals })
}

/// Whether `path` contains a valid file for `key`.
fn is_valid(path: &Path, key: &Key) -> bool {
    let checked = PlanFile::open(path).and_then(|file| {
        file.require(key)?;
        file.verify()
    });
    checked.is_ok()
}

/// Whether the error means that a file at `dst` could not be written. False for other errors of
/// building.
fn is_about(error: &Error, dst: &Path) -> bool {
    let (Error::Io { path, .. } | Error::Pbin(packtok_pbin::Error::Io { path, .. })) = error else {
        return false;
    };
    let folder = folder_of(dst);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    // The names of the file, its temporary files and its lock all contain its name.
    let is_in_folder = || {
        let (name, dst) = (name(path), name(dst));
        let at = name.len().min(1);
        name == dst || name.as_encoded_bytes()[at..].starts_with(dst.as_encoded_bytes())
    };
    path == folder || (folder_of(path) == folder && is_in_folder())
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
            // The previous lock holder may have just finished.
            if !is_valid(path, key) {
                remove_damaged(path)?;
                remove_abandoned(&[path])?;
                build(path, monitor)?;
            }
            drop(lock);
            return Ok(());
        }
        report_progress(monitor, &Progress::default())?;
        thread::sleep(WAIT);
        if is_valid(path, key) {
            return Ok(());
        }
    }
}

/// Removes a damaged file, so that waiting processes need not verify it repeatedly.
fn remove_damaged(path: &Path) -> Result<()> {
    packtok_jobs::remove_if_there(path).map_err(|error| Error::io(path, error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The exclusive right to build a file: a locked file next to it, removed afterwards.
struct Lock {
    path: PathBuf,
    /// Locked while it is open; the system releases the lock when the process ends.
    _file: File,
}

impl Lock {
    /// Takes the lock of `dst`, unless another process holds it.
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
        match file_system::try_lock(&file)? {
            // The owner may have removed the file between the open and the lock. In that case the
            // lock protects nothing.
            Locked::Taken => Ok(file_system::is_named(&file, path)?.then_some(file)),
            Locked::Held => Ok(None),
            // Without locks, every process builds. The last file stays; all files are equal.
            Locked::Unsupported => Ok(Some(file)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If the lock file cannot be removed, the next builder in this folder locks the same file.
        let _ = fs::remove_file(&self.path);
    }
}
