//! Mapping a file for reading: the one place where a file's bytes enter memory.
//!
//! Responsible for refusing what is no regular file without waiting for it, and for the only `unsafe`
//! of this crate.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Maps the regular file at `path`; folders, FIFOs and devices are refused before they can block.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    open_and_map(path).map(|(_, map)| map)
}

/// Maps the regular file at `path` and also returns what the map is of.
pub(crate) fn open_and_map(path: &Path) -> Result<(File, Mmap)> {
    // Opening a FIFO waits for a writer, so the kind is looked up first, and again on what was opened.
    if !fs::metadata(path).map_err(Error::io(path))?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    let file = File::open(path).map_err(Error::io(path))?;
    if !file.metadata().map_err(Error::io(path))?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    // SAFETY: the map is read-only and private to this process's readers. That nobody shortens or
    // edits the file while it is mapped is upheld by every writer of this project: files are filled
    // under a temporary name and published whole by rename. A file shortened by others ends the
    // process by SIGBUS; its content is never trusted to stay as it was checked.
    let map = unsafe { Mmap::map(&file) }.map_err(Error::io(path))?;
    Ok((file, map))
}

/// The bytes of a file, mapped for reading; cheap to share between threads.
///
/// For files beside a pbin that are published whole by rename, as a pbin is, and are read at random.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps the regular file at `path`, in the same time for any length.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::NotAFile`] for a folder, a FIFO or a device.
    pub fn open(path: &Path) -> Result<Self> {
        map_file(path).map(Self)
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
