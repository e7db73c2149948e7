//! Renames a file to a new name without replacing a file, on every file system.
//!
//! A rename that replaces nothing and a link are both atomic. On file systems that have neither,
//! the name is checked first, under a claim.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::crash;
use crate::file_system::Operation;
use crate::locked_file::{create_new, is_ours, remove_if_abandoned};

/// Maximum wait for a claim on a name. The owner of a claim only checks and renames, so an older
/// claim was left by a killed process.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two attempts to claim a name.
const CLAIM_INTERVAL: Duration = Duration::from_millis(20);

/// Suffix of a claim's name. It is also the suffix of a temporary file, so that abandoned claims
/// are removed like temporary files.
const CLAIM_SUFFIX: &str = ".publishclaim.tmp";

/// Renames a file to a name that does not exist, in the same folder or another of its file system.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if the name exists; the system fails.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let renamed =
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from);
    match renamed {
        Err(error) if Operation::RenameNew.is_missing(&error) => {}
        renamed => return renamed,
    }
    match fs::hard_link(from, to) {
        Ok(()) => {
            crash::point("file linked");
            // The file is complete under its new name, and a second name does no harm.
            let _ = fs::remove_file(from);
            Ok(())
        }
        Err(error) if Operation::Link.is_missing(&error) => rename_under_claim(from, to),
        failed => failed,
    }
}

/// The claim on `name`: a file next to it.
fn claim_path(name: &Path) -> PathBuf {
    let mut claim = OsString::from(".");
    claim.push(name.file_name().unwrap_or_default());
    claim.push(CLAIM_SUFFIX);
    name.with_file_name(claim)
}

/// Checks that `to` does not exist, then renames `from`. In between, the claim excludes other
/// processes that publish the same name with this function, but no other processes.
fn rename_under_claim(from: &Path, to: &Path) -> io::Result<()> {
    let claim = NameClaim::take(claim_path(to))?;
    let renamed = match fs::symlink_metadata(to) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    };
    drop(claim);
    renamed
}

/// The right to publish a name: a file that only one process can create; removed on drop.
struct NameClaim {
    path: PathBuf,
    /// Locked, so that no other process considers it abandoned.
    _file: File,
}

impl NameClaim {
    fn take(path: PathBuf) -> io::Result<Self> {
        let mut deadline = Instant::now() + CLAIM_TIMEOUT;
        loop {
            match create_new(&path) {
                Ok(file) if is_ours(&file, &path)? => return Ok(Self { path, _file: file }),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if remove_if_abandoned(&path)? {
                        continue;
                    }
                    if Instant::now() >= deadline {
                        let _ = fs::remove_file(&path);
                        deadline = Instant::now() + CLAIM_TIMEOUT;
                    }
                }
                Err(error) => return Err(error),
            }
            thread::sleep(CLAIM_INTERVAL);
        }
    }
}

impl Drop for NameClaim {
    fn drop(&mut self) {
        // If the claim cannot be removed, the next process waits for it and then removes it.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_rename_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "new").unwrap();
        rename_under_claim(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        fs::write(&from, "newer").unwrap();
        let error = rename_under_claim(&from, &to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"new");
        assert!(!claim_path(&to).exists());
    }

    #[test]
    fn of_many_claimed_renames_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        let renamed = thread::scope(|scope| {
            let threads = Vec::from_iter((0..8).map(|i| {
                let (from, to) = (folder.path().join(i.to_string()), &to);
                scope.spawn(move || {
                    fs::write(&from, i.to_string()).unwrap();
                    rename_under_claim(&from, to).is_ok()
                })
            }));
            Vec::from_iter(threads.into_iter().map(|thread| thread.join().unwrap()))
        });
        let winner = renamed.iter().position(|&is_renamed| is_renamed).unwrap();
        assert_eq!(renamed.iter().filter(|&&is_renamed| is_renamed).count(), 1);
        assert_eq!(fs::read_to_string(&to).unwrap(), winner.to_string());
    }

    #[test]
    fn the_claim_of_a_killed_process_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "new").unwrap();
        fs::write(claim_path(&to), "").unwrap();
        rename_under_claim(&from, &to).unwrap();
        assert!(!claim_path(&to).exists());
    }
}
