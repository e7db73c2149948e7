//! A folder of samples in MDS format, local or in an object store.
//!
//! A shard is opened when one of its samples is first read. A shard in a store is downloaded as a
//! whole into the user's cache, because an index only has hashes of whole files; compressed shards
//! are decompressed there. Files in the cache may be evicted while they are mapped: the system
//! keeps them until the last map ends.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use packtok_formats::mds::{Index, Marker, Pickles, Sample, Shard, ShardEntry};
use packtok_jobs::hex;
use packtok_pbin::rename_new;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::cache_limits::{CacheLimits, UNFINISHED};

/// Times that a file is made again when it is evicted before it is mapped.
const ATTEMPTS: usize = 3;

/// An open folder of samples.
#[derive(Debug)]
pub struct MdsFolder {
    folder: PathBuf,
    is_remote: bool,
    index: Index,
    marker: Option<Marker>,
    shards: Box<[OnceLock<Arc<Shard>>]>,
    verify: bool,
}

impl MdsFolder {
    /// Opens the folder at a path or URL. With `verify`, a hash of each shard is checked when the
    /// shard is first used. Shards that are fetched or decompressed are always checked if the
    /// index has their hashes.
    ///
    /// # Errors
    /// The index cannot be read, is invalid, or has columns that are not supported.
    pub fn open(folder: &Path, verify: bool) -> Result<Self> {
        let is_remote = remote::is_remote(folder);
        let (index, marker) = if is_remote {
            remote::open_remote(folder)?
        } else {
            (
                Index::open(folder, Pickles::Refused)?,
                Marker::of_folder(folder)?,
            )
        };
        Ok(Self::of(folder, is_remote, index, marker, verify))
    }

    /// Opens a local folder whose columns may be pickles, which are read as bytes. Hashes of
    /// uncompressed shards are not checked.
    ///
    /// # Errors
    /// As [`MdsFolder::open`].
    pub fn open_pickled(folder: &Path) -> Result<Self> {
        let index = Index::open(folder, Pickles::AsBytes)?;
        Ok(Self::of(folder, false, index, None, false))
    }

    fn of(
        folder: &Path,
        is_remote: bool,
        index: Index,
        marker: Option<Marker>,
        verify: bool,
    ) -> Self {
        Self {
            folder: folder.into(),
            is_remote,
            marker,
            shards: index.shards().iter().map(|_| OnceLock::new()).collect(),
            index,
            verify,
        }
    }

    /// The path or URL.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The description of the samples, if the folder contains one.
    pub fn marker(&self) -> Option<&Marker> {
        self.marker.as_ref()
    }

    /// Sample `number` of the whole folder.
    ///
    /// # Errors
    /// The folder has no such sample; or its shard cannot be opened or is damaged.
    #[inline]
    pub fn sample(&self, number: u64) -> Result<Sample<'_>> {
        let Some((shard, number)) = self.index.find(number) else {
            return Err(packtok_formats::Error::NoSuchMdsSample {
                path: self.folder.clone(),
                sample: number,
                num_samples: self.index.num_samples(),
            }
            .into());
        };
        Ok(self.shard(shard)?.sample(number)?)
    }

    /// The shard at this position in the index. Opens the shard at first use.
    ///
    /// # Errors
    /// The shard cannot be opened or is damaged.
    ///
    /// # Panics
    /// If the index has no such shard.
    #[inline]
    pub fn shard(&self, number: usize) -> Result<&Arc<Shard>> {
        if let Some(shard) = self.shards[number].get() {
            return Ok(shard);
        }
        let shard = Arc::new(self.open_alone(number)?);
        // Another thread may have opened it too.
        Ok(self.shards[number].get_or_init(|| shard))
    }

    /// Checks the size and all hashes of every shard, and the bounds of every sample.
    ///
    /// # Errors
    /// A shard is damaged, or has no hashes.
    pub fn verify(&self) -> Result<()> {
        for (number, entry) in self.index.shards().iter().enumerate() {
            let shard = self.open_alone(number)?;
            shard.verify(entry, true)?;
            for sample in 0..shard.num_samples() {
                shard.sample(sample)?.values()?;
            }
        }
        Ok(())
    }

    /// Opens the shard at this position in the index for the caller alone, with the same checks as
    /// [`MdsFolder::shard`].
    ///
    /// # Errors
    /// The shard cannot be opened or is damaged.
    ///
    /// # Panics
    /// If the index has no such shard.
    pub fn open_alone(&self, number: usize) -> Result<Shard> {
        let entry = &self.index.shards()[number];
        let columns = self.index.columns(number);
        let raw = self.folder.join(&entry.raw_data.basename);
        if !self.is_remote && (entry.zip_data.is_none() || raw.exists()) {
            let shard = Shard::open(&raw, entry, Arc::clone(columns))?;
            if self.verify {
                shard.verify(entry, false)?;
            }
            return Ok(shard);
        }
        let limits = CacheLimits::of_environment()?;
        limits.create_folder()?;
        let stored = self.folder.join(&entry.stored().basename);
        for _ in 1..ATTEMPTS {
            match self.open_cached(entry, columns, &stored, &limits) {
                Err(Error::Pbin(packtok_pbin::Error::Io { source, .. }))
                    if source.kind() == std::io::ErrorKind::NotFound => {}
                answer => return answer,
            }
        }
        self.open_cached(entry, columns, &stored, &limits)
    }

    /// Opens the shard in the cache, which it is first brought into.
    fn open_cached(
        &self,
        entry: &ShardEntry,
        columns: &Arc<packtok_formats::mds::Columns>,
        stored: &Path,
        limits: &CacheLimits,
    ) -> Result<Shard> {
        let identity = if self.is_remote {
            remote::remote_identity(stored)?
        } else {
            local_identity(stored)?
        };
        let path = limits.folder().join(format!("{identity}.mds"));
        let is_new = !path.exists();
        if is_new {
            limits.make_room(entry.raw_data.bytes)?;
            self.make(entry, stored, &path, limits)?;
        } else if let Ok(file) = File::options().append(true).open(&path) {
            // Files are evicted in the order of this time. A file whose time cannot be set is
            // evicted earlier.
            let _ = file.set_modified(SystemTime::now());
        }
        let shard = Shard::open_copy(&path, stored, entry, Arc::clone(columns))?;
        if self.verify || (is_new && !entry.raw_data.hashes.is_empty()) {
            shard.verify(entry, false).inspect_err(|_| {
                // So that the next attempt fetches it again.
                let _ = fs::remove_file(&path);
            })?;
        }
        Ok(shard)
    }

    /// Fetches or decompresses the file `stored` and gives it the name `path` in the cache.
    fn make(
        &self,
        entry: &ShardEntry,
        stored: &Path,
        path: &Path,
        limits: &CacheLimits,
    ) -> Result<()> {
        let io = |cause| Error::io(path, cause);
        let mut builder = tempfile::Builder::new();
        let builder = builder.suffix(UNFINISHED);
        let mut made = builder.tempfile_in(limits.folder()).map_err(io)?;
        let fetched = if self.is_remote {
            let fetched = builder.tempfile_in(limits.folder()).map_err(io)?;
            remote::fetch(stored, fetched.path())?;
            Some(fetched)
        } else {
            None
        };
        let local = fetched.as_ref().map_or(stored, |file| file.path());
        if entry.zip_data.is_some() {
            let has_hashes = !entry.stored().hashes.is_empty();
            let out = (path, made.as_file_mut());
            Shard::decompress(local, stored, entry, has_hashes, out)?;
        } else {
            fs::rename(local, made.path()).map_err(io)?;
        }
        match rename_new(made.path(), path) {
            Ok(()) => {
                made.disable_cleanup(true);
                Ok(())
            }
            // Another process was faster; the content is the same.
            Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(cause) => Err(io(cause)),
        }
    }
}

