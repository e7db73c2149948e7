//! A buffer of complete lines of one source, and the records in it.

use memchr::memchr;

use crate::field::NoText;
use crate::{Body, Record, ResumePoint};

/// Complete records of one source, in order.
///
/// A chunk may be empty: the reader returns such chunks while it skips a very long line, so that
/// the caller can check for an interruption.
#[derive(Debug)]
pub struct Chunk {
    pub(crate) source: usize,
    /// Index of the input that named the source.
    pub(crate) input: usize,
    pub(crate) buffer: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) max_document_bytes: u64,
    /// Start of the next chunk; `None` inside a skipped line.
    pub(crate) end: Option<ResumePoint>,
    /// CRC32C of the raw bytes of each source that ended since the previous chunk.
    pub(crate) closed: Vec<u32>,
}

/// The positions of the records of a chunk.
#[derive(Debug)]
pub(crate) enum Content {
    /// Lines, contiguous in `buffer[start..stop]`; `offset_bytes` is the offset of `start` in the source.
    Consecutive {
        start: usize,
        stop: usize,
        offset_bytes: u64,
    },
    /// Records, listed one by one.
    Spans(Vec<Span>),
}

/// A record listed by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// As [`Record::offset`].
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
    pub(crate) content: SpanContent,
}

/// The content of a listed record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SpanContent {
    /// A line, with its start in the buffer.
    Line(usize),
    /// A text, with its start in the buffer.
    Text(usize),
    /// No text.
    NoText(NoText),
    /// A record that was too long to read.
    Oversize,
}

impl Chunk {
    /// Index of the source of the records.
    pub fn source(&self) -> usize {
        self.source
    }

    /// Index of the input that named the source.
    pub fn input(&self) -> usize {
        self.input
    }

    /// The records of the chunk in order, including blank ones.
    pub fn records(&self) -> Records<'_> {
        self.records_from(0)
    }

    /// The records of the chunk from `cursor` on.
    fn records_from(&self, cursor: usize) -> Records<'_> {
        let state = match &self.content {
            Content::Consecutive {
                start,
                stop,
                offset_bytes,
            } => State::Consecutive {
                rest: &self.buffer[start + cursor..*stop],
                offset_bytes: offset_bytes + cursor as u64,
            },
            Content::Spans(spans) => State::Spans(spans[cursor..].iter()),
        };
        Records { chunk: self, state }
    }

    /// Whether there is a record at `cursor`, which starts at 0.
    pub(crate) fn has_record(&self, cursor: usize) -> bool {
        match &self.content {
            Content::Consecutive { start, stop, .. } => start + cursor < *stop,
            Content::Spans(spans) => cursor < spans.len(),
        }
    }

    /// The record at `cursor`; advances `cursor` to the next record.
    pub(crate) fn record_at(&self, cursor: &mut usize) -> Option<Record<'_>> {
        let mut records = self.records_from(*cursor);
        let record = records.next();
        *cursor = match (&records.state, &self.content) {
            (State::Consecutive { rest, .. }, Content::Consecutive { start, stop, .. }) => {
                stop - start - rest.len()
            }
            _ => *cursor + 1,
        };
        record
    }

    /// Start of the next chunk; `None` inside a skipped line.
    pub fn end(&self) -> Option<ResumePoint> {
        self.end
    }

    /// CRC32C of the raw bytes of each source that ended since the previous chunk, in order.
    pub fn closed(&self) -> &[u32] {
        &self.closed
    }

    /// Length of the text of the chunk in bytes.
    pub fn len_bytes(&self) -> usize {
        match &self.content {
            Content::Consecutive { start, stop, .. } => stop - start,
            Content::Spans(spans) => spans
                .iter()
                .filter(|span| matches!(span.content, SpanContent::Line(_) | SpanContent::Text(_)))
                .map(|span| span.len_bytes as usize)
                .sum(),
        }
    }

    /// Returns the buffer, to be reused in [`crate::Reader::next_chunk`].
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn line<'a>(&self, offset: u64, bytes: &'a [u8]) -> Record<'a> {
        Record {
            offset,
            len_bytes: bytes.len() as u64,
            body: match bytes {
                _ if bytes.len() as u64 > self.max_document_bytes => Body::Oversize,
                [bytes @ .., b'\r'] => Body::JsonLine(bytes),
                bytes => Body::JsonLine(bytes),
            },
        }
    }
}

/// Iterator over the records of a chunk, returned by [`Chunk::records`].
#[derive(Debug)]
pub struct Records<'a> {
    chunk: &'a Chunk,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    Consecutive { rest: &'a [u8], offset_bytes: u64 },
    Spans(std::slice::Iter<'a, Span>),
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
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
                let bytes = |start| &self.chunk.buffer[start..start + span.len_bytes as usize];
                let is_oversize = span.len_bytes > self.chunk.max_document_bytes;
                let body = match span.content {
                    SpanContent::Line(start) => {
                        return Some(self.chunk.line(span.offset, bytes(start)));
                    }
                    SpanContent::NoText(reason) => Body::NoText(reason),
                    SpanContent::Text(start) if !is_oversize => Body::Text(bytes(start)),
                    SpanContent::Text(_) | SpanContent::Oversize => Body::Oversize,
                };
                Some(Record {
                    offset: span.offset,
                    len_bytes: span.len_bytes,
                    body,
                })
            }
        }
    }
}
