//! The loss mask of a file: a bit for each token, which says whether it counts in the loss where it is a
//! label.
//!
//! Responsible for the bits of the section and for collecting them while a file is written. The lowest bit
//! of a byte is that of its first token.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Tokens of one byte.
const TOKENS_PER_BYTE: u64 = 8;
/// Bytes that are copied at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// The loss mask of an open file.
#[derive(Debug, Clone, Copy)]
pub struct LossMask<'a> {
    bits: &'a [u8],
    num_tokens: u64,
}

impl<'a> LossMask<'a> {
    /// Bytes of the mask of so many tokens.
    pub(crate) fn section_bytes(num_tokens: u64) -> u64 {
        num_tokens.div_ceil(TOKENS_PER_BYTE)
    }

    /// The caller guarantees that there are [`LossMask::section_bytes`].
    pub(crate) fn new(bits: &'a [u8], num_tokens: u64) -> Self {
        Self { bits, num_tokens }
    }

    /// Whether each of `tokens` counts in the loss where it is a label. Tokens that the file does not have
    /// are left out.
    pub fn tokens(self, tokens: Range<u64>) -> impl Iterator<Item = bool> + 'a {
        (tokens.start..tokens.end.min(self.num_tokens)).map(move |token| {
            let byte = self.bits[(token / TOKENS_PER_BYTE) as usize];
            byte >> (token % TOKENS_PER_BYTE) & 1 == 1
        })
    }

    /// The byte of the section in which a bit is set that belongs to no token.
    pub(crate) fn excess_byte(self) -> Option<u64> {
        let used = self.num_tokens % TOKENS_PER_BYTE;
        let last = self.bits.last().filter(|_| used > 0)?;
        (last >> used != 0).then(|| self.bits.len() as u64 - 1)
    }
}

/// The mask of a file that is being written, in a file of its own.
#[derive(Debug)]
pub(crate) struct MaskSpool {
    file: BufWriter<File>,
    /// The bits of the last tokens, which do not fill a byte.
    byte: u8,
    pub(crate) num_tokens: u64,
}

impl MaskSpool {
    /// A mask of no tokens in an empty file.
    pub(crate) fn new(file: File) -> Self {
        Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            byte: 0,
            num_tokens: 0,
        }
    }

    pub(crate) fn push(&mut self, is_counted: bool) -> io::Result<()> {
        let used = self.num_tokens % TOKENS_PER_BYTE;
        self.byte |= u8::from(is_counted) << used;
        self.num_tokens += 1;
        if used + 1 < TOKENS_PER_BYTE {
            return Ok(());
        }
        self.file.write_all(&[std::mem::take(&mut self.byte)])
    }

    /// Writes the section to `out`.
    pub(crate) fn write_section(self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            mut file,
            byte,
            num_tokens,
        } = self;
        if num_tokens % TOKENS_PER_BYTE > 0 {
            file.write_all(&[byte])?;
        }
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                read => out.write_all(&buffer[..read])?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_and_no_other_is_set() {
        for num_tokens in [0, 1, 7, 8, 9, 1000] {
            let mask: Vec<bool> = (0..num_tokens).map(|i| i % 3 == 0 || i % 7 == 2).collect();
            let mut spool = MaskSpool::new(tempfile::tempfile().unwrap());
            mask.iter().for_each(|&bit| spool.push(bit).unwrap());
            let mut bits = Vec::new();
            spool.write_section(&mut bits).unwrap();
            assert_eq!(bits.len() as u64, LossMask::section_bytes(num_tokens));
            let read = LossMask::new(&bits, num_tokens);
            assert!(read.tokens(0..u64::MAX).eq(mask.iter().copied()));
            assert_eq!(read.excess_byte(), None);
            if num_tokens % 8 > 0 {
                *bits.last_mut().unwrap() |= 0x80;
                let read = LossMask::new(&bits, num_tokens);
                assert_eq!(read.excess_byte(), Some(bits.len() as u64 - 1));
            }
        }
    }
}
