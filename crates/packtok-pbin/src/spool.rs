//! Spools per-document numbers of a growing file to disk, because they may not fit in memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

/// Bytes buffered in memory before a write.
const BUFFER_BYTES: usize = 64 * 1024;

/// Bytes of a number in the spool.
pub(crate) const NUMBER_BYTES: u64 = 8;

/// The number of spooled numbers, and their checksum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spooled {
    pub(crate) num_numbers: u64,
    pub(crate) crc32c: u32,
}

/// Numbers spooled to a file.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    buffer: Vec<u8>,
    pub(crate) spooled: Spooled,
}

impl Spool {
    /// Resumes after the numbers in `file` that `spooled` describes.
    pub(crate) fn resume(mut file: File, spooled: Spooled) -> std::io::Result<Self> {
        file.set_len(spooled.num_numbers * NUMBER_BYTES)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            spooled,
        })
    }

    pub(crate) fn push(&mut self, number: u64) -> std::io::Result<()> {
        self.spooled.num_numbers += 1;
        self.buffer.extend_from_slice(&number.to_le_bytes());
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.spooled.crc32c = crc32c::crc32c_append(self.spooled.crc32c, &self.buffer);
        self.buffer.clear();
        Ok(())
    }

    /// Calls `each` with all numbers in order.
    pub(crate) fn for_each(
        &mut self,
        mut each: impl FnMut(u64) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut spooled = BufReader::with_capacity(BUFFER_BYTES, &self.file);
        let mut bytes = [0; NUMBER_BYTES as usize];
        for _ in 0..self.spooled.num_numbers {
            spooled.read_exact(&mut bytes)?;
            each(u64::from_le_bytes(bytes))?;
        }
        Ok(())
    }
}
