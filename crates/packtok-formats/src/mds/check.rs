//! Hashes and compression of shard files.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use packtok_jobs::hex;
use packtok_pbin::MappedFile;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh64::Xxh64;

use crate::error::{Error, Result};
use crate::mds::entry::FileEntry;

/// Bytes that are hashed and written at a time, so that they are in the cache for each step.
pub(super) const STEP_BYTES: usize = 256 << 10;
/// The window of the highest level of zstd: bounds the memory that a file can request.
const WINDOW_LOG_MAX: u32 = 27;

/// A hash function of shard files, in the order in which an index lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// XXH64.
    Xxh64,
}

impl Hash {
    /// The hash function of this name.
    ///
    /// # Errors
    /// [`Error::MdsUnknownHash`].
    pub fn parse(name: &str) -> Result<Self> {
        [Self::Sha256, Self::Xxh64]
            .into_iter()
            .find(|hash| hash.name() == name)
            .ok_or_else(|| Error::MdsUnknownHash {
                found: name.to_owned(),
            })
    }

    /// The name in an index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Xxh64 => "xxh64",
        }
    }
}

/// A compression of shard files: zstd with a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    text: String,
    level: i32,
}

impl Compression {
    /// The compression with this name: `zstd`, or with a level `zstd:3`.
    ///
    /// # Errors
    /// [`Error::MdsUnknownCompression`].
    pub fn parse(text: &str) -> Result<Self> {
        let level = match text.strip_prefix("zstd") {
            Some("") => Some(3),
            Some(rest) => rest.strip_prefix(':').and_then(|level| level.parse().ok()),
            None => None,
        };
        match level {
            Some(level @ 1..=22) => Ok(Self {
                text: text.to_owned(),
                level,
            }),
            _ => Err(Error::MdsUnknownCompression {
                found: text.to_owned(),
            }),
        }
    }

    /// The name as the caller wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn level(&self) -> i32 {
        self.level
    }
}

/// A writer that computes hashes and counts of the written bytes.
pub(super) struct Hashed<W> {
    pub(super) inner: W,
    sha256: Option<Sha256>,
    xxh64: Option<Xxh64>,
    bytes: u64,
}

impl<W> Hashed<W> {
    pub(super) fn new(inner: W, hashes: &[Hash]) -> Self {
        Self {
            inner,
            sha256: hashes.contains(&Hash::Sha256).then(Sha256::new),
            xxh64: hashes.contains(&Hash::Xxh64).then(|| Xxh64::new(0)),
            bytes: 0,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Some(hash) = &mut self.sha256 {
            hash.update(bytes);
        }
        if let Some(hash) = &mut self.xxh64 {
            hash.update(bytes);
        }
        self.bytes += bytes.len() as u64;
    }

    /// The entry of the index for the written file.
    pub(super) fn entry(&self, basename: String) -> FileEntry {
        let mut hashes = BTreeMap::new();
        if let Some(hash) = &self.sha256 {
            hashes.insert(
                Hash::Sha256.name().to_owned(),
                hex(&hash.clone().finalize()),
            );
        }
        if let Some(hash) = &self.xxh64 {
            hashes.insert(
                Hash::Xxh64.name().to_owned(),
                format!("{:016x}", hash.digest()),
            );
        }
        FileEntry {
            basename,
            bytes: self.bytes,
            hashes,
        }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Verifies the hashes of a file with the content `bytes`: either all known hashes, or only the
/// fastest.
pub(super) fn verify(path: &Path, bytes: &[u8], entry: &FileEntry, all: bool) -> Result<()> {
    let expected = |hash: &Hash| entry.hashes.get(hash.name());
    // The fastest first.
    let hashes = [Hash::Xxh64, Hash::Sha256].into_iter();
    let mut hashes: Vec<_> = hashes.filter(|hash| expected(hash).is_some()).collect();
    if hashes.is_empty() {
        return Err(Error::MdsNoHash { path: path.into() });
    }
    if !all {
        hashes.truncate(1);
    }
    let mut hashed = Hashed::new((), &hashes);
    for step in bytes.chunks(STEP_BYTES) {
        hashed.update(step);
    }
    let digests = hashed.entry(String::new()).hashes;
    for hash in hashes {
        let (digest, expected) = (&digests[hash.name()], &entry.hashes[hash.name()]);
        if !digest.eq_ignore_ascii_case(expected) {
            return Err(Error::MdsHashDiffers {
                path: path.into(),
                algorithm: hash.name(),
                found: digest.clone(),
                expected: expected.clone(),
            });
        }
    }
    Ok(())
}

/// Decompresses the file at `path`, which has the compression `codec`, into `out`. With
/// `verified`, verifies its hash. Errors about its content name `original`, errors of writing name
/// `target`.
pub(super) fn decompress(
    path: &Path,
    original: &Path,
    codec: &str,
    [stored, raw]: [&FileEntry; 2],
    verified: bool,
    (target, mut out): (&Path, impl Write),
) -> Result<()> {
    if codec.split(':').next() != Some("zstd") {
        return Err(Error::MdsCodec {
            path: original.into(),
            found: codec.to_owned(),
        });
    }
    let map = MappedFile::open(path)?;
    check_bytes(original, map.bytes().len() as u64, stored.bytes)?;
    if verified {
        verify(original, map.bytes(), stored, false)?;
    }
    let damaged = |source| Error::MdsDamagedCompression {
        path: original.into(),
        source,
    };
    let mut decoder = zstd::Decoder::with_buffer(map.bytes()).map_err(damaged)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(damaged)?;
    let mut step = vec![0; STEP_BYTES];
    let mut decompressed_bytes = 0;
    loop {
        let count = decoder.read(&mut step).map_err(damaged)?;
        if count == 0 {
            break;
        }
        decompressed_bytes += count as u64;
        if decompressed_bytes > raw.bytes {
            break;
        }
        out.write_all(&step[..count]).map_err(Error::io(target))?;
    }
    if decompressed_bytes == raw.bytes {
        return Ok(());
    }
    Err(Error::MdsDecompressedBytes {
        path: original.into(),
        found: decompressed_bytes,
        expected: raw.bytes,
    })
}

pub(super) fn check_bytes(path: &Path, file_bytes: u64, expected: u64) -> Result<()> {
    if file_bytes == expected {
        return Ok(());
    }
    Err(Error::MdsFileBytes {
        path: path.into(),
        found: file_bytes,
        expected,
    })
}
