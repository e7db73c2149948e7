//! A pbin of an object store, of which a file of this machine gets what is read, piece by piece.
//!
//! The file is as long as the object. Its header and everything behind the data are there from the start; of the
//! data, those pieces are there whose checksum is right. That is all that is known of them, so that processes
//! need not agree on anything: two that miss the same piece write the same bytes, a piece that was half written
//! when the power went is fetched again, and none is ever trusted unseen. What is read in views on the map is
//! never removed: files make room as wholes, and only those that no process has open.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use packtok_pbin::{CHECKED_DATA_BYTES, HEADER_BYTES, Header, Reader};
use packtok_store::{Location, Object, RemoteFile};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Room for all files, where the environment does not say.
const DEFAULT_BYTES: u64 = 100 << 30;
const FOLDER_VARIABLE: &str = "PACKTOK_CACHE_DIR";
const BYTES_VARIABLE: &str = "PACKTOK_CACHE_BYTES";
/// What stands behind the last part of a file's name until all of it but the data is there.
const UNFINISHED: &str = ".tmp";

/// Where files are kept, and how much room they may take together.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    folder: PathBuf,
    bytes: u64,
}

impl Limits {
    /// `PACKTOK_CACHE_DIR`, else `packtok/pbins` in the user's cache; `PACKTOK_CACHE_BYTES`, else 100 GiB.
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
                text.parse().map_err(|_| Error::CacheBytes {
                    found: text.into_owned(),
                })?
            }
        };
        Ok(Self {
            folder: variable(FOLDER_VARIABLE).map_or_else(cache, PathBuf::from),
            bytes,
        })
    }
}

/// The file of one version of one object.
#[derive(Debug)]
pub(crate) struct Fetched {
    url: String,
    object: Object,
    limits: Limits,
    /// Locked as long as it is open, so that nobody removes it.
    file: File,
}

impl Fetched {
    /// The file of the object at `url` with all but its data, and a reader of it.
    pub(crate) fn open(url: &str, limits: Limits) -> Result<(Self, Reader)> {
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
        let reader = Reader::open(&path)?;
        let fetched = Self {
            url: url.to_owned(),
            object,
            limits,
            file,
        };
        Ok((fetched, reader))
    }

    /// Has a piece of the data in the file, whole.
    pub(crate) fn have_piece(&self, reader: &Reader, piece: u64) -> Result<()> {
        if reader.verify_data_piece(piece).is_ok() {
            return Ok(());
        }
        let start = piece * CHECKED_DATA_BYTES;
        let stop = (start + CHECKED_DATA_BYTES).min(reader.data_bytes());
        self.limits.make_room(stop - start)?;
        // Asked for anew each time, for a process that was forked has no connections of its parent's.
        let remote = RemoteFile::of(Location::parse(&self.url)?, self.object.clone());
        let bytes = remote.bytes(HEADER_BYTES + start..HEADER_BYTES + stop)?;
        self.file
            .write_all_at(&bytes, HEADER_BYTES + start)
            .map_err(|cause| Error::io(reader.path(), cause))?;
        // What the store sent is judged where it is read, and called by its own name.
        match reader.verify_data_piece(piece) {
            Err(packtok_pbin::Error::Checksum {
                what,
                start,
                stop,
                found,
                expected,
                ..
            }) => Err(packtok_pbin::Error::Checksum {
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

/// The name of the file of this version of an object.
fn name_of(object: &Object) -> String {
    let version = object.version.as_deref().unwrap_or_default();
    let hash = Sha256::digest(format!("{}\n{}\n{version}", object.url, object.bytes));
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Opens a file that is there and keeps others from removing it.
fn locked(path: &Path) -> Result<Option<File>> {
    let io = |cause| Error::io(path, cause);
    loop {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        file.lock_shared().map_err(io)?;
        // Somebody may have removed it before it was locked.
        match fs::metadata(path) {
            Ok(there) if there.ino() == file.metadata().map_err(io)?.ino() => {
                return Ok(Some(file));
            }
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(io(cause)),
        }
    }
}

/// Makes the file with all but the data, and gives it its name in one step.
fn make(remote: &RemoteFile, path: &Path, limits: &Limits) -> Result<()> {
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
    // Of several processes that make it, the last one's stays; all are alike.
    match made.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(error.error)),
    }
}

impl Limits {
    /// Removes files that nobody has open, the one longest unused first, until there is room for `bytes` more.
    fn make_room(&self, bytes: u64) -> Result<()> {
        let mut files = self.files()?;
        let mut taken: u64 = files.iter().map(|file| file.1).sum();
        files.sort_unstable_by_key(|file| file.2);
        for (path, file_bytes, _) in files {
            if taken + bytes <= self.bytes {
                return Ok(());
            }
            let Ok(file) = File::open(&path) else {
                continue;
            };
            if file.try_lock().is_ok() && fs::remove_file(&path).is_ok() {
                taken -= file_bytes;
            }
        }
        match taken + bytes <= self.bytes {
            true => Ok(()),
            false => Err(Error::CacheFull {
                folder: self.folder.clone(),
                bytes: self.bytes,
            }
            .into()),
        }
    }

    /// The files, the room that each takes, and when each was last used.
    fn files(&self) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
        let io = |cause| Error::io(&self.folder, cause);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            // One that another process has just removed takes no room.
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
