//! One pbin for random access: mapped, verified at first read if requested, and fetched on demand
//! if it is in an object store.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use packtok_pbin::{CHECKED_DATA_BYTES, Reader};

use crate::error::{Error, Result};
#[cfg(feature = "remote")]
use crate::files::fetched::{Fetched, Limits};

/// An open pbin.
#[derive(Debug)]
pub struct Opened {
    reader: Reader,
    /// `None` if there is nothing to check, the fastest case.
    checks: Option<Box<Checks>>,
}

/// Work before data is read for the first time.
#[derive(Debug)]
struct Checks {
    /// One bit per piece of the data that was verified.
    verified: Box<[AtomicU64]>,
    /// The source of the data, if it is not local.
    #[cfg(feature = "remote")]
    fetched: Option<Fetched>,
}

impl Opened {
    /// Opens the pbin at a path or URL. The data of a URL is always verified.
    ///
    /// # Errors
    /// [`Error::NoChecksums`] if it cannot be verified; the errors of opening or fetching a pbin.
    pub fn open(path: &Path, verify: bool) -> Result<Self> {
        #[cfg(feature = "remote")]
        if crate::files::location::is_url(path) && !path.exists() {
            let (fetched, reader) =
                Fetched::open(&path.to_string_lossy(), Limits::of_environment()?)?;
            let mut opened = Self::checked(reader)?;
            if let Some(checks) = &mut opened.checks {
                checks.fetched = Some(fetched);
            }
            return Ok(opened);
        }
        let reader = Reader::open(path)?;
        match verify {
            true => Self::checked(reader),
            false => Ok(Self {
                reader,
                checks: None,
            }),
        }
    }

    fn checked(reader: Reader) -> Result<Self> {
        if !reader.has_data_checksums() {
            return Err(Error::NoChecksums {
                path: reader.path().into(),
            });
        }
        reader.verify_offsets()?;
        let words = reader
            .data_bytes()
            .div_ceil(CHECKED_DATA_BYTES)
            .div_ceil(64);
        let checks = Checks {
            verified: (0..words).map(|_| AtomicU64::new(0)).collect(),
            #[cfg(feature = "remote")]
            fetched: None,
        };
        Ok(Self {
            reader,
            checks: Some(checks.into()),
        })
    }

    /// The reader of the file. If the file is fetched, its data may not be present yet.
    pub fn reader(&self) -> &Reader {
        &self.reader
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
            let width = self.reader.width().bytes();
            let stop = tokens.end.min(self.reader.num_tokens());
            checks.verify_bytes(&self.reader, tokens.start.min(stop) * width..stop * width)?;
        }
        Ok(self.reader.tokens(tokens)?)
    }

    /// The tokens of document `i` as little-endian bytes.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::NoSuchDocument`]; as [`Opened::tokens`].
    pub fn document(&self, i: u64) -> Result<&[u8]> {
        self.tokens(self.reader.document_tokens(i)?)
    }
}

impl Checks {
    /// Verifies the pieces that contain these bytes of the data, each only once.
    fn verify_bytes(&self, reader: &Reader, bytes: Range<u64>) -> Result<()> {
        for piece in bytes.start / CHECKED_DATA_BYTES..bytes.end.div_ceil(CHECKED_DATA_BYTES) {
            let (word, bit) = ((piece / 64) as usize, 1u64 << (piece % 64));
            if self.verified[word].load(Ordering::Relaxed) & bit == 0 {
                self.check(reader, piece)?;
                self.verified[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn check(&self, reader: &Reader, piece: u64) -> Result<()> {
        #[cfg(feature = "remote")]
        if let Some(fetched) = &self.fetched {
            return fetched.ensure_piece(reader, piece);
        }
        Ok(reader.verify_data_piece(piece)?)
    }
}
