//! A buffer of whole lines of one source, and the lines in it.

use memchr::memchr;

use super::Place;

/// Whole lines of one source, in order.
///
/// A chunk may hold no line at all: reading past one enormous line returns such chunks, so that
/// the caller can look for an interruption now and then.
#[derive(Debug)]
pub struct Chunk {
    pub(super) source: usize,
    pub(super) buffer: Vec<u8>,
    pub(super) content: Content,
    pub(super) max_document_bytes: u64,
    /// Where the next chunk begins; `None` inside a line that is passed over.
    pub(super) end: Option<Place>,
    /// CRC32C of the raw bytes of each source that ended since the chunk before.
    pub(super) closed: Vec<u32>,
}

/// Where the lines of a chunk are.
#[derive(Debug)]
pub(super) enum Content {
    /// Back to back in `buffer[start..stop]`; `offset_bytes` is the place of `start` in the source.
    Consecutive {
        start: usize,
        stop: usize,
        offset_bytes: u64,
    },
    /// Named one by one.
    Spans(Vec<Span>),
}

/// One line that an index names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) offset_bytes: u64,
    pub(super) len_bytes: u64,
    /// Where the line starts in the buffer; `None` if it was too long to be read.
    pub(super) start: Option<usize>,
}

/// One line of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Place of its first byte in the uncompressed source.
    pub offset_bytes: u64,
    /// Its bytes, without the `\n` and without one `\r` before it; nothing if it is oversize.
    pub bytes: &'a [u8],
    /// Its length in the source, in bytes without the `\n`.
    pub len_bytes: u64,
    /// Whether it is longer than `max_document_bytes`.
    pub is_oversize: bool,
}

impl Line<'_> {
    /// Whether there is nothing in it but the space that JSON allows around a value.
    pub fn is_blank(&self) -> bool {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        !self.is_oversize && self.bytes.iter().all(is_space)
    }
}

impl Chunk {
    /// Index of the source that the lines are from.
    pub fn source(&self) -> usize {
        self.source
    }

    /// Its lines, in order; blank ones are among them.
    pub fn lines(&self) -> Lines<'_> {
        let state = match &self.content {
            Content::Consecutive {
                start,
                stop,
                offset_bytes,
            } => State::Consecutive {
                rest: &self.buffer[*start..*stop],
                offset_bytes: *offset_bytes,
            },
            Content::Spans(spans) => State::Spans(spans.iter()),
        };
        Lines { chunk: self, state }
    }

    /// Where the next chunk begins; `None` inside a line that is passed over.
    pub fn end(&self) -> Option<Place> {
        self.end
    }

    /// CRC32C of the raw bytes of each source that ended since the chunk before, in order.
    pub fn closed(&self) -> &[u32] {
        &self.closed
    }

    /// Length of the text it holds, in bytes.
    pub fn len_bytes(&self) -> usize {
        match &self.content {
            Content::Consecutive { start, stop, .. } => stop - start,
            Content::Spans(spans) => spans
                .iter()
                .filter(|span| span.start.is_some())
                .map(|span| span.len_bytes as usize)
                .sum(),
        }
    }

    /// The buffer, to be handed to [`super::Reader::next_chunk`] again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn line<'a>(&self, offset_bytes: u64, bytes: &'a [u8]) -> Line<'a> {
        let is_oversize = bytes.len() as u64 > self.max_document_bytes;
        Line {
            offset_bytes,
            bytes: match bytes {
                _ if is_oversize => &[],
                [bytes @ .., b'\r'] => bytes,
                bytes => bytes,
            },
            len_bytes: bytes.len() as u64,
            is_oversize,
        }
    }
}

/// The lines of a chunk: what [`Chunk::lines`] returns.
#[derive(Debug)]
pub struct Lines<'a> {
    chunk: &'a Chunk,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    Consecutive { rest: &'a [u8], offset_bytes: u64 },
    Spans(std::slice::Iter<'a, Span>),
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        match &mut self.state {
            State::Consecutive { rest, offset_bytes } => {
                if rest.is_empty() {
                    return None;
                }
                let (line, tail) = match memchr(b'\n', rest) {
                    Some(end) => (&rest[..end], &rest[end + 1..]),
                    None => (*rest, &rest[rest.len()..]),
                };
                let line = self.chunk.line(*offset_bytes, line);
                *offset_bytes += (rest.len() - tail.len()) as u64;
                *rest = tail;
                Some(line)
            }
            State::Spans(spans) => {
                let span = spans.next()?;
                let Some(start) = span.start else {
                    return Some(Line {
                        offset_bytes: span.offset_bytes,
                        bytes: &[],
                        len_bytes: span.len_bytes,
                        is_oversize: true,
                    });
                };
                let bytes = &self.chunk.buffer[start..start + span.len_bytes as usize];
                Some(self.chunk.line(span.offset_bytes, bytes))
            }
        }
    }
}
