//! The checksum of the data of a file that records none: computed once, and kept in the user's cache.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use packtok_pbin::{Replace, publish_bytes};
use packtok_store::user_cache;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// A file that was changed this recently may change again within the resolution of its time.
const SETTLED_SECONDS: i64 = 2;

/// CRC32C of all bytes of the file at `path`. It is read again only if its place, its length or its time of
/// change differ from those under which the checksum was kept.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn cached_crc32c(path: &Path) -> Result<u32> {
    let io = |source| Error::io(path, source);
    let metadata = fs::metadata(path).map_err(io)?;
    let kept = user_cache().map(|cache| kept_path(&cache, path, &metadata));
    let known = kept.as_ref().and_then(|kept| fs::read(kept).ok());
    let known = known.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    if let Some(crc32c) = known {
        return Ok(crc32c);
    }
    let crc32c = crc32c_of(path).map_err(io)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let is_settled =
        now.is_ok_and(|now| now.as_secs() as i64 - metadata.ctime() >= SETTLED_SECONDS);
    if let Some(kept) = kept.filter(|_| is_settled) {
        // Without a cache, the file is read again the next time.
        drop(publish_bytes(
            &kept,
            &crc32c.to_le_bytes(),
            Replace::Existing,
        ));
    }
    Ok(crc32c)
}

/// Where the checksum of a file in this state is kept.
fn kept_path(cache: &Path, path: &Path, metadata: &Metadata) -> PathBuf {
    let mut hash = Sha256::new();
    let place = path.canonicalize();
    hash.update(
        place
            .as_deref()
            .unwrap_or(path)
            .as_os_str()
            .as_encoded_bytes(),
    );
    for number in [metadata.dev(), metadata.ino(), metadata.len()] {
        hash.update(number.to_le_bytes());
    }
    // Unlike the time of modification, programs do not set it.
    for number in [metadata.ctime(), metadata.ctime_nsec()] {
        hash.update(number.to_le_bytes());
    }
    let name = packtok_jobs::hex(&hash.finalize());
    cache.join("checksums").join(name)
}

fn crc32c_of(path: &Path) -> std::io::Result<u32> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut crc32c = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(crc32c),
            read => crc32c = crc32c::crc32c_append(crc32c, &buffer[..read]),
        }
    }
}
