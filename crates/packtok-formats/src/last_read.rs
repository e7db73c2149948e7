//! The index of a folder that was read last: the many files of a folder are opened one after the other, and
//! each of them would read the index again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};

/// What was parsed from the file that was read last.
pub(crate) struct LastRead<T>(Mutex<Option<(State, Arc<T>)>>);

/// A file, and the state in which it was read.
#[derive(Debug, PartialEq, Eq)]
struct State {
    path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl State {
    fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            path: path.into(),
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl<T> LastRead<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What `read` returns for the file at `path`, or what it returned the last time if the file is the same.
    ///
    /// # Errors
    /// Those of `read`; there is no such file.
    pub(crate) fn get(&self, path: &Path, read: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let state = State::of(path).map_err(Error::io(path))?;
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, parsed)) = &*lock()
            && *last == state
        {
            return Ok(Arc::clone(parsed));
        }
        // The lock is not held, so that other folders are not waited for.
        let parsed = Arc::new(read()?);
        *lock() = Some((state, Arc::clone(&parsed)));
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_if_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let last = LastRead::new();
        let path = folder.path().join("index");
        let read = || fs::read_to_string(&path).map_err(Error::io(&path));
        let get = |calls: &mut u32| {
            let parsed = last.get(&path, || {
                *calls += 1;
                read()
            });
            parsed.unwrap().as_ref().clone()
        };
        let mut calls = 0;
        fs::write(&path, "a").unwrap();
        assert_eq!([get(&mut calls), get(&mut calls)], ["a", "a"]);
        assert_eq!(calls, 1);
        fs::write(folder.path().join("new"), "b").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_eq!(get(&mut calls), "b");
        assert_eq!(calls, 2);
        fs::remove_file(&path).unwrap();
        assert!(last.get(&path, read).is_err());
    }
}
