//! Operations that a file system may lack: locks, renames that replace nothing, links, shared
//! mappings, syncing, copies within the kernel.
//!
//! Network file systems and file systems in user space report a missing operation with many
//! different error numbers. Only this file lists them. If an operation is missing, most callers
//! skip it; `rename.rs` and `map.rs` have other fallbacks. All other error numbers, such as `EIO`,
//! `ENOSPC` and `EDQUOT`, are failures and stay errors.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;

/// An operation that some file systems do not have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Lock,
    RenameNew,
    Link,
    Map,
    Sync,
    Copy,
}

impl Operation {
    /// Whether `error` means that this file system does not have the operation.
    pub(crate) fn is_missing(self, error: &io::Error) -> bool {
        let Some(errno) = Errno::from_io_error(error) else {
            return error.kind() == ErrorKind::Unsupported;
        };
        // For these operations, arguments that the program controls are never invalid.
        [
            Errno::NOSYS,
            Errno::OPNOTSUPP,
            Errno::NOTSUP,
            Errno::INVAL,
            Errno::NOTTY,
        ]
        .contains(&errno)
            || self.own().contains(&errno)
    }

    /// Error numbers with this meaning for this operation only.
    fn own(self) -> &'static [Errno] {
        match self {
            // NFS without a lock manager, and NFS for files not open for writing, which it cannot
            // lock exclusively.
            Self::Lock => &[Errno::NOLCK, Errno::BADF],
            // Sandboxes that do not know the system call. If renaming itself is forbidden, the
            // fallback reports it.
            Self::RenameNew => &[Errno::PERM],
            // VFAT and exFAT; file systems with links only within a folder, a volume or an owner's files.
            Self::Link => &[Errno::PERM, Errno::ACCESS, Errno::XDEV, Errno::MLINK],
            Self::Map => &[Errno::NODEV],
            // A folder cannot be opened for writing, which some file systems require.
            Self::Sync => &[Errno::BADF],
            // Two file systems; sandboxes.
            Self::Copy => &[Errno::XDEV, Errno::PERM],
        }
    }
}

/// The result of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// This process holds the lock until the file is closed.
    Taken,
    /// Another process holds it.
    Held,
    /// The file system does not support locks.
    Unsupported,
}

/// Locks `file` exclusively without waiting.
///
/// # Errors
/// The system reports an error. A file system without locks is not an error.
pub fn try_lock(file: &File) -> io::Result<Locked> {
    match file.try_lock() {
        Ok(()) => Ok(Locked::Taken),
        Err(TryLockError::WouldBlock) => Ok(Locked::Held),
        Err(TryLockError::Error(error)) if Operation::Lock.is_missing(&error) => {
            Ok(Locked::Unsupported)
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes a shared lock on `file`, after waiting for exclusive locks. Does nothing where files
/// cannot be locked.
///
/// # Errors
/// As [`try_lock`].
pub fn lock_shared(file: &File) -> io::Result<()> {
    unless_missing(Operation::Lock, file.lock_shared())
}

/// Opens the file at `path` for locking. Opens it for writing if that is allowed, because NFS
/// requires it.
///
/// # Errors
/// The file cannot be opened.
pub fn open_to_lock(path: &Path) -> io::Result<File> {
    let opened = File::options().read(true).write(true).open(path);
    match opened {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            File::open(path)
        }
        opened => opened,
    }
}

/// Whether `path` still names the open `file`. Another process may have removed or replaced the
/// name.
///
/// # Errors
/// The system reports an error.
pub fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until the content of a file or folder is on disk. Does nothing where the file system
/// cannot sync.
///
/// # Errors
/// Writing failed.
pub fn sync(file: &File) -> io::Result<()> {
    unless_missing(Operation::Sync, file.sync_all())
}

/// Asks the system to start writing a range of `file` to disk, without waiting for it.
///
/// Linux starts writing when it receives the advice that the pages are not needed, and keeps the
/// pages until they are on disk. On other systems, the range is written when the file is synced.
pub fn start_writeback(file: &File, bytes: Range<u64>) {
    #[cfg(target_os = "linux")]
    if let Some(len) = NonZeroU64::new(bytes.end.saturating_sub(bytes.start)) {
        // Only advice: an error of the disk is reported by syncing.
        let _ = rustix::fs::fadvise(file, bytes.start, Some(len), rustix::fs::Advice::DontNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, bytes);
}

fn unless_missing(operation: Operation, result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if operation.is_missing(&error) => Ok(()),
        result => result,
    }
}

/// Lets the kernel copy up to `len` bytes of `source`, starting at byte `offset`, to the position of `out`. Returns
/// the number of bytes copied, which is smaller, or 0, where the kernel cannot copy.
#[cfg(target_os = "linux")]
pub(crate) fn copy_range(
    source: &File,
    mut offset: u64,
    out: &File,
    len: usize,
) -> io::Result<usize> {
    let mut copied = 0;
    while copied < len {
        match rustix::fs::copy_file_range(source, Some(&mut offset), out, None, len - copied) {
            Ok(0) => break,
            Ok(n) => copied += n,
            Err(Errno::INTR) => {}
            Err(errno) if Operation::Copy.is_missing(&errno.into()) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(copied)
}

/// Fallback for systems without such a call: copies nothing.
#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_range(_: &File, _: u64, _: &File, _: usize) -> io::Result<usize> {
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Operation; 6] = [
        Operation::Lock,
        Operation::RenameNew,
        Operation::Link,
        Operation::Map,
        Operation::Sync,
        Operation::Copy,
    ];

    #[test]
    fn failures_of_a_disk_are_not_missing_operations() {
        for errno in [
            Errno::IO,
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::ROFS,
            Errno::STALE,
        ] {
            for operation in ALL {
                assert!(
                    !operation.is_missing(&errno.into()),
                    "{operation:?} {errno}"
                );
            }
        }
    }
}
