//! A local copy of a pbin in an object store, filled piece by piece as it is read.
//!
//! The file has the length of the object. Header and everything after the data are present from the
//! start; a piece of data is present if and only if its checksum matches. There is no other state,
//! so processes need not coordinate: two processes that miss the same piece write the same bytes, a
//! piece that was half written at a crash is fetched again, and no piece is trusted without a
//! check. Pieces are never evicted, because views of the map may refer to them. Whole files are
//! evicted instead, and only if no process has them open.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use packtok_formats::TokenFile;
use packtok_pbin::file_system::{self, Locked};
use packtok_pbin::{CHECKED_DATA_BYTES, HEADER_BYTES, Header, rename_new};
use packtok_store::{Location, Object, RemoteFile};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::FilesError;

/// Default size limit of the cache.
const DEFAULT_BYTES: u64 = 100 << 30;
const FOLDER_VARIABLE: &str = "PACKTOK_CACHE_DIR";
const BYTES_VARIABLE: &str = "PACKTOK_CACHE_BYTES";
/// Suffix of a file's name until everything but the data is present.
const UNFINISHED: &str = ".tmp";

/// The cache folder and its size limit.
#[derive(Debug, Clone)]
pub(crate) struct CacheLimits {
    folder: PathBuf,
    bytes: u64,
}

impl CacheLimits {
    /// `PACKTOK_CACHE_DIR`, or `packtok/pbins` in the user's cache; `PACKTOK_CACHE_BYTES`, or 100
    /// GiB.
    pub(crate) fn of_environment() -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let cache = || {
            crate::files::user_cache::user_cache()
                .unwrap_or_else(|| ".cache/packtok".into())
                .join("pbins")
        };
        let bytes = match variable(BYTES_VARIABLE) {
            None => DEFAULT_BYTES,
            Some(text) => {
                let text = text.to_string_lossy();
                text.parse().map_err(|_| {
                    Error::Files(FilesError::CacheBytes {
                        found: text.into_owned(),
                    })
                })?
            }
        };
        Ok(Self {
            folder: variable(FOLDER_VARIABLE).map_or_else(cache, PathBuf::from),
            bytes,
        })
    }
}

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
    /// Opens or creates the local file of the object at `url`, and the token file in it. The data may
    /// not be present yet.
    pub(crate) fn open(url: &str, limits: CacheLimits) -> Result<(Self, TokenFile)> {
        let mut builder = DirBuilder::new();
        let folder = &limits.folder;
        builder
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|cause| Error::io(folder, cause))?;
        let remote = RemoteFile::open(Location::parse(url)?)?;
        let object = remote.object().clone();
        let path = folder.join(format!("{}.pbin", name_of(&object)));
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
        // A new connection each time, because a forked process cannot use its parent's.
        let remote = RemoteFile::of(Location::parse(&self.url)?, self.object.clone());
        let bytes = remote.bytes(HEADER_BYTES + start..HEADER_BYTES + stop)?;
        self.file
            .write_all_at(&bytes, HEADER_BYTES + start)
            .map_err(|cause| Error::io(token_file.path(), cause))?;
        // Verify the fetched bytes where they will be read. An error names the object, not the
        // local file.
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
fn name_of(object: &Object) -> String {
    let version = object.version.as_deref().unwrap_or_default();
    let hash = Sha256::digest(format!("{}\n{}\n{version}", object.url, object.bytes));
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
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
    let shown = Path::new(&remote.object().url);
    let header = Header::decode(&head, shown)?;
    let data_end = header.data_end().filter(|&end| end <= file_bytes);
    let data_end = data_end.ok_or_else(|| packtok_pbin::Error::DataTruncated {
        path: shown.into(),
        data_bytes: header.data_bytes,
        file_bytes,
    })?;
    limits.make_room(file_bytes - data_end)?;
    let io = |cause| Error::io(path, cause);
    let mut made = tempfile::Builder::new()
        .suffix(UNFINISHED)
        .tempfile_in(&limits.folder)
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
    // If several processes create it, the first one's file stays; their content is equal.
    match rename_new(made.path(), path) {
        Ok(()) => {
            made.disable_cleanup(true);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(error)),
    }
}

impl CacheLimits {
    /// Evicts files that no process has open, least recently used first, until `bytes` more fit.
    fn make_room(&self, bytes: u64) -> Result<()> {
        let mut files = self.files()?;
        let mut taken: u64 = files.iter().map(|file| file.1).sum();
        files.sort_unstable_by_key(|file| file.2);
        for (path, file_bytes, _) in files {
            if taken + bytes <= self.bytes {
                return Ok(());
            }
            let Ok(file) = file_system::open_to_lock(&path) else {
                continue;
            };
            let is_unused = matches!(file_system::try_lock(&file), Ok(Locked::Taken));
            if is_unused && fs::remove_file(&path).is_ok() {
                taken -= file_bytes;
            }
        }
        match taken + bytes <= self.bytes {
            true => Ok(()),
            false => Err(Error::Files(FilesError::CacheFull {
                folder: self.folder.clone(),
                bytes: self.bytes,
            })),
        }
    }

    /// All files with their size and last use.
    fn files(&self) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
        let io = |cause| Error::io(&self.folder, cause);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            // A file that another process just removed takes no space.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let is_ours = entry.path().extension().is_some_and(|name| name == "pbin");
            if is_ours && metadata.is_file() {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((entry.path(), metadata.blocks() * 512, used));
            }
        }
        Ok(files)
    }
}
