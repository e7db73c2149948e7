//! Reads one source record by record, and resumes at any record.

use crate::bytes::frames::Frame;
use crate::error::{Error, Result};
use crate::formats::open;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::Chunk;
use crate::{Body, Format, ReadOptions, Record, ResumePoint, Source};

/// The position of a record: the last resume point before it, and the number of records between
/// the resume point and the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordPosition {
    /// Offset and checksum as in [`ResumePoint`]; `None` is the start of the source.
    pub place: Option<(u64, u32)>,
    /// For a compressed source, the frame from which decompression reaches `place`.
    pub frame: Option<Frame>,
    /// Number of records between `place` and the record.
    pub records: u64,
    /// CRC32C of the last of those records, if it has content.
    pub crc32c: u32,
}

/// Reads one source.
pub struct RecordReader {
    reader: Box<dyn SourceReader>,
    max_document_bytes: u64,
    chunk: Option<Chunk>,
    /// Cursor of the next record in the chunk.
    cursor: usize,
    /// Cursor of the last record in the chunk.
    last: Option<usize>,
    position: RecordPosition,
}

impl RecordReader {
    /// Opens `source` at `position`.
    ///
    /// # Errors
    /// The source cannot be read, ends before the position, or its records have changed.
    pub fn open(source: &Source, options: &ReadOptions, position: RecordPosition) -> Result<Self> {
        let mut this = Self {
            reader: open_at(source, options, position)?,
            max_document_bytes: options.max_document_bytes,
            chunk: None,
            cursor: 0,
            last: None,
            position: RecordPosition {
                records: 0,
                crc32c: 0,
                ..position
            },
        };
        for _ in 0..position.records {
            if this.next_record()?.is_none() {
                return Err(ended_early(source, position.place));
            }
        }
        if this.position().crc32c == position.crc32c {
            Ok(this)
        } else {
            Err(Error::OtherContent {
                path: source.path.clone(),
            })
        }
    }

    /// The position of the next record.
    pub fn position(&self) -> RecordPosition {
        let chunk = self.chunk.as_ref().zip(self.last);
        let last = chunk.and_then(|(chunk, mut cursor)| chunk.record_at(&mut cursor));
        RecordPosition {
            crc32c: match last.map(|record| record.body) {
                Some(Body::JsonLine(content) | Body::Text(content)) => crc32c::crc32c(content),
                _ => 0,
            },
            ..self.position
        }
    }

    /// The next record; `None` at the end of the source.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        while !self
            .chunk
            .as_ref()
            .is_some_and(|chunk| chunk.has_record(self.cursor))
        {
            if !self.read_chunk()? {
                return Ok(None);
            }
        }
        self.position.records += 1;
        self.last = Some(self.cursor);
        let chunk = self.chunk.as_ref();
        Ok(chunk.and_then(|chunk| chunk.record_at(&mut self.cursor)))
    }

    /// Reads the next chunk; false at the end of the source.
    fn read_chunk(&mut self) -> Result<bool> {
        let mut buffer = self
            .chunk
            .take()
            .map(Chunk::into_buffer)
            .unwrap_or_default();
        if self.reader.is_at_end() {
            return Ok(false);
        }
        let is_started = self.position.place.is_some() || self.position.records > 0;
        if let Some(place) = self.reader.resume_point(0)
            && is_started
        {
            self.position = RecordPosition {
                place: Some((place.offset, place.crc32c)),
                frame: self.reader.frame(),
                records: 0,
                crc32c: 0,
            };
        }
        self.cursor = 0;
        self.last = None;
        let Some(content) = self.reader.next(&mut buffer)? else {
            return Ok(false);
        };
        self.chunk = Some(Chunk {
            source: 0,
            input: 0,
            buffer,
            content,
            max_document_bytes: self.max_document_bytes,
            end: None,
            closed: Vec::new(),
        });
        Ok(true)
    }
}

/// A reader of `source` from a resume point, or from the start of the source.
fn open_at(
    source: &Source,
    options: &ReadOptions,
    position: RecordPosition,
) -> Result<Box<dyn SourceReader>> {
    let RecordPosition { place, frame, .. } = position;
    let Some((offset, crc32c)) = place else {
        return open(source, options);
    };
    if source.range.is_some() && source.format == Format::Jsonl {
        let span = source.span();
        if !(span.start..=span.end).contains(&offset) {
            return Err(ended_early(source, place));
        }
        // Opens only the rest of the range: uncompressed lines can be read from the start of any
        // line.
        let rest = Source {
            range: Some(offset..source.span().end),
            ..source.clone()
        };
        return open(&rest, options);
    }
    let mut reader = open(source, options)?;
    let place_in_source = ResumePoint {
        source: 0,
        offset,
        crc32c,
    };
    if offset == 0 || reader.skip(place_in_source, frame)? {
        Ok(reader)
    } else {
        Err(ended_early(source, place))
    }
}

fn ended_early(source: &Source, place: Option<(u64, u32)>) -> Error {
    Error::SourceChanged {
        path: source.path.clone(),
        expected_bytes: place.map_or(0, |(offset, _)| offset),
        found_bytes: source.bytes,
    }
}
