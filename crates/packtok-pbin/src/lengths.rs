//! Spools the lengths of a growing file's documents to disk, because they may not fit in memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

/// Bytes of lengths buffered in memory before a write.
const BUFFER_BYTES: usize = 64 * 1024;

/// Bytes of a length in the spool.
pub(crate) const LENGTH_BYTES: u64 = 8;

/// Number of all lengths, and the checksum of the spooled ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownLengths {
    pub(crate) num_documents: u64,
    pub(crate) crc32c: u32,
}

/// The lengths of the documents so far, spooled to a file.
#[derive(Debug)]
pub(crate) struct Lengths {
    spool: File,
    buffer: Vec<u8>,
    pub(crate) known: KnownLengths,
}

impl Lengths {
    pub(crate) const NONE: KnownLengths = KnownLengths {
        num_documents: 0,
        crc32c: 0,
    };

    /// Resumes at the end of `spool`, which contains the lengths described by `known`.
    pub(crate) fn new(spool: File, known: KnownLengths) -> Self {
        Self {
            spool,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            known,
        }
    }

    pub(crate) fn push(&mut self, bytes: u64) -> std::io::Result<()> {
        self.known.num_documents += 1;
        self.buffer.extend_from_slice(&bytes.to_le_bytes());
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.spool.write_all(&self.buffer)?;
        self.known.crc32c = crc32c::crc32c_append(self.known.crc32c, &self.buffer);
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn for_each(
        &mut self,
        mut length: impl FnMut(u64) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.flush()?;
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spooled = BufReader::with_capacity(BUFFER_BYTES, &self.spool);
        let mut bytes = [0; LENGTH_BYTES as usize];
        for _ in 0..self.known.num_documents {
            spooled.read_exact(&mut bytes)?;
            length(u64::from_le_bytes(bytes))?;
        }
        Ok(())
    }
}
