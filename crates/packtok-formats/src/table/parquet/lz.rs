//! Decompresses Snappy and LZ4 blocks piece by piece.
//!
//! Libraries decompress a block at once, into memory for all of it. Compressors refer back by at most
//! 64 KiB, so a short history is enough. Formats:
//! <https://github.com/google/snappy/blob/main/format_description.txt> and
//! <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

use std::io::{self, BufReader, Read};

/// Bytes that a copy may refer back.
const HISTORY_BYTES: usize = 1 << 20;
/// Bytes that are decompressed at a time.
const STEP_BYTES: usize = 1 << 17;
const INPUT_BYTES: usize = 1 << 16;

/// The format of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Snappy,
    Lz4,
}

/// Reads the decompressed bytes of a block.
pub(super) struct LzReader<R> {
    input: BufReader<R>,
    format: Format,
    /// The last bytes that were decompressed.
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that the caller has read.
    read: usize,
    /// Bytes that are still to be decompressed.
    left: u64,
    /// Bytes to take from the input next.
    literal: u64,
    /// Bytes to copy after that, and from how far back.
    copy: u64,
    offset: usize,
    /// The token of an LZ4 sequence whose copy part is not decoded yet.
    token: Option<u8>,
}

impl<R: Read> LzReader<R> {
    /// Reads a block that becomes `num_bytes` bytes.
    pub(super) fn new(input: R, format: Format, num_bytes: u64) -> io::Result<Self> {
        let mut reader = Self {
            input: BufReader::with_capacity(INPUT_BYTES, input),
            format,
            buffer: Vec::with_capacity(HISTORY_BYTES + 2 * STEP_BYTES),
            read: 0,
            left: num_bytes,
            literal: 0,
            copy: 0,
            offset: 0,
            token: None,
        };
        if format == Format::Snappy && reader.varint()? != num_bytes {
            return Err(invalid());
        }
        Ok(reader)
    }

