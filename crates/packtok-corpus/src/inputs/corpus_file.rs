//! A file of a corpus, local or in an object store.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

#[cfg(feature = "tables")]
use packtok_formats::table::ReadAt;
#[cfg(feature = "remote")]
use packtok_store::{Location, RemoteFile, check_foreign, is_store};

pub use packtok_store::is_url;

#[cfg(feature = "remote")]
use crate::ForeignFiles;
use crate::Source;
use crate::error::{Error, Result};
#[cfg(feature = "remote")]
use crate::inputs::in_store::Listing;
use crate::kind;

/// An open file of a corpus.
pub enum CorpusFile {
    /// A local file.
    Local(File),
    /// An object of a store.
    #[cfg(feature = "remote")]
    Remote(Box<RemoteFile>),
}

impl CorpusFile {
    /// Opens the file of a source.
    pub fn of(source: &Source) -> Result<Self> {
        match &source.files {
            #[cfg(feature = "remote")]
            Some(files) => {
                let url = source.path.to_string_lossy();
                let file = RemoteFile::open_foreign(&*files.0, &url)?;
                Ok(Self::Remote(Box::new(file)))
            }
            _ => Self::open(&source.path),
        }
    }

    /// Opens a file. A local file with the name of a URL takes precedence.
    pub fn open(path: &Path) -> Result<Self> {
        match File::open(path) {
            Ok(file) => Ok(Self::Local(file)),
            #[cfg(feature = "remote")]
            Err(_) if is_url(path) => {
                let url = path.to_string_lossy();
                let file = match ForeignFiles::of_all() {
                    Some(files) if !is_store(&url) => {
                        check_foreign(&url)?;
                        RemoteFile::open_foreign(&*files.0, &url)?
                    }
                    _ => RemoteFile::open(Location::parse(&url)?)?,
                };
                Ok(Self::Remote(Box::new(file)))
            }
            Err(cause) => Err(Error::io(path, cause)),
        }
    }

    /// The current length of the file. For an object, the length when it was opened, because a
    /// replaced object cannot be read.
    pub fn len_bytes(&self) -> io::Result<u64> {
        match self {
            Self::Local(file) => Ok(file.metadata()?.len()),
            #[cfg(feature = "remote")]
            Self::Remote(file) => Ok(file.object().bytes),
        }
    }
}

/// The length of a file, which must be regular.
pub fn len_of(path: &Path) -> Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
        Ok(metadata) => Err(Error::NotAFile {
            path: path.to_owned(),
            found: kind(&metadata),
        }),
        #[cfg(feature = "remote")]
        Err(_) if is_url(path) => {
            let url = path.to_string_lossy();
            Ok(Listing::of(&url, None)?.object()?.bytes)
        }
        Err(cause) => Err(Error::io(path, cause)),
    }
}

#[cfg(feature = "tables")]
impl ReadAt for CorpusFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Self::len_bytes(self)
    }

    fn read_exact_at(&mut self, start: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Local(file) => ReadAt::read_exact_at(file, start, buffer),
            // A single request is faster than the growing requests of sequential reading from a
            // new position.
            #[cfg(feature = "remote")]
            Self::Remote(file) if file.position() != start && buffer.len() >= JUMP_BYTES => {
                let range = start..start + buffer.len() as u64;
                let bytes = RemoteFile::bytes(file, range).map_err(io::Error::other)?;
                buffer.copy_from_slice(&bytes);
                Ok(())
            }
            // Seeking to the current position would cancel the read-ahead.
            #[cfg(feature = "remote")]
            Self::Remote(file) if file.position() == start => file.read_exact(buffer),
            #[cfg(feature = "remote")]
            Self::Remote(file) => {
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(buffer)
            }
        }
    }
}

/// Minimum length of a read at a new position for which a separate request is sent.
#[cfg(all(feature = "tables", feature = "remote"))]
const JUMP_BYTES: usize = 256 << 10;

impl Read for CorpusFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read(buffer),
            #[cfg(feature = "remote")]
            Self::Remote(file) => file.read(buffer),
        }
    }
}

impl Seek for CorpusFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.seek(to),
            #[cfg(feature = "remote")]
            Self::Remote(file) => file.seek(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_paths() {
        for (text, expected) in [
            ("s3://bucket/name", true),
            ("https://host/name", true),
            ("/a/b", false),
            ("a b://c", false),
            ("://c", false),
        ] {
            assert_eq!(is_url(text.as_ref()), expected, "{text}");
        }
    }
}