/// The name in the cache of a version of a local file.
fn local_identity(path: &Path) -> Result<String> {
    let io = |cause| Error::io(path, cause);
    let full = fs::canonicalize(path).map_err(io)?;
    let metadata = fs::metadata(&full).map_err(io)?;
    let mut hash = Sha256::new();
    hash.update(full.as_os_str().as_encoded_bytes());
    for number in [
        metadata.len(),
        metadata.ino(),
        metadata.mtime() as u64,
        metadata.mtime_nsec() as u64,
    ] {
        hash.update(number.to_le_bytes());
    }
    Ok(hex(&hash.finalize()[..16]))
}

/// Folders in object stores.
#[cfg(feature = "remote")]
mod remote {
    use std::path::Path;

    use packtok_formats::mds::{INDEX_FILE, Index, MARKER_FILE, MAX_INDEX_BYTES, Marker, Pickles};

    use crate::error::{Error, Result};
    use crate::files::cached_object::name_of;

    pub(super) fn is_remote(folder: &Path) -> bool {
        packtok_store::is_url(folder) && !folder.exists()
    }

    fn object_of(url: &Path) -> Result<packtok_store::RemoteFile> {
        Ok(packtok_store::RemoteFile::open(
            packtok_store::Location::parse(&url.to_string_lossy())?,
        )?)
    }

    pub(super) fn open_remote(folder: &Path) -> Result<(Index, Option<Marker>)> {
        let read = |name: &str| -> Result<Vec<u8>> {
            let path = folder.join(name);
            let file = object_of(&path)?;
            let bytes = file.object().bytes;
            if bytes > MAX_INDEX_BYTES {
                let most = MAX_INDEX_BYTES;
                return Err(packtok_formats::Error::MdsJsonTooLarge { path, bytes, most }.into());
            }
            Ok(file.bytes(0..bytes)?.to_vec())
        };
        let index = Index::parse(
            &folder.join(INDEX_FILE),
            &read(INDEX_FILE)?,
            Pickles::Refused,
        )?;
        let marker = match read(MARKER_FILE) {
            Ok(bytes) => Some(Marker::parse(&folder.join(MARKER_FILE), &bytes)?),
            Err(Error::Store(packtok_store::Error::Absent { .. })) => None,
            Err(error) => return Err(error),
        };
        Ok((index, marker))
    }

    pub(super) fn remote_identity(url: &Path) -> Result<String> {
        Ok(name_of(object_of(url)?.object()))
    }

    pub(super) fn fetch(url: &Path, path: &Path) -> Result<()> {
        Ok(object_of(url)?.save(path)?)
    }
}

/// Without stores, each folder is local.
#[cfg(not(feature = "remote"))]
mod remote {
    use std::path::Path;

    use packtok_formats::mds::{Index, Marker, Pickles};

    use super::local_identity;
    use crate::error::{Error, Result};

    pub(super) fn is_remote(_: &Path) -> bool {
        false
    }

    pub(super) fn open_remote(folder: &Path) -> Result<(Index, Option<Marker>)> {
        Ok((
            Index::open(folder, Pickles::Refused)?,
            Marker::of_folder(folder)?,
        ))
    }

    pub(super) fn remote_identity(path: &Path) -> Result<String> {
        local_identity(path)
    }

    pub(super) fn fetch(_: &Path, path: &Path) -> Result<()> {
        Err(Error::io(path, std::io::ErrorKind::Unsupported.into()))
    }
}
