//! Reads plain text: a file is one document, or several with a separator between them.

use memchr::memmem::Finder;

use crate::bytes::counted::{BytesReader, CountedBytes};
use crate::detect::recognize;
use crate::error::Result;
use crate::formats::source_reader::SKIP_TURN_BYTES;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{BOM, ReadOptions, Source};

/// The bytes of a separator. `\n`, `\r`, `\t` and `\\` are escapes, because a shell passes them on
/// unchanged. Any other backslash is literal.
pub fn unescaped(separator: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(separator.len());
    let mut rest = separator.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match rest {
            [b'\\', b'n', after @ ..] => (b'\n', after),
            [b'\\', b'r', after @ ..] => (b'\r', after),
            [b'\\', b't', after @ ..] => (b'\t', after),
            [b'\\', b'\\', after @ ..] => (b'\\', after),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// Reads the documents of one plain text.
pub(crate) struct Text {
    /// Counts the bytes before `carry`.
    bytes: CountedBytes,
    options: ReadOptions,
    separator: Option<Finder<'static>>,
    /// Bytes that were read but belong to no record that was returned.
    carry: Vec<u8>,
    /// Length of the skipped part of a document that is too long to keep; the part ends before
    /// `carry`.
    skipped_bytes: Option<u64>,
    /// Whether no record has been returned yet. Without a separator, even an empty file is one
    /// document.
    is_untouched: bool,
    at_end: bool,
}

impl Text {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let separator = options.text_separator.as_deref();
        Ok(Self {
            bytes: CountedBytes::open(source, options)?,
            separator: separator.map(|separator| Finder::new(separator).into_owned()),
            options: options.clone(),
            carry: Vec::new(),
            skipped_bytes: None,
            is_untouched: true,
            at_end: false,
        })
    }

    /// Appends more bytes of the file to `buffer`, or records that the file has ended.
    fn read_more(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let len = buffer.len();
        // Grows the buffer by at least half, so that a long document is copied only a few times.
        let room = self.options.chunk_bytes.max(len / 2);
        buffer.reserve_exact(room);
        buffer.resize(len + room, 0);
        let n = self.bytes.read(&mut buffer[len..])?;
        buffer.truncate(len + n);
        self.at_end = n == 0;
        Ok(())
    }

    /// Reads the start of the file into `carry`, checks it and drops a byte order mark.
    fn begin(&mut self) -> Result<()> {
        let mut head = Vec::new();
        while !self.at_end && head.len() < recognize::HEAD_BYTES {
            self.read_more(&mut head)?;
        }
        self.bytes.check_head(&head)?;
        if head.starts_with(BOM) {
            self.bytes.advance(BOM);
            head.drain(..BOM.len());
        }
        self.carry = head;
        Ok(())
    }

    fn separator_len(&self) -> usize {
        self.separator
            .as_ref()
            .map_or(0, |separator| separator.needle().len())
    }

    /// Number of bytes at the end of `buffer` that may be the start of a separator.
    fn possible_start(&self, buffer: &[u8]) -> usize {
        self.separator_len().saturating_sub(1).min(buffer.len())
    }

    /// Continues to skip a document that is too long, with `buffer` as scratch space.
    fn skip_document(&mut self, buffer: &mut Vec<u8>) -> Result<Content> {
        let mut len_bytes = self.skipped_bytes.take().unwrap_or(0);
        let turn_stop = len_bytes + SKIP_TURN_BYTES;
        let offset = self.bytes.offset_bytes() - len_bytes;
        loop {
            buffer.clear();
            buffer.append(&mut self.carry);
            self.read_more(buffer)?;
            let separator_at = self
                .separator
                .as_ref()
                .and_then(|separator| separator.find(buffer));
            let stop = match separator_at {
                Some(stop) => stop,
                None if self.at_end => buffer.len(),
                None => buffer.len() - self.possible_start(buffer),
            };
            len_bytes += stop as u64;
            let passed = stop + separator_at.map_or(0, |_| self.separator_len());
            self.bytes.advance(&buffer[..passed]);
            self.carry.extend_from_slice(&buffer[passed..]);
            if separator_at.is_some() || self.at_end {
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

    /// Lists the documents of `buffer` that end with a separator. `start` is the start of the
    /// current document, and no separator starts before `searched`; the call advances both.
    fn list_complete(
        &self,
        buffer: &[u8],
        start: &mut usize,
        searched: &mut usize,
        spans: &mut Vec<Span>,
    ) {
        let Some(separator) = &self.separator else {
            return;
        };
        while let Some(at) = separator.find(&buffer[*searched..]) {
            let stop = *searched + at;
            spans.push(self.span(*start, stop));
            *start = stop + separator.needle().len();
            *searched = *start;
        }
        *searched = (*start).max(buffer.len() - self.possible_start(buffer));
    }

    /// The document at `start..stop` of the buffer.
    fn span(&self, start: usize, stop: usize) -> Span {
        Span {
            offset: self.bytes.offset_bytes() + start as u64,
            len_bytes: (stop - start) as u64,
            content: SpanContent::Text(start),
        }
    }
}

impl BytesReader for Text {
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        if self.skipped_bytes.is_some() {
            return self.skip_document(buffer).map(Some);
        }
        if self.bytes.offset_bytes() == 0 {
            self.begin()?;
        }
        buffer.clear();
        buffer.append(&mut self.carry);
        let (mut start, mut searched) = (0, 0);
        let mut spans = Vec::new();
        loop {
            self.list_complete(buffer, &mut start, &mut searched, &mut spans);
            let rest = buffer.len() - start;
            if self.at_end {
                let is_whole_file = self.separator.is_none() && self.is_untouched;
                if rest > 0 || is_whole_file {
                    spans.push(self.span(start, buffer.len()));
                    start = buffer.len();
                }
                break;
            }
            if !spans.is_empty() && buffer.len() >= self.options.chunk_bytes {
                break;
            }
            // The rest may contain the start of a separator.
            let limit = self
                .options
                .max_document_bytes
                .saturating_add(self.separator_len() as u64);
            if spans.is_empty() && rest as u64 > limit {
                self.is_untouched = false;
                let passed = buffer.len() - self.possible_start(buffer);
                self.bytes.advance(&buffer[..passed]);
                self.carry.extend_from_slice(&buffer[passed..]);
                self.skipped_bytes = Some(passed as u64);
                return self.skip_document(buffer).map(Some);
            }
            self.read_more(buffer)?;
        }
        self.is_untouched = false;
        self.bytes.advance(&buffer[..start]);
        self.carry.extend_from_slice(&buffer[start..]);
        Ok((!spans.is_empty()).then_some(Content::Spans(spans)))
    }

    fn is_at_end(&self) -> bool {
        self.at_end && self.carry.is_empty() && self.skipped_bytes.is_none() && !self.is_untouched
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

    fn leave_start(&mut self) {
        self.is_untouched = false;
    }
}
