//! Reads sources sequentially and divides them into chunks of complete lines.

use crate::corpus::CorpusError;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::chunk::{Chunk, Content, Span};
use super::stream::Stream;
use super::{BOM, Place, ReadOptions, Source};
use crate::error::{Error, Result};

/// Bytes of an oversize line skipped before the caller regains control.
const SKIP_TURN_BYTES: u64 = 64 << 20;

/// Reads all sources in order.
pub(super) struct Sequential {
    sources: Arc<[Source]>,
    options: ReadOptions,
    source: usize,
    open: Option<Open>,
    /// Raw bytes of the sources before the current one.
    bytes_before: u64,
    digests: Vec<Option<u32>>,
    /// Digests that no chunk has reported yet.
    closed: Vec<u32>,
}

/// The current source.
struct Open {
    stream: Stream,
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

impl Sequential {
    pub(super) fn new(sources: Arc<[Source]>, options: ReadOptions) -> Self {
        Self {
            digests: vec![None; sources.len()],
            sources,
            options,
            source: 0,
            open: None,
            bytes_before: 0,
            closed: Vec::new(),
        }
    }

    /// A reader that resumes at `place`; the sources before it have the digests `closed`.
    pub(super) fn at(
        sources: Arc<[Source]>,
        options: ReadOptions,
        place: Place,
        closed: &[u32],
    ) -> Result<Self> {
        let mut reader = Self::new(sources, options);
        for (digest, &known) in reader.digests.iter_mut().zip(closed) {
            *digest = Some(known);
        }
        reader.source = place.source;
        let before = reader.sources.iter().take(place.source);
        reader.bytes_before = before.map(|source| source.bytes).sum();
        if let Some(source) = reader.sources.get(place.source)
            && place.offset > 0
        {
            let mut open = Open::new(source, &reader.options)?;
            if !open.stream.skip(place.offset)? {
                return Err(Error::Corpus(CorpusError::SourceChanged {
                    path: source.path.clone(),
                    expected_bytes: place.offset,
                    found_bytes: source.bytes,
                }));
            }
            (open.offset_bytes, open.crc) = (place.offset, place.crc32c);
            reader.open = Some(open);
        }
        Ok(reader)
    }

    /// Reads up to `place` and returns whether the content before it has these checksums.
    pub(super) fn pass(
        &mut self,
        place: Place,
        closed: &[u32],
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        for &expected in closed {
            if !self.pass_to(u64::MAX, tick)? || self.digests[self.source - 1] != Some(expected) {
                return Ok(false);
            }
        }
        if place.source != self.source {
            return Ok(false);
        }
        if place.offset == 0 {
            return Ok(true);
        }
        let has_source = self.pass_to(place.offset, tick)?;
        let found = self.open.as_ref().map(|open| (open.offset_bytes, open.crc));
        Ok(has_source && found == Some((place.offset, place.crc32c)))
    }

    /// Reads the current source up to `offset_bytes` or closes it if that is beyond its end.
    /// Returns false if there is no source.
    fn pass_to(
        &mut self,
        offset_bytes: u64,
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        let Some(source) = self.sources.get(self.source) else {
            return Ok(false);
        };
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(Open::new(source, &self.options)?),
        };
        let mut buffer = vec![0; self.options.chunk_bytes];
        while open.offset_bytes < offset_bytes {
            let room = (offset_bytes - open.offset_bytes).min(buffer.len() as u64) as usize;
            let n = open.stream.read(&mut buffer[..room])?;
            if n == 0 {
                self.close();
                // Closed sources are reported by chunks only.
                self.closed.clear();
                self.source += 1;
                break;
            }
            open.offset_bytes += n as u64;
            open.crc = crc32c::crc32c_append(open.crc, &buffer[..n]);
            tick(self.bytes_before + open.stream.raw_bytes())?;
        }
        Ok(true)
    }

    pub(super) fn next_chunk(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>> {
        if buffer.capacity() > 4 * self.options.chunk_bytes {
            // Do not keep the memory of a very long line for the rest of the run.
            buffer = Vec::new();
        }
        while let Some(source) = self.sources.get(self.source) {
            let open = match &mut self.open {
                Some(open) => open,
                closed => closed.insert(Open::new(source, &self.options)?),
            };
            let content = open.next(&mut buffer, &self.options)?;
            if open.at_end && open.carry.is_empty() && open.skipped_bytes.is_none() {
                self.close();
                if content.is_none() {
                    self.source += 1;
                    continue;
                }
            }
            if let Some(content) = content {
                let chunk = Chunk {
                    source: self.source,
                    buffer,
                    content,
                    max_document_bytes: self.options.max_document_bytes,
                    end: self.place(),
                    closed: std::mem::take(&mut self.closed),
                };
                self.source += usize::from(self.open.is_none());
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.bytes_before += open.stream.raw_bytes();
            let digest = open.stream.digest().unwrap_or(open.crc);
            self.digests[self.source] = Some(digest);
            self.closed.push(digest);
        }
    }

    /// Start of the next chunk; `None` inside a skipped line.
    fn place(&self) -> Option<Place> {
        match &self.open {
            None => Some(Place {
                source: self.source + 1,
                ..Place::default()
            }),
            Some(open) => open.skipped_bytes.is_none().then_some(Place {
                source: self.source,
                offset: open.offset_bytes,
                crc32c: open.crc,
            }),
        }
    }

    pub(super) fn bytes_read(&self) -> u64 {
        let open = self.open.as_ref();
        self.bytes_before + open.map_or(0, |open| open.stream.raw_bytes())
    }

    pub(super) fn digests(&self) -> &[Option<u32>] {
        &self.digests
    }
}

impl Open {
    fn new(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            stream: Stream::open(source, options)?,
            offset_bytes: source.span().start,
            crc: 0,
            carry: Vec::new(),
            skipped_bytes: None,
            at_end: false,
        })
    }

    /// The next lines, or `None` if there are no more.
    fn next(&mut self, buffer: &mut Vec<u8>, options: &ReadOptions) -> Result<Option<Content>> {
        if self.skipped_bytes.is_some() {
            return self.skip(buffer, options).map(Some);
        }
        let filled = self.fill(buffer, options)?;
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
            return self.skip(buffer, options).map(Some);
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

    fn checksum(&mut self, passed: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, passed);
    }

    /// Fills `buffer` from the carried bytes and the source: up to `chunk_bytes`, or further until
    /// one line is complete or known to be too long (then there is no complete line).
    fn fill(&mut self, buffer: &mut Vec<u8>, options: &ReadOptions) -> Result<Filled> {
        let mut len = self.carry.len();
        make_room(buffer, 0, len);
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        // After a skipped line, the carried bytes may contain complete lines.
        let mut complete = memrchr(b'\n', &buffer[..len]).map_or(0, |last| last + 1);
        let limit_bytes = options.max_document_bytes.saturating_add(BOM.len() as u64);
        while !self.at_end && (complete == 0 || len < options.chunk_bytes) {
            if complete == 0 && len as u64 > limit_bytes {
                break;
            }
            let is_long = len >= options.chunk_bytes;
            let stop = options.chunk_bytes + if is_long { len } else { 0 };
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
    fn skip(&mut self, buffer: &mut Vec<u8>, options: &ReadOptions) -> Result<Content> {
        let mut len_bytes = self.skipped_bytes.take().unwrap_or(0);
        let turn_stop = len_bytes + SKIP_TURN_BYTES;
        make_room(buffer, 0, options.chunk_bytes);
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
                    offset_bytes: self.offset_bytes,
                    len_bytes,
                    start: None,
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
