//! One token file for random access. The file is mapped, verified at first read if requested, and
//! fetched on demand if it is in an object store.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use packtok_formats::raw::RawFile;
use packtok_formats::{OpenOptions, TokenFile, TokenFormat};
use packtok_pbin::CHECKED_DATA_BYTES;

use crate::error::{Error, Result};
#[cfg(feature = "remote")]
use crate::files::cache_limits::CacheLimits;
#[cfg(feature = "remote")]
use crate::files::cached_object::CachedObject;
use crate::files::manifest::Entry;

/// An open token file, and the checks that its data still needs.
#[derive(Debug)]
pub struct CheckedFile {
    file: TokenFile,
    /// `None` if there is nothing to check. This is the fast path.
    checks: Option<Box<Checks>>,
}

/// Work before data is read for the first time.
#[derive(Debug)]
struct Checks {
    /// One bit per piece of the data, set if the piece was verified.
    verified: Box<[AtomicU64]>,
    /// The source of the data, if it is not local.
    #[cfg(feature = "remote")]
    object: Option<CachedObject>,
}

impl CheckedFile {
    /// Opens the file at a path or URL. The data of a URL is always verified.
    ///
    /// # Errors
    /// [`Error::NoChecksums`] if the file must be verified but has no checksums; the errors of
    /// opening or fetching it.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        #[cfg(feature = "remote")]
        if packtok_store::is_url(path) && !path.exists() {
            let (object, file) =
                CachedObject::open(&path.to_string_lossy(), CacheLimits::of_environment()?)?;
            let mut checked = Self::checked(file)?;
            if let Some(checks) = &mut checked.checks {
                checks.object = Some(object);
            }
            return Ok(checked);
        }
        Self::of(TokenFile::open(path)?, verify)
    }

    /// As [`CheckedFile::open`], with what the caller says about a file at a path.
    ///
    /// # Errors
    /// Those of [`CheckedFile::open`] and of [`TokenFile::open_with`].
    pub fn open_with(path: &Path, options: &OpenOptions, verify: bool) -> Result<Self> {
        if *options == OpenOptions::default() {
            return Self::open(path, verify);
        }
        Self::of(TokenFile::open_with(path, options)?, verify)
    }

    /// Opens the file that an entry describes, without comparing the file with the entry.
    ///
    /// # Errors
    /// As [`CheckedFile::open_with`].
    pub fn open_listed(entry: &Entry, options: &OpenOptions, verify: bool) -> Result<Self> {
        // Documents of other files without a header have an index.
        if entry.format == TokenFormat::Raw && entry.index_crc32c.is_none() {
            let file = RawFile::open(&entry.path, entry.width(), entry.tokens)?;
            return Self::of(TokenFile::Raw(file), verify);
        }
        Self::open_with(&entry.path, options, verify)
    }

    fn of(file: TokenFile, verify: bool) -> Result<Self> {
        if verify {
            Self::checked(file)
        } else {
            Ok(Self { file, checks: None })
        }
    }

    fn checked(file: TokenFile) -> Result<Self> {
        if !file.has_data_checksums() {
            return Err(Error::NoChecksums {
                path: file.path().into(),
            });
        }
        file.verify_offsets()?;
        file.verify_loss_mask()?;
        let words = file.data_bytes().div_ceil(CHECKED_DATA_BYTES).div_ceil(64);
        let checks = Checks {
            verified: (0..words).map(|_| AtomicU64::new(0)).collect(),
            #[cfg(feature = "remote")]
            object: None,
        };
        Ok(Self {
            file,
            checks: Some(checks.into()),
        })
    }

    /// The token file. For a file in an object store, the data may not be present yet.
    pub fn token_file(&self) -> &TokenFile {
        &self.file
    }

    /// Whether data can be read without verification or fetching.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.checks.is_none()
    }

    /// Tokens as little-endian bytes, verified if requested.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::NoSuchTokens`], [`packtok_pbin::Error::Checksum`]; the errors of
    /// fetching.
    pub fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        if let Some(checks) = &self.checks {
            let width = self.file.width().bytes();
            let stop = tokens.end.min(self.file.num_tokens());
            checks.verify_bytes(&self.file, tokens.start.min(stop) * width..stop * width)?;
        }
        Ok(self.file.tokens(tokens)?)
    }

    /// The tokens of document `i` as little-endian bytes.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::NoSuchDocument`]; as [`CheckedFile::tokens`].
    pub fn document(&self, i: u64) -> Result<&[u8]> {
        self.tokens(self.file.document_tokens(i)?)
    }
}

impl Checks {
    /// Verifies the pieces that contain these bytes of the data, each only once.
    fn verify_bytes(&self, file: &TokenFile, bytes: Range<u64>) -> Result<()> {
        for piece in bytes.start / CHECKED_DATA_BYTES..bytes.end.div_ceil(CHECKED_DATA_BYTES) {
            let (word, bit) = ((piece / 64) as usize, 1u64 << (piece % 64));
            if self.verified[word].load(Ordering::Relaxed) & bit == 0 {
                self.check(file, piece)?;
                self.verified[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn check(&self, file: &TokenFile, piece: u64) -> Result<()> {
        #[cfg(feature = "remote")]
        if let Some(object) = &self.object {
            return object.ensure_piece(file, piece);
        }
        Ok(file.verify_data_piece(piece)?)
    }
}
