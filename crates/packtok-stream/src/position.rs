//! Positions in a stream, in two forms.
//!
//! A *state* is complete: a node of the same recipe that loads the state continues there. A *mark*
//! is a few numbers, only valid for a node at the same or an earlier position;
//! [`super::node::Node::advance`] moves to a mark without computing the samples in between. A
//! buffer of rows is stored as one state and one mark per row.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::error::{Error, Result};

/// The states of lanes by their numbers.
pub type LaneStates = BTreeMap<u64, Vec<u8>>;

/// Writes numbers of a state or mark, in as few bytes as they need.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Numbers {
    bytes: Vec<u8>,
    /// The states of lanes are stored separately, because each rank only has the states of some
    /// lanes.
    pub(super) lanes: LaneStates,
}

impl Numbers {
    /// Appends a number: 7 bits per byte, the lowest first, as LEB128.
    pub(super) fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends bytes after their length.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.push(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the content of `other`.
    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        let lanes = other.lanes.iter();
        self.lanes
            .extend(lanes.map(|(&lane, state)| (lane, state.clone())));
    }

    /// The bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the bytes that [`Numbers`] wrote.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position<'a> {
    bytes: &'a [u8],
    pub(super) lanes: Option<&'a LaneStates>,
}

impl<'a> Position<'a> {
    /// Reads `bytes` from their start.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, lanes: None }
    }

    /// The next number.
    ///
    /// # Errors
    /// The bytes end, or the number has more than 64 bits.
    pub(super) fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first().ok_or_else(damaged)?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(damaged());
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged())
    }

    /// The next number, which must be at most `limit`.
    ///
    /// # Errors
    /// As [`Position::number`]; or the number is larger.
    pub(super) fn number_to(&mut self, limit: u64) -> Result<u64> {
        match self.number()? {
            number if number <= limit => Ok(number),
            _ => Err(damaged()),
        }
    }

    /// The next bytes, with their length first.
    ///
    /// # Errors
    /// Fewer bytes than this length are left.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = usize::try_from(self.number()?).map_err(|_| damaged())?;
        let (bytes, rest) = self.bytes.split_at_checked(len).ok_or_else(damaged)?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// Some bytes are left.
    pub(super) fn finish(self) -> Result<()> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 4;

/// Highest ratio of deflate.
const MAX_RATIO: u64 = 1032;

/// Compresses `bytes`, followed by their CRC32C as 4 bytes in little-endian order, with deflate.
/// The marks of a buffer resemble each other, so they compress well.
pub(super) fn packed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let written = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// Decompresses the result of [`packed`].
///
/// # Errors
/// The bytes are damaged.
pub(super) fn unpacked(packed: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_RATIO * (packed.len() as u64 + 1);
    let read = DeflateDecoder::new(packed)
        .take(limit)
        .read_to_end(&mut bytes);
    read.map_err(|_| damaged())?;
    let len = bytes.len().checked_sub(CHECKSUM_BYTES);
    let crc = bytes.split_off(len.ok_or_else(damaged)?);
    if crc == crc32c::crc32c(&bytes).to_le_bytes() {
        Ok(bytes)
    } else {
        Err(damaged())
    }
}

/// The error for bytes that no node wrote.
pub(super) fn damaged() -> Error {
    Error::DamagedState
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_are_read_as_written() {
        let numbers = [0, 1, 127, 128, 300, 1 << 32, u64::MAX >> 1, u64::MAX];
        let mut written = Numbers::default();
        numbers.iter().for_each(|&number| written.push(number));
        written.push_bytes(b"abc");
        let mut read = Position::new(written.bytes());
        for number in numbers {
            assert_eq!(read.number().unwrap(), number);
        }
        assert_eq!(read.bytes().unwrap(), b"abc");
        read.finish().unwrap();
    }

    #[test]
    fn packed_bytes_are_complete_or_damaged() {
        for bytes in [vec![], vec![7; 100_000], (0..=255).collect()] {
            let mut packed = packed(bytes.clone());
            assert_eq!(unpacked(&packed).unwrap(), bytes);
            packed.pop();
            assert!(unpacked(&packed).is_err());
        }
        assert!(unpacked(&[]).is_err());
        assert!(unpacked(b"no deflate").is_err());
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        ] {
            assert!(Position::new(bytes).number().is_err(), "{bytes:?}");
        }
        assert!(Position::new(&[3, 1, 2]).bytes().is_err());
        assert!(Position::new(&[3]).finish().is_err());
    }
}
