//! A file that an input names, checked to be readable.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{Access, AtFlags, access, accessat};

use crate::error::{Error, Result};
use crate::inputs::kind::kind;
use crate::{ForeignFiles, Format, Source};

/// A file that an input names.
#[derive(Clone)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The format, if the file was found in a folder and its name implies the format.
    pub(crate) format: Option<Format>,
    /// Index of the input.
    pub(crate) input: usize,
    /// Device and inode of the target, to detect duplicate paths.
    pub(crate) inode: (u64, u64),
    /// The reader of the file, if the caller provides it.
    pub(crate) files: Option<ForeignFiles>,
}

impl InputFile {
    /// An object of a store. Different URLs count as different objects.
    #[cfg(feature = "remote")]
    pub(crate) fn object(object: packtok_store::Object, files: Option<&ForeignFiles>) -> Self {
        Self {
            inode: (
                u64::MAX,
                xxhash_rust::xxh64::xxh64(object.url.as_bytes(), 0),
            ),
            path: object.url.into(),
            bytes: object.bytes,
            format: None,
            input: 0,
            files: files.cloned(),
        }
    }

    /// Checks that a file can be read, without opening it: opening a FIFO would block, and opening
    /// a million files is slow. A name relative to an open folder avoids the lookup of the full
    /// path.
    pub(crate) fn regular_file(
        path: PathBuf,
        metadata: &Metadata,
        in_folder: Option<(&File, &OsStr)>,
    ) -> Result<Self> {
        if !metadata.is_file() {
            let found = kind(metadata);
            return Err(Error::NotAFile { path, found });
        }
        let access = match in_folder {
            Some((folder, name)) => accessat(folder, name, Access::READ_OK, AtFlags::empty()),
            None => access(&path, Access::READ_OK),
        };
        match access {
            Ok(()) => Ok(Self {
                path,
                bytes: metadata.len(),
                format: None,
                input: 0,
                inode: (metadata.dev(), metadata.ino()),
                files: None,
            }),
            Err(cause) => Err(Error::io(&path, cause.into())),
        }
    }

    /// The source without a label.
    pub(crate) fn source(self, format: Format) -> Source {
        Source {
            path: self.path,
            label: String::new(),
            bytes: self.bytes,
            format,
            input: self.input,
            range: None,
            files: self.files,
        }
    }
}
