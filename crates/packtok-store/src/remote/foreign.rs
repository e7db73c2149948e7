//! Files at URLs that this crate does not support: the caller finds the files and reads their
//! bytes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::remote::error::Result;
use crate::remote::location::Object;

/// Finds files by their URLs, which contain no credentials.
pub trait ForeignFiles: Send + Sync {
    /// The file with this URL.
    ///
    /// # Errors
    /// The file does not exist or cannot be read, or its server does not answer.
    fn object(&self, url: &str) -> Result<Object>;

    /// The files whose URLs may match a glob pattern, in no particular order.
    ///
    /// # Errors
    /// The server does not answer or does not support listing.
    fn matching(&self, pattern: &str) -> Result<Vec<Object>>;

    /// All files in this folder and its subfolders, in no particular order.
    ///
    /// # Errors
    /// As for [`ForeignFiles::matching`].
    fn list(&self, folder: &str) -> Result<Vec<Object>>;

    /// Opens the file with this URL.
    ///
    /// # Errors
    /// As for [`ForeignFiles::object`].
    fn open(&self, url: &str) -> Result<(Object, Arc<dyn ForeignFile>)>;
}

/// An open file. All reads return bytes of the same version of the file.
pub trait ForeignFile: Send + Sync {
    /// All bytes of a range, which must be within the file.
    ///
    /// # Errors
    /// The server does not answer, or the file was replaced.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Called when no more reads will follow, possibly while a read is in progress.
    fn close(&self);
}
