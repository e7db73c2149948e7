//! One pbin that is read at random: mapped, its data checked when it is first read if that is asked for, and
//! fetched before if it lies in an object store.

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
    /// Nothing if nothing is checked, which costs least.
    checks: Option<Box<Checks>>,
}

/// What there is to do before data is read for the first time.
#[derive(Debug)]
struct Checks {
    /// One bit for each checked piece of the data that was found whole.
    whole: Box<[AtomicU64]>,
    /// Where the data is fetched from, if it is not here.
    #[cfg(feature = "remote")]
    fetched: Option<Fetched>,
}

impl Opened {
    /// Opens the pbin at a path or URL. The data of a URL is always checked.
    ///
    /// # Errors
    /// [`Error::NoChecksums`] if it cannot be checked; what opening a pbin or fetching it may find.
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
            whole: (0..words).map(|_| AtomicU64::new(0)).collect(),
            #[cfg(feature = "remote")]
            fetched: None,
        };
        Ok(Self {
            reader,
            checks: Some(checks.into()),
        })
    }

    /// The file; of what was fetched the data may not be there yet.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Whether there is nothing to do before data is read.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.checks.is_none()
    }

    /// Tokens as little-endian bytes, checked if that was asked for.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::NoSuchTokens`], [`packtok_pbin::Error::Checksum`]; what fetching may find.
    pub fn tokens(&self, tokens: Range<u64>) -> Result<&[u8]> {
        if let Some(checks) = &self.checks {
            let width = self.reader.width().bytes();
            let stop = tokens.end.min(self.reader.num_tokens());
            checks.look_at(&self.reader, tokens.start.min(stop) * width..stop * width)?;
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
    /// Checks the pieces of the data that these bytes of it touch, each once.
    fn look_at(&self, reader: &Reader, bytes: Range<u64>) -> Result<()> {
        for piece in bytes.start / CHECKED_DATA_BYTES..bytes.end.div_ceil(CHECKED_DATA_BYTES) {
            let (word, bit) = ((piece / 64) as usize, 1u64 << (piece % 64));
            if self.whole[word].load(Ordering::Relaxed) & bit == 0 {
                self.check(reader, piece)?;
                self.whole[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn check(&self, reader: &Reader, piece: u64) -> Result<()> {
        #[cfg(feature = "remote")]
        if let Some(fetched) = &self.fetched {
            return fetched.have_piece(reader, piece);
        }
        Ok(reader.verify_data_piece(piece)?)
    }
}
