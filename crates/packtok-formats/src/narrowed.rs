//! A 32-bit copy of ids that are wider in their file, or signed.
//!
//! Ids are copied piece by piece when they are first read, into an unlinked temporary file that is
//! mapped. So readers borrow bytes of a map, which the system can evict from memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use packtok_pbin::{MappedFile, TokenWidth};

use crate::error::{Error, Result};

/// Tokens that are copied at a time.
pub(crate) const PIECE_TOKENS: u64 = 1 << 18;
/// Bytes of a token in the copy.
const TOKEN_BYTES: u64 = TokenWidth::U32 as u64;

/// The type of the ids in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WideType {
    /// 64 bits, signed or unsigned: negative numbers are large as unsigned numbers.
    Bits64,
    /// 32 bits, signed.
    I32,
}

impl WideType {
    /// Bytes of one id.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Bits64 => 8,
            Self::I32 => 4,
        }
    }
}

/// The copy, and the file that it is made from.
#[derive(Debug)]
pub(crate) struct NarrowedIds {
    original: MappedFile,
    /// Position of the first id in the file.
    first_byte: u64,
    wide_type: WideType,
    num_tokens: u64,
    copy: File,
    /// One bit per piece that has been copied.
    copied: Box<[AtomicU64]>,
}

impl NarrowedIds {
    /// A copy of the ids of `original`, of which nothing is copied yet, and its map. All ids must be
    /// within the file. `path` is for messages.
    ///
    /// # Errors
    /// [`Error::NarrowedCopy`].
    pub(crate) fn new(
        original: MappedFile,
        first_byte: u64,
        wide_type: WideType,
        num_tokens: u64,
        path: &Path,
    ) -> Result<(MappedFile, Self)> {
        let create = || {
            let copy = tempfile::tempfile()?;
            copy.set_len(num_tokens * TOKEN_BYTES)?;
            Ok((MappedFile::of(&copy)?, copy))
        };
        let (map, copy) = create().map_err(|source| copy_error(path, source))?;
        let words = num_tokens.div_ceil(PIECE_TOKENS).div_ceil(64);
        let narrowed = Self {
            original,
            first_byte,
            wide_type,
            num_tokens,
            copy,
            copied: (0..words).map(|_| AtomicU64::new(0)).collect(),
        };
        Ok((map, narrowed))
    }

    /// The map of the file itself.
    pub(crate) fn original(&self) -> &MappedFile {
        &self.original
    }

    /// The bytes of ids in the file.
    pub(crate) fn original_bytes(&self, tokens: &Range<u64>) -> Range<usize> {
        let width = self.wide_type.bytes();
        let at = |token: u64| (self.first_byte + token * width) as usize;
        at(tokens.start)..at(tokens.end)
    }

    /// Whether tokens are in the copy.
    #[inline]
    pub(crate) fn are_copied(&self, tokens: &Range<u64>) -> bool {
        tokens.is_empty() || pieces(tokens).all(|piece| self.is_copied(piece))
    }

    /// Copies the pieces that contain `tokens`, which must exist.
    ///
    /// # Errors
    /// The error of `bad_id`, which gets the number of a token whose id does not fit in 32 bits, and
    /// the id; [`Error::NarrowedCopy`].
    #[cold]
    pub(crate) fn copy(
        &self,
        tokens: &Range<u64>,
        path: &Path,
        bad_id: impl Fn(u64, i128) -> Error,
    ) -> Result<()> {
        for piece in pieces(tokens) {
            if self.is_copied(piece) {
                continue;
            }
            let start = piece * PIECE_TOKENS;
            let stop = (start + PIECE_TOKENS).min(self.num_tokens);
            let ids = self.narrowed(start..stop, &bad_id)?;
            let written = self.copy.write_all_at(&ids, start * TOKEN_BYTES);
            written.map_err(|source| copy_error(path, source))?;
            self.copied[(piece / 64) as usize].fetch_or(1 << (piece % 64), Ordering::Release);
        }
        Ok(())
    }

    /// Ids as bytes of 32-bit numbers.
    fn narrowed(
        &self,
        tokens: Range<u64>,
        bad_id: &impl Fn(u64, i128) -> Error,
    ) -> Result<Vec<u8>> {
        let bytes = &self.original.bytes()[self.original_bytes(&tokens)];
        let bad = |i: usize, id: i128| Err(bad_id(tokens.start + i as u64, id));
        match self.wide_type {
            WideType::I32 => {
                let (ids, _) = bytes.as_chunks::<4>();
                match ids.iter().position(|&id| i32::from_le_bytes(id) < 0) {
                    Some(i) => bad(i, i32::from_le_bytes(ids[i]).into()),
                    None => Ok(bytes.to_vec()),
                }
            }
            WideType::Bits64 => {
                let (ids, _) = bytes.as_chunks::<8>();
                let is_narrow = |&id: &[u8; 8]| u64::from_le_bytes(id) <= u64::from(u32::MAX);
                let all = ids.iter().fold(0, |all, &id| all | u64::from_le_bytes(id));
                if is_narrow(&all.to_le_bytes()) {
                    return Ok(ids
                        .iter()
                        .flat_map(|id| [id[0], id[1], id[2], id[3]])
                        .collect());
                }
                let i = ids.iter().position(|id| !is_narrow(id)).unwrap_or(0);
                bad(i, i64::from_le_bytes(ids[i]).into())
            }
        }
    }

    fn is_copied(&self, piece: u64) -> bool {
        let word = self.copied[(piece / 64) as usize].load(Ordering::Acquire);
        word & (1 << (piece % 64)) != 0
    }
}

fn pieces(tokens: &Range<u64>) -> Range<u64> {
    tokens.start / PIECE_TOKENS..tokens.end.div_ceil(PIECE_TOKENS)
}

fn copy_error(path: &Path, source: io::Error) -> Error {
    Error::NarrowedCopy {
        path: path.into(),
        folder: std::env::temp_dir(),
        source,
    }
}
