//! Files that their creator locks during its lifetime, so that other processes can detect
//! abandoned files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::file_system::{self, Locked};

/// Creates a file that must not exist.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o666)
        .open(path)
}

/// Locks the new file at `path` and returns whether the file is still usable.
///
/// A cleaner may have opened the file before it was locked. In that case the cleaner holds the
/// lock, or has already removed the name.
pub(crate) fn is_ours(file: &File, path: &Path) -> io::Result<bool> {
    match file_system::try_lock(file)? {
        Locked::Taken => file_system::is_named(file, path),
        Locked::Held => Ok(false),
        // No cleaner removes anything either.
        Locked::Unsupported => Ok(true),
    }
}

/// Removes the temporary file at `path` if its owner has ended; returns whether it was removed.
pub(crate) fn remove_if_abandoned(path: &Path) -> io::Result<bool> {
    // Opening a FIFO would block, and a symbolic link would lead elsewhere.
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    let Ok(file) = file_system::open_to_lock(path) else {
        return Ok(false);
    };
    // Check the name after locking: the file may have been published or removed since it was
    // listed, and the name may belong to another file.
    if !matches!(file_system::try_lock(&file), Ok(Locked::Taken))
        || !file_system::is_named(&file, path)?
    {
        return Ok(false);
    }
    match fs::remove_file(path) {
        // The owner found the file locked, removed it and created another file.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}
