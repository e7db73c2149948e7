//! Reads one source record by record, and resumes at any record.

use super::chunk::Chunk;
use super::open::open;
use super::source_reader::SourceReader;
use super::{CorpusError, Place, ReadOptions, Record, Source};
use crate::error::{Error, Result};

/// The position of a record: the last place before it where reading can resume, and how many records
/// lie between. [`Place::source`] is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    /// Offset as in [`Place`].
    pub(crate) offset: u64,
    /// Checksum as in [`Place`].
    pub(crate) crc32c: u32,
    /// Records between.
    pub(crate) records: u64,
}

/// Reads one source.
pub(crate) struct RecordReader {
    reader: Box<dyn SourceReader>,
    max_document_bytes: u64,
    chunk: Option<Chunk>,
    /// Where in the chunk the next record is.
    cursor: usize,
    position: RecordPosition,
}

impl RecordReader {
    /// Opens `source` at `position`.
    ///
    /// # Errors
    /// It cannot be read, or ends before the position.
    pub(crate) fn open(
        source: &Source,
        options: &ReadOptions,
        position: RecordPosition,
    ) -> Result<Self> {
        let place = Place {
            source: 0,
            offset: position.offset,
            crc32c: position.crc32c,
        };
        let is_at_start = position.offset == source.span().start && position.records == 0;
        let mut reader = open(source, options)?;
        if position.offset > 0 && !is_at_start && !reader.skip(place)? {
            return Err(ended_early(source, position));
        }
        let mut this = Self {
            reader,
            max_document_bytes: options.max_document_bytes,
            chunk: None,
            cursor: 0,
            position: RecordPosition {
                records: 0,
                ..position
            },
        };
        for _ in 0..position.records {
            if this.next()?.is_none() {
                return Err(ended_early(source, position));
            }
        }
        Ok(this)
    }

    /// The position of the next record.
    pub(crate) fn position(&self) -> RecordPosition {
        self.position
    }

    /// The next record; `None` at the end of the source.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>> {
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
        if let Some(place) = self.reader.place(0) {
            self.position = RecordPosition {
                offset: place.offset,
                crc32c: place.crc32c,
                records: 0,
            };
        }
        self.cursor = 0;
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

fn ended_early(source: &Source, position: RecordPosition) -> Error {
    Error::Corpus(CorpusError::SourceChanged {
        path: source.path.clone(),
        expected_bytes: position.offset,
        found_bytes: source.bytes,
    })
}
