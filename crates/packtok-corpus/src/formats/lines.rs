//! Reads the lines of one source.

use memchr::{memchr, memrchr};

use crate::bytes::counted::{BytesReader, CountedBytes};
use crate::error::Result;
use crate::formats::source_reader::SKIP_TURN_BYTES;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{BOM, ReadOptions, Source};

/// Reads the lines of one source.
pub(crate) struct Lines {
    /// Counts the bytes before `carry`, including the line being skipped.
    bytes: CountedBytes,
    options: ReadOptions,
    /// The start of a line whose end was not read yet.
    carry: Vec<u8>,
    /// Length so far of a line that is too long to keep.
    skipped_bytes: Option<u64>,
    at_end: bool,
}

/// The result of filling a buffer.
struct Filled {
    /// Bytes of text in the buffer.
    len: usize,
    /// End of the last complete line; at the end of the source, the end of the text.
    complete: usize,
}

impl Lines {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            bytes: CountedBytes::open(source, options)?,
            options: options.clone(),
            carry: Vec::new(),
            skipped_bytes: None,
            at_end: false,
        })
    }

    /// Fills `buffer` from the carried bytes and the source. Reads up to `chunk_bytes`, or further
    /// until one line is complete. If that line becomes too long, the buffer contains no complete
    /// line.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> Result<Filled> {
        let mut len = self.carry.len();
        make_room(buffer, 0, len);
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        // After a skipped line, the carried bytes may contain complete lines.
        let mut complete = memrchr(b'\n', &buffer[..len]).map_or(0, |last| last + 1);
        let limit_bytes = self
            .options
            .max_document_bytes
            .saturating_add(BOM.len() as u64);
        while !self.at_end && (complete == 0 || len < self.options.chunk_bytes) {
            if complete == 0 && len as u64 > limit_bytes {
                break;
            }
            let is_long = len >= self.options.chunk_bytes;
            let stop = self.options.chunk_bytes + if is_long { len } else { 0 };
            make_room(buffer, len, stop);
            let n = self.bytes.read(&mut buffer[len..stop])?;
            self.at_end = n == 0;
            if let Some(last) = memrchr(b'\n', &buffer[len..len + n]) {
                complete = len + last + 1;
            }
            len += n;
        }
        if self.at_end {
            complete = len;
        }
        Ok(Filled { len, complete })
    }

    /// Skips a line that is too long, with `buffer` as scratch space.
    fn skip_line(&mut self, buffer: &mut Vec<u8>) -> Result<Content> {
        let mut len_bytes = self.skipped_bytes.take().unwrap_or(0);
        let turn_stop = len_bytes + SKIP_TURN_BYTES;
        let offset = self.bytes.offset_bytes() - len_bytes;
        make_room(buffer, 0, self.options.chunk_bytes);
        loop {
            let n = self.bytes.read(buffer)?;
            self.at_end = n == 0;
            let end = memchr(b'\n', &buffer[..n]);
            len_bytes += end.unwrap_or(n) as u64;
            self.bytes.advance(&buffer[..end.map_or(n, |end| end + 1)]);
            if let Some(end) = end {
                self.carry.extend_from_slice(&buffer[end + 1..n]);
            }
            if end.is_some() || self.at_end {
                return Ok(Content::Spans(vec![Span {
                    offset,
                    len_bytes,
                    content: SpanContent::Oversize,
                }]));
            }
            if len_bytes >= turn_stop {
                self.skipped_bytes = Some(len_bytes);
                return Ok(Content::Spans(Vec::new()));
            }
        }
    }
}

impl BytesReader for Lines {
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        if self.skipped_bytes.is_some() {
            return self.skip_line(buffer).map(Some);
        }
        let filled = self.fill(buffer)?;
        let offset_bytes = self.bytes.offset_bytes();
        if offset_bytes == 0 {
            self.bytes.check_head(&buffer[..filled.len])?;
        }
        let has_bom = offset_bytes == 0 && buffer[..filled.len].starts_with(BOM);
        let start = if has_bom { BOM.len() } else { 0 };
        if filled.complete == 0 {
            // Either the source is at its end, or its only line is too long to keep.
            if filled.len == 0 {
                return Ok(None);
            }
            self.bytes.advance(&buffer[..filled.len]);
            self.skipped_bytes = Some((filled.len - start) as u64);
            return self.skip_line(buffer).map(Some);
        }
        self.bytes.advance(&buffer[..filled.complete]);
        self.carry
            .extend_from_slice(&buffer[filled.complete..filled.len]);
        Ok(Some(Content::Consecutive {
            start,
            stop: filled.complete,
            offset_bytes: offset_bytes + start as u64,
        }))
    }

    fn is_at_end(&self) -> bool {
        self.at_end && self.carry.is_empty() && self.skipped_bytes.is_none()
    }

    fn bytes(&self) -> &CountedBytes {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut CountedBytes {
        &mut self.bytes
    }

    fn is_inside_record(&self) -> bool {
        self.skipped_bytes.is_some()
    }
}

/// Makes `buffer` at least `len` bytes long and keeps its first `used` bytes.
///
/// It grows by half, so that a line of n bytes does not need a buffer of 2n. It never shrinks, so
/// that a reused buffer is zeroed only once.
fn make_room(buffer: &mut Vec<u8>, used: usize, len: usize) {
    if buffer.len() >= len {
        return;
    }
    if buffer.capacity() == 0 {
        *buffer = vec![0; len];
        return;
    }
    buffer.truncate(used);
    if buffer.capacity() < len {
        buffer.reserve_exact(len.max(used + used / 2) - used);
    }
    buffer.resize(len, 0);
}