    /// Decompresses some more bytes.
    fn step(&mut self) -> io::Result<()> {
        if self.buffer.len() > HISTORY_BYTES + STEP_BYTES {
            let dropped = self.buffer.len() - HISTORY_BYTES;
            self.buffer.drain(..dropped);
            self.read -= dropped;
        }
        let target = self.buffer.len() + STEP_BYTES;
        while self.buffer.len() < target && self.left > 0 {
            let room = (target - self.buffer.len()) as u64;
            let made = if self.literal > 0 {
                let num = self.literal.min(room).min(self.left);
                let taken = self
                    .input
                    .by_ref()
                    .take(num)
                    .read_to_end(&mut self.buffer)?;
                if (taken as u64) < num {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.literal -= num;
                num
            } else if self.copy > 0 {
                let num = self.copy.min(room).min(self.left);
                self.copy_back(num as usize)?;
                self.copy -= num;
                num
            } else {
                match self.token.take() {
                    Some(token) => self.lz4_copy(token)?,
                    None => self.element()?,
                }
                0
            };
            self.left -= made;
        }
        Ok(())
    }

    /// Appends `num` bytes from `offset` bytes back; the two may overlap.
    fn copy_back(&mut self, num: usize) -> io::Result<()> {
        if self.offset == 0 || self.offset > self.buffer.len() {
            return Err(invalid());
        }
        let mut left = num;
        while left > 0 {
            let start = self.buffer.len() - self.offset;
            let piece = left.min(self.offset);
            self.buffer.extend_from_within(start..start + piece);
            left -= piece;
        }
        Ok(())
    }

    fn element(&mut self) -> io::Result<()> {
        match self.format {
            Format::Snappy => self.snappy_element(),
            Format::Lz4 => self.lz4_sequence(),
        }
    }

    fn snappy_element(&mut self) -> io::Result<()> {
        let tag = self.byte()?;
        let high = u64::from(tag >> 2);
        match tag & 3 {
            0 if high < 60 => self.literal = high + 1,
            0 => self.literal = self.little_endian(high as usize - 59)? + 1,
            1 => {
                self.copy = (high & 7) + 4;
                self.offset = usize::from(tag >> 5) << 8 | usize::from(self.byte()?);
            }
            kind => {
                self.copy = high + 1;
                self.offset = self.little_endian(if kind == 2 { 2 } else { 4 })? as usize;
            }
        }
        Ok(())
    }

    /// Reads the start of a sequence, which is followed by its literals.
    fn lz4_sequence(&mut self) -> io::Result<()> {
        let token = self.byte()?;
        self.literal = self.lz4_len(token >> 4)?;
        self.token = Some(token);
        Ok(())
    }

    /// Reads the rest of the sequence of `token`, after its literals.
    fn lz4_copy(&mut self, token: u8) -> io::Result<()> {
        self.offset = self.little_endian(2)? as usize;
        self.copy = self.lz4_len(token & 15)? + 4;
        Ok(())
    }

    /// Decodes a length whose first four bits are `first`.
    fn lz4_len(&mut self, first: u8) -> io::Result<u64> {
        let mut len = u64::from(first);
        if first == 15 {
            loop {
                let byte = self.byte()?;
                len = len.checked_add(byte.into()).ok_or_else(invalid)?;
                if byte < 255 {
                    break;
                }
            }
        }
        Ok(len)
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(invalid())
    }

    fn little_endian(&mut self, num_bytes: usize) -> io::Result<u64> {
        let mut value = [0; 8];
        self.input.read_exact(&mut value[..num_bytes])?;
        Ok(u64::from_le_bytes(value))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

impl<R: Read> Read for LzReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() && self.left > 0 {
            self.step()?;
        }
        let num = out.len().min(self.buffer.len() - self.read);
        out[..num].copy_from_slice(&self.buffer[self.read..self.read + num]);
        self.read += num;
        Ok(num)
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "compressed bytes are not valid")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(format: Format, block: &[u8], num_bytes: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        LzReader::new(block, format, num_bytes as u64)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Texts with repetitions near and far, short and long.
    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let piece = (any::<u8>(), 1..3000usize, any::<bool>()).prop_map(|(byte, len, is_run)| {
            (0..len)
                .map(|i| {
                    if is_run {
                        byte
                    } else {
                        byte.wrapping_add((i * i % 251) as u8)
                    }
                })
                .collect::<Vec<_>>()
        });
        prop::collection::vec(piece, 0..200).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn blocks_are_decompressed_as_by_the_libraries(bytes in texts()) {
            let lz4 = lz4_flex::block::compress(&bytes);
            prop_assert!(read(Format::Lz4, &lz4, bytes.len()).unwrap() == bytes);
            let snappy = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            prop_assert!(read(Format::Snappy, &snappy, bytes.len()).unwrap() == bytes);
        }

        #[test]
        fn damaged_blocks_are_errors_or_other_bytes(
            bytes in texts(),
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut lz4 = lz4_flex::block::compress(&bytes);
            let i = at.index(lz4.len());
            lz4[i] = value;
            let _ = read(Format::Lz4, &lz4, bytes.len());
            let mut snappy = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            let i = at.index(snappy.len());
            snappy[i] = value;
            let _ = read(Format::Snappy, &snappy, bytes.len());
        }
    }

    #[test]
    fn a_long_run_is_decompressed_in_pieces() {
        let bytes = vec![7; 5 << 20];
        let lz4 = lz4_flex::block::compress(&bytes);
        assert!(lz4.len() < 1 << 16);
        let mut reader = LzReader::new(&lz4[..], Format::Lz4, bytes.len() as u64).unwrap();
        let mut decompressed = Vec::new();
        reader.read_to_end(&mut decompressed).unwrap();
        assert!(decompressed == bytes);
        assert!(reader.buffer.capacity() < 4 << 20);
    }
}
