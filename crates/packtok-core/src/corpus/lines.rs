//! Reads the lines of one source.

use memchr::{memchr, memrchr};

use super::chunk::{Content, Span, SpanContent};
use super::frames::Frame;
use super::source_reader::{SKIP_TURN_BYTES, SourceReader};
use super::stream::Stream;
use super::{BOM, Place, ReadOptions, Source};
use crate::error::Result;

/// Reads the lines of one source.
pub(super) struct Lines {
    stream: Stream,
    options: ReadOptions,
    /// Offset of the first byte of `carry` in the uncompressed source.
    offset_bytes: u64,
    /// CRC32C of the uncompressed bytes before that, including the line being skipped.
    crc: u32,
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
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            stream: Stream::open(source, options)?,
            options: options.clone(),
            offset_bytes: source.span().start,
            crc: 0,
            carry: Vec::new(),
            skipped_bytes: None,
            at_end: false,
        })
    }

    fn checksum(&mut self, passed: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, passed);
    }

    /// Fills `buffer` from the carried bytes and the source: up to `chunk_bytes`, or further until
    /// one line is complete or known to be too long (then there is no complete line).
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
            let n = self.stream.read(&mut buffer[len..stop])?;
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
        make_room(buffer, 0, self.options.chunk_bytes);
        loop {
            let n = self.stream.read(buffer)?;
            self.at_end = n == 0;
            let end = memchr(b'\n', &buffer[..n]);
            len_bytes += end.unwrap_or(n) as u64;
            self.checksum(&buffer[..end.map_or(n, |end| end + 1)]);
            if let Some(end) = end {
                self.carry.extend_from_slice(&buffer[end + 1..n]);
            }
            if end.is_some() || self.at_end {
                let span = Span {
                    offset: self.offset_bytes,
                    len_bytes,
                    content: SpanContent::Oversize,
                };
                self.offset_bytes += len_bytes + u64::from(end.is_some());
                return Ok(Content::Spans(vec![span]));
            }
            if len_bytes >= turn_stop {
                self.skipped_bytes = Some(len_bytes);
                return Ok(Content::Spans(Vec::new()));
            }
        }
    }
}

impl SourceReader for Lines {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        if self.skipped_bytes.is_some() {
            return self.skip_line(buffer).map(Some);
        }
        let filled = self.fill(buffer)?;
        if self.offset_bytes == 0 {
            self.stream.check_head(&buffer[..filled.len])?;
        }
        let has_bom = self.offset_bytes == 0 && buffer[..filled.len].starts_with(BOM);
        let start = if has_bom { BOM.len() } else { 0 };
        if filled.complete == 0 {
            // Either the source is at its end, or its only line is too long to keep.
            if filled.len == 0 {
                return Ok(None);
            }
            self.offset_bytes += start as u64;
            self.checksum(&buffer[..filled.len]);
            self.skipped_bytes = Some((filled.len - start) as u64);
            return self.skip_line(buffer).map(Some);
        }
        self.checksum(&buffer[..filled.complete]);
        self.carry
            .extend_from_slice(&buffer[filled.complete..filled.len]);
        let content = Content::Consecutive {
            start,
            stop: filled.complete,
            offset_bytes: self.offset_bytes + start as u64,
        };
        self.offset_bytes += filled.complete as u64;
        Ok(Some(content))
    }

    fn is_at_end(&self) -> bool {
        self.at_end && self.carry.is_empty() && self.skipped_bytes.is_none()
    }

    fn place(&self, source: usize) -> Option<Place> {
        // Reading cannot resume inside a skipped line.
        self.skipped_bytes.is_none().then_some(Place {
            source,
            offset: self.offset_bytes,
            crc32c: self.crc,
        })
    }

    fn frame(&mut self) -> Option<Frame> {
        self.stream.frame_before(self.offset_bytes)
    }

    fn skip(&mut self, place: Place, frame: Option<Frame>) -> Result<bool> {
        (self.offset_bytes, self.crc) = (place.offset, place.crc32c);
        self.stream.skip(place.offset, frame)
    }

    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        self.stream
            .pass_to(offset, (&mut self.offset_bytes, &mut self.crc), tick)
    }

    fn raw_bytes(&self) -> u64 {
        self.stream.raw_bytes()
    }

    fn digest(&self) -> u32 {
        self.stream.digest().unwrap_or(self.crc)
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
