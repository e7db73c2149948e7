//! The 12-byte header: number of data bytes and token width.
//!
//! Responsible for the header's encoding and for the choice of a token width. The reader checks
//! that the file has as much data as the header specifies.

use std::path::Path;

use crate::error::{Error, Result};

/// Bytes of the header; the data segment starts here.
pub const HEADER_BYTES: u64 = 12;

// Every width divides the header, so a page-aligned map yields aligned tokens.
const _: () = assert!(HEADER_BYTES.is_multiple_of(TokenWidth::U32 as u64));

/// Bytes of a token id on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenWidth {
    /// Ids `0..=255`.
    U8 = 1,
    /// Ids `0..=65_535`.
    U16 = 2,
    /// Ids `0..=4_294_967_295`.
    U32 = 4,
}

impl TokenWidth {
    /// Smallest width that holds every id in `0..vocab_size`.
    ///
    /// `vocab_size` is the highest id plus one, added tokens included.
    pub fn for_vocab(vocab_size: u64) -> Self {
        match vocab_size {
            0..=0x100 => Self::U8,
            0x101..=0x1_0000 => Self::U16,
            _ => Self::U32,
        }
    }

    /// The width of `bytes` bytes, or `None` if it is not a valid token width.
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            1 => Some(Self::U8),
            2 => Some(Self::U16),
            4 => Some(Self::U32),
            _ => None,
        }
    }

    /// The greatest id.
    pub fn max_id(self) -> u32 {
        match self {
            Self::U8 => u8::MAX.into(),
            Self::U16 => u16::MAX.into(),
            Self::U32 => u32::MAX,
        }
    }

    /// The ids in the bytes of whole tokens.
    pub fn ids(self, tokens: &[u8]) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        tokens.chunks_exact(self.bytes() as usize).map(|token| {
            let bytes = token.iter().rev();
            bytes.fold(0, |id, &byte| id << 8 | u32::from(byte))
        })
    }

    /// The greatest of the ids in `tokens`; 0 if there are none.
    pub fn greatest_id(self, tokens: &[u8]) -> u32 {
        // Folds over numbers of a fixed width compile to vector instructions.
        match self {
            Self::U8 => tokens.iter().fold(0, |max, &id| id.max(max)).into(),
            Self::U16 => {
                let ids = tokens.as_chunks().0.iter();
                ids.fold(0, |max, &id| u16::from_le_bytes(id).max(max))
                    .into()
            }
            Self::U32 => {
                let ids = tokens.as_chunks().0.iter();
                ids.fold(0, |max, &id| u32::from_le_bytes(id).max(max))
            }
        }
    }

    /// Bytes one token occupies: 1, 2 or 4.
    pub fn bytes(self) -> u64 {
        self as u64
    }

    /// Whether `bytes` is a whole number of tokens.
    pub(crate) fn divides(self, bytes: u64) -> bool {
        // Every width is a power of two, so a mask suffices. A division by a variable would take
        // most of the time of a lookup.
        bytes & (self.bytes() - 1) == 0
    }

    /// Number of whole tokens in `bytes`.
    pub fn tokens_in(self, bytes: u64) -> u64 {
        bytes >> self.bytes().trailing_zeros()
    }
}

/// The decoded header of a pbin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the data segment.
    pub data_bytes: u64,
    /// Bytes of one token.
    pub width: TokenWidth,
}

impl Header {
    /// Reads the header at the start of `file`; `path` is for errors.
    ///
    /// # Errors
    /// [`Error::TooShort`], [`Error::TokenWidth`], [`Error::PartialToken`].
    pub fn decode(file: &[u8], path: &Path) -> Result<Self> {
        let Some((bytes, _)) = file.split_first_chunk::<{ HEADER_BYTES as usize }>() else {
            return Err(Error::TooShort {
                path: path.into(),
                actual: file.len() as u64,
            });
        };
        let [d0, d1, d2, d3, d4, d5, d6, d7, w0, w1, w2, w3] = *bytes;
        let data_bytes = u64::from_le_bytes([d0, d1, d2, d3, d4, d5, d6, d7]);
        let found = u32::from_le_bytes([w0, w1, w2, w3]);
        let width = TokenWidth::from_bytes(found).ok_or_else(|| Error::TokenWidth {
            path: path.into(),
            found,
        })?;
        if !width.divides(data_bytes) {
            return Err(Error::PartialToken {
                path: path.into(),
                data_bytes,
                width: width.bytes(),
            });
        }
        Ok(Self { data_bytes, width })
    }

    /// The encoded header.
    pub fn encode(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..8].copy_from_slice(&self.data_bytes.to_le_bytes());
        bytes[8..].copy_from_slice(&(self.width as u32).to_le_bytes());
        bytes
    }

    /// File offset of the first byte after the data, or `None` if it exceeds 64 bits.
    pub fn data_end(self) -> Option<u64> {
        HEADER_BYTES.checked_add(self.data_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_changes_at_256_and_65536_ids() {
        for (vocab_size, width) in [
            (0, TokenWidth::U8),
            (256, TokenWidth::U8),
            (257, TokenWidth::U16),
            (65_536, TokenWidth::U16),
            (65_537, TokenWidth::U32),
            (u64::MAX, TokenWidth::U32),
        ] {
            assert_eq!(TokenWidth::for_vocab(vocab_size), width, "{vocab_size}");
        }
    }

    #[test]
    fn decode_inverts_encode() {
        for width in [TokenWidth::U8, TokenWidth::U16, TokenWidth::U32] {
            let header = Header {
                data_bytes: 0x0102_0304_0506_0708,
                width,
            };
            assert_eq!(
                Header::decode(&header.encode(), Path::new("x")).unwrap(),
                header
            );
        }
    }

    #[test]
    fn invalid_headers_are_rejected() {
        let text = |bytes: &[u8]| {
            Header::decode(bytes, Path::new("x.pbin"))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            text(&[0; 11]),
            "x.pbin: file is 11 bytes, shorter than the 12-byte header"
        );
        assert_eq!(
            text(&[4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]),
            "x.pbin: header at byte 8 gives 3 bytes per token, expected 1, 2 or 4; this is not a pbin"
        );
        assert_eq!(
            text(&[5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]),
            "x.pbin: data segment of 5 bytes is not a whole number of 2-byte tokens"
        );
    }
}
