//! A local copy of a pbin in an object store, filled piece by piece as it is read.
//!
//! The file has the length of the object. The header and everything after the data are present
//! from the start; a piece of data is present if and only if its checksum matches. There is no
//! other state, so processes need not coordinate: two processes that miss the same piece write the
//! same bytes, a piece that was half written at a crash is fetched again, and every piece is
//! checked before use. Pieces are never evicted, because views of the map may refer to them. Whole
//! files are evicted instead, and only if no process has them open.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use packtok_formats::TokenFile;
use packtok_jobs::hex;
use packtok_pbin::file_system;
use packtok_pbin::{CHECKED_DATA_BYTES, HEADER_BYTES, Header, rename_new};
use packtok_store::{Location, Object, RemoteFile};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::cache_limits::{CacheLimits, UNFINISHED};

/// The local file of one version of an object.
#[derive(Debug)]
pub(crate) struct CachedObject {
    url: String,
    object: Object,
    limits: CacheLimits,
    /// Locked while open, so that no process evicts it.
    file: File,
}

impl CachedObject {
    /// Opens or creates the local file of the object at `url`, and opens it as a token file. Its
    /// data may not be present yet.
    pub(crate) fn open(url: &str, limits: CacheLimits) -> Result<(Self, TokenFile)> {
        limits.create_folder()?;
        let remote = RemoteFile::open(Location::parse(url)?)?;
        let object = remote.object().clone();
        let path = limits.folder().join(format!("{}.pbin", name_of(&object)));
        let file = match locked(&path)? {
            Some(file) => file,
            None => {
                make(&remote, &path, &limits)?;
                locked(&path)?.ok_or_else(|| Error::io(&path, io::ErrorKind::NotFound.into()))?
            }
        };
        let token_file = TokenFile::open(&path)?;
        let cached = Self {
            url: url.to_owned(),
            object,
            limits,
            file,
        };
        Ok((cached, token_file))
    }

    /// Makes a complete piece of the data present.
    pub(crate) fn ensure_piece(&self, token_file: &TokenFile, piece: u64) -> Result<()> {
        if token_file.verify_data_piece(piece).is_ok() {
            return Ok(());
        }
        let start = piece * CHECKED_DATA_BYTES;
        let stop = (start + CHECKED_DATA_BYTES).min(token_file.data_bytes());
        self.limits.make_room(stop - start)?;
        // Each fetch opens a new connection, because a forked process cannot use the connection of
        // its parent.
        let remote = RemoteFile::of(Location::parse(&self.url)?, self.object.clone());
        let bytes = remote.bytes(HEADER_BYTES + start..HEADER_BYTES + stop)?;
        self.file
            .write_all_at(&bytes, HEADER_BYTES + start)
            .map_err(|cause| Error::io(token_file.path(), cause))?;
        // Verify the fetched bytes at the place from which they will be read. An error names the
        // object, not the local file.
        match token_file.verify_data_piece(piece) {
            Err(packtok_formats::Error::Pbin(packtok_pbin::Error::Checksum {
                what,
                start,
                stop,
                found,
                expected,
                ..
            })) => Err(packtok_pbin::Error::Checksum {
                path: PathBuf::from(&self.url),
                what,
                start,
                stop,
                found,
                expected,
            }
            .into()),
            answer => Ok(answer?),
        }
    }
}

/// The file name for this version of an object.
pub(super) fn name_of(object: &Object) -> String {
    let version = object.version.as_deref().unwrap_or_default();
    let hash = Sha256::digest(format!("{}\n{}\n{version}", object.url, object.bytes));
    hex(&hash[..16])
}

/// Opens an existing file and locks it against eviction.
fn locked(path: &Path) -> Result<Option<File>> {
    let io = |cause| Error::io(path, cause);
    loop {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        file_system::lock_shared(&file).map_err(io)?;
        // The file may have been evicted before it was locked.
        if file_system::is_named(&file, path).map_err(io)? {
            return Ok(Some(file));
        }
    }
}

/// Creates the file with everything but the data, and renames it to its final name.
fn make(remote: &RemoteFile, path: &Path, limits: &CacheLimits) -> Result<()> {
    let file_bytes = remote.object().bytes;
    let head = remote.bytes(0..HEADER_BYTES.min(file_bytes))?;
    let url = Path::new(&remote.object().url);
    let header = Header::decode(&head, url)?;
    let data_end = header.data_end().filter(|&end| end <= file_bytes);
    let data_end = data_end.ok_or_else(|| packtok_pbin::Error::DataTruncated {
        path: url.into(),
        data_bytes: header.data_bytes,
        file_bytes,
    })?;
    limits.make_room(file_bytes - data_end)?;
    let io = |cause| Error::io(path, cause);
    let mut made = tempfile::Builder::new()
        .suffix(UNFINISHED)
        .tempfile_in(limits.folder())
        .map_err(io)?;
    made.as_file().set_len(file_bytes).map_err(io)?;
    made.write_all(&head).map_err(io)?;
    let mut at = data_end;
    while at < file_bytes {
        let stop = (at + (8 << 20)).min(file_bytes);
        let bytes = remote.bytes(at..stop)?;
        made.as_file().write_all_at(&bytes, at).map_err(io)?;
        at = stop;
    }
    // If several processes create the file, the first file stays; the contents are equal.
    match rename_new(made.path(), path) {
        Ok(()) => {
            made.disable_cleanup(true);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(error)),
    }
}
