//! The user's cache of files that were fetched or decompressed.

use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use packtok_pbin::file_system::{self, Locked};

use crate::error::{Error, Result};

/// Default size limit of the cache.
const DEFAULT_BYTES: u64 = 100 << 30;
const FOLDER_VARIABLE: &str = "PACKTOK_CACHE_DIR";
const BYTES_VARIABLE: &str = "PACKTOK_CACHE_BYTES";
/// Suffix of a file's name until the file can be used.
pub(super) const UNFINISHED: &str = ".tmp";

/// The cache folder and its size limit.
#[derive(Debug, Clone)]
pub(super) struct CacheLimits {
    folder: PathBuf,
    bytes: u64,
}

impl CacheLimits {
    /// The limits from the environment: the folder is `PACKTOK_CACHE_DIR`, or `packtok/pbins` in
    /// the user's cache; the size is `PACKTOK_CACHE_BYTES`, or 100 GiB.
    pub(super) fn of_environment() -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let cache = || {
            packtok_store::user_cache()
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

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder, which only its owner can read.
    pub(super) fn create_folder(&self) -> Result<()> {
        let folder = &self.folder;
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|cause| Error::io(folder, cause))
    }

    /// Evicts files that no process has open, least recently used first, until `bytes` more fit.
    pub(super) fn make_room(&self, bytes: u64) -> Result<()> {
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
        if taken + bytes <= self.bytes {
            Ok(())
        } else {
            Err(Error::CacheFull {
                folder: self.folder.clone(),
                bytes: self.bytes,
            })
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
            let is_ours = entry
                .path()
                .extension()
                .is_some_and(|name| name == "pbin" || name == "mds");
            if is_ours && metadata.is_file() {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((entry.path(), metadata.blocks() * 512, used));
            }
        }
        Ok(files)
    }
}
