//! Cuts sources, read from end to end, into chunks of whole lines.

use std::sync::Arc;

use memchr::{memchr, memrchr};

use super::chunk::{Chunk, Content, Span};
use super::stream::Stream;
use super::{BOM, ReadOptions, Source};
use crate::error::Result;

/// How much of one oversize line is passed over before the caller gets a turn.
const SKIP_TURN_BYTES: u64 = 64 << 20;

/// Reads all sources in order.
pub(super) struct Sequential {
    sources: Arc<[Source]>,
    options: ReadOptions,
    source: usize,
    open: Option<Open>,
    /// Raw bytes of the sources before the open one.
    bytes_before: u64,
    digests: Vec<Option<u32>>,
}

/// The source being read.
struct Open {
    stream: Stream,
    /// Place, in the uncompressed source, of the first byte of `carry`.
    offset_bytes: u64,
    /// The beginning of a line whose end was not yet read.
    carry: Vec<u8>,
    /// Length so far of a line too long to keep.
    skipped_bytes: Option<u64>,
    at_end: bool,
}

/// How far a buffer could be filled.
struct Filled {
    /// Bytes of the buffer that hold text.
    len: usize,
    /// End of the last whole line among them; with the source at its end, all of them.
    whole: usize,
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
        }
    }

    pub(super) fn next_chunk(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>> {
        if buffer.capacity() > 4 * self.options.chunk_bytes {
            // One enormous line must not stay in memory for the rest of the run.
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
            self.digests[self.source] = Some(open.stream.digest());
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
        let has_bom = self.offset_bytes == 0 && buffer[..filled.len].starts_with(BOM);
        let start = if has_bom { BOM.len() } else { 0 };
        if filled.whole == 0 {
            // Either nothing is left, or the only line there is will not be kept.
            if filled.len == 0 {
                return Ok(None);
            }
            self.offset_bytes += start as u64;
            self.skipped_bytes = Some((filled.len - start) as u64);
            return self.skip(buffer, options).map(Some);
        }
        self.carry
            .extend_from_slice(&buffer[filled.whole..filled.len]);
        let content = Content::Consecutive {
            start,
            stop: filled.whole,
            offset_bytes: self.offset_bytes + start as u64,
        };
        self.offset_bytes += filled.whole as u64;
        Ok(Some(content))
    }

    /// Fills `buffer` from the carried bytes and the source: up to `chunk_bytes`, or further until
    /// one line is whole or known to be too long (then nothing is whole).
    fn fill(&mut self, buffer: &mut Vec<u8>, options: &ReadOptions) -> Result<Filled> {
        let mut len = self.carry.len();
        make_room(buffer, 0, len);
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        // Behind a line that was passed over, whole lines may have been carried.
        let mut whole = memrchr(b'\n', &buffer[..len]).map_or(0, |last| last + 1);
        let limit_bytes = options.max_document_bytes.saturating_add(BOM.len() as u64);
        while !self.at_end && (whole == 0 || len < options.chunk_bytes) {
            if whole == 0 && len as u64 > limit_bytes {
                break;
            }
            let is_long = len >= options.chunk_bytes;
            let stop = options.chunk_bytes + if is_long { len } else { 0 };
            make_room(buffer, len, stop);
            let n = self.stream.read(&mut buffer[len..stop])?;
            self.at_end = n == 0;
            if let Some(last) = memrchr(b'\n', &buffer[len..len + n]) {
                whole = len + last + 1;
            }
            len += n;
        }
        if self.at_end {
            whole = len;
        }
        Ok(Filled { len, whole })
    }

    /// Passes over a line that is too long, with `buffer` as a scratch space.
    fn skip(&mut self, buffer: &mut Vec<u8>, options: &ReadOptions) -> Result<Content> {
        let mut len_bytes = self.skipped_bytes.take().unwrap_or(0);
        let turn_stop = len_bytes + SKIP_TURN_BYTES;
        make_room(buffer, 0, options.chunk_bytes);
        loop {
            let n = self.stream.read(buffer)?;
            self.at_end = n == 0;
            let end = memchr(b'\n', &buffer[..n]);
            len_bytes += end.unwrap_or(n) as u64;
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

/// Makes `buffer` at least `len` bytes long, of which the first `used` are kept.
///
/// It grows by half, because a line of n bytes must not cost a buffer of 2n, and never shrinks, so
/// that a buffer in use again and again is zeroed only once.
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
