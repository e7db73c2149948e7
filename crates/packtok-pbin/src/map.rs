//! Memory-maps files for reading.
//!
//! Responsible for rejecting paths that are not regular files without blocking on them, and for the
//! only `unsafe` of this crate.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};

use crate::access_pattern::AccessPattern;
use crate::error::{Error, Result};
use crate::file_system::Operation;

/// Maps the regular file at `path`. Folders, FIFOs and devices are rejected before they can block.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    open_and_map(path).map(|(_, map)| map)
}

/// Maps the regular file at `path` and also returns the open file.
pub(crate) fn open_and_map(path: &Path) -> Result<(File, Mmap)> {
    // Opening a FIFO blocks until it has a writer, so check the type before opening, and again on
    // the open file in case the path changed in between.
    if !fs::metadata(path).map_err(Error::io(path))?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    let file = File::open(path).map_err(Error::io(path))?;
    if !file.metadata().map_err(Error::io(path))?.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    let map = map(&file).map_err(Error::io(path))?;
    Ok((file, map))
}

/// Maps `file` shared, or privately where the file system has no shared mappings.
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only, so both kinds show the file. Nothing may truncate or edit the
    // file while it is mapped; every writer of this project upholds that, because files are filled
    // under a temporary name and published by rename. If another program truncates the file, SIGBUS
    // ends the process. Code never relies on checked content staying unchanged.
    match unsafe { Mmap::map(file) } {
        // SAFETY: as above.
        Err(error) if Operation::Map.is_missing(&error) => unsafe {
            MmapOptions::new().map_copy_read_only(file)
        },
        mapped => mapped,
    }
}

/// Unmaps the pages of a map that are in memory. They are read again at the next access. Does
/// nothing where the system cannot unmap pages.
pub(crate) fn release_pages(map: &Mmap) {
    // SAFETY: all maps of this module are read-only and show a file, so the next access of a page
    // reads the same bytes from it.
    let released = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
    // If this fails, the process only uses more memory.
    drop(released);
}

/// The bytes of a memory-mapped file. Cheap to share between threads.
///
/// For files next to a pbin that are published by rename, like a pbin, and that are read at random
/// positions.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps the regular file at `path` in constant time.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::NotAFile`] for a folder, a FIFO or a device.
    pub fn open(path: &Path) -> Result<Self> {
        map_file(path).map(Self)
    }

    /// Maps an open regular file, which the caller may fill while it is mapped but not truncate.
    ///
    /// # Errors
    /// The system cannot map the file.
    pub fn of(file: &File) -> io::Result<Self> {
        map(file).map(Self)
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes pages that were read from this process's memory. They stay in the system's cache.
    pub fn release_pages(&self) {
        release_pages(&self.0);
    }

    /// Advises the system how the file will be read.
    ///
    /// # Errors
    /// The system rejects the advice.
    pub fn advise(&self, pattern: AccessPattern) -> io::Result<()> {
        self.0.advise(pattern.advice())
    }

    /// Asks the system to read the pages of `bytes`, a range within the file, asynchronously.
    ///
    /// # Errors
    /// The system rejects the advice.
    pub fn prefetch(&self, bytes: Range<usize>) -> io::Result<()> {
        self.0
            .advise_range(Advice::WillNeed, bytes.start, bytes.len())
    }
}
