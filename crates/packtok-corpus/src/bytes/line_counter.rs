//! Line numbers for positions in a file that is not read sequentially.

use std::io::{Read, Seek, SeekFrom};

use memchr::memchr_iter;

use crate::error::{Error, Result};
use crate::{CorpusFile, Source};

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// Counts the lines of one uncompressed file, continuing from the last requested position.
#[derive(Debug)]
pub struct LineCounter {
    source: Source,
    /// A position in the file, and the number of the line that contains it.
    known: (u64, u64),
}

impl LineCounter {
    /// Counts the lines of a file from its start.
    pub fn new(source: &Source) -> Self {
        Self {
            source: source.clone(),
            known: (0, 1),
        }
    }

    /// 1-based number of the line that contains the byte at `offset_bytes`.
    ///
    /// # Errors
    /// The file cannot be read up to that byte.
    pub fn line_at(&mut self, offset_bytes: u64) -> Result<u64> {
        if offset_bytes < self.known.0 {
            self.known = (0, 1);
        }
        let line = self.known.1 + self.count_breaks(self.known.0, offset_bytes)?;
        self.known = (offset_bytes, line);
        Ok(line)
    }

    fn count_breaks(&self, start: u64, stop: u64) -> Result<u64> {
        let io = |cause| Error::io(&self.source.path, cause);
        let mut file = CorpusFile::of(&self.source)?;
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        let mut bytes = file.take(stop - start);
        let mut buffer = vec![0; READ_BYTES];
        let mut num_breaks = 0;
        loop {
            let n = bytes.read(&mut buffer).map_err(io)?;
            if n == 0 {
                return Ok(num_breaks);
            }
            num_breaks += memchr_iter(b'\n', &buffer[..n]).count() as u64;
        }
    }
}
