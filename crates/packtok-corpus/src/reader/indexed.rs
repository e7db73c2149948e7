//! Reads the lines of one uncompressed file that an index lists.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::bytes::decompressed::{Compression, open};
use crate::error::{Error, Result};
use crate::reader::chunk::{Chunk, Content, Span, SpanContent};
use crate::{BOM, CorpusFile, ReadOptions, ResumePoint, Source};

/// Reads the entries of an index in their order.
pub(crate) struct Indexed {
    source: Source,
    file: CorpusFile,
    entries: Vec<(u64, u64)>,
    next: usize,
    options: ReadOptions,
    bytes_read: u64,
    /// CRC32C of all bytes read.
    crc: u32,
}

impl Indexed {
    pub(crate) fn new(
        source: Source,
        entries: Vec<(u64, u64)>,
        options: ReadOptions,
    ) -> Result<Self> {
        let (file, compression) = open(&source)?;
        if compression != Compression::None {
            return Err(Error::IndexedCompressed { path: source.path });
        }
        let is_outside = |&(offset, len): &(u64, u64)| {
            offset
                .checked_add(len)
                .is_none_or(|stop| stop > source.bytes)
        };
        if let Some(entry) = entries.iter().position(is_outside) {
            let (offset_bytes, len_bytes) = entries[entry];
            return Err(Error::IndexEntryOutside {
                path: source.path,
                entry,
                offset_bytes,
                len_bytes,
                file_bytes: source.bytes,
            });
        }
        Ok(Self {
            source,
            file,
            entries,
            next: 0,
            options,
            bytes_read: 0,
            crc: 0,
        })
    }

    pub(crate) fn next_chunk(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>> {
        if self.next == self.entries.len() {
            return self.check_length().map(|()| None);
        }
        if buffer.capacity() > 4 * self.options.chunk_bytes {
            // Frees the memory of a very long line, so that it is not kept for the rest of the
            // run.
            buffer = Vec::new();
        }
        buffer.clear();
        let mut spans = Vec::new();
        let mut num_seeks = 0;
        while self.next < self.entries.len()
            && buffer.len() < self.options.chunk_bytes
            && num_seeks < MAX_SEEKS
        {
            self.read_run(&mut buffer, &mut spans)?;
            num_seeks += 1;
        }
        self.crc = crc32c::crc32c_append(self.crc, &buffer);
        Ok(Some(Chunk {
            source: 0,
            input: self.source.input,
            buffer,
            content: Content::Spans(spans),
            max_document_bytes: self.options.max_document_bytes,
            end: Some(self.resume_point()),
            closed: Vec::new(),
        }))
    }

    fn resume_point(&self) -> ResumePoint {
        ResumePoint {
            source: 0,
            offset: self.next as u64,
            crc32c: self.crc,
        }
    }

    /// Reads up to `place` and returns whether the checksum of the content before it matches.
    pub(crate) fn pass(
        &mut self,
        place: ResumePoint,
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        let mut buffer = Vec::new();
        while (self.next as u64) < place.offset {
            let Some(chunk) = self.next_chunk(std::mem::take(&mut buffer))? else {
                break;
            };
            buffer = chunk.into_buffer();
            tick(self.bytes_read)?;
        }
        Ok(self.resume_point() == place)
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Reads the next entry together with the entries that follow it directly in the file.
    fn read_run(&mut self, buffer: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<()> {
        let (offset_bytes, len_bytes) = self.entries[self.next];
        if len_bytes > self.options.max_document_bytes {
            self.next += 1;
            spans.push(Span {
                offset: offset_bytes,
                len_bytes,
                content: SpanContent::Oversize,
            });
            return Ok(());
        }
        let run = self.run_len();
        let entries = &self.entries[self.next..self.next + run];
        self.next += run;
        let stop = entries[run - 1].0 + entries[run - 1].1;
        let base = buffer.len();
        append(&mut self.file, offset_bytes..stop, buffer, &self.source)?;
        self.bytes_read += stop - offset_bytes;
        for entry in entries {
            let start = base + (entry.0 - offset_bytes) as usize;
            let has_bom = entry.0 == 0 && buffer[start..start + entry.1 as usize].starts_with(BOM);
            let skip = if has_bom { BOM.len() } else { 0 };
            spans.push(Span {
                offset: entry.0 + skip as u64,
                len_bytes: entry.1 - skip as u64,
                content: SpanContent::Line(start + skip),
            });
        }
        Ok(())
    }

    /// Number of entries, at least one, that one read of about a chunk covers. Each entry must
    /// start where the previous entry ends, or one byte (the `\n`) later.
    fn run_len(&self) -> usize {
        let entries = &self.entries[self.next..];
        let limit = entries[0].0.saturating_add(self.options.chunk_bytes as u64);
        let is_next = |pair: &&[(u64, u64)]| {
            let [before, (offset, len)] = pair else {
                return false;
            };
            let gap = offset.checked_sub(before.0 + before.1);
            gap.is_some_and(|gap| gap <= 1)
                && offset + len <= limit
                && *len <= self.options.max_document_bytes
        };
        1 + entries.windows(2).take_while(is_next).count()
    }

    fn check_length(&self) -> Result<()> {
        let found_bytes = self.file.len_bytes();
        let found_bytes = found_bytes.map_err(|cause| Error::io(&self.source.path, cause))?;
        if found_bytes != self.source.bytes {
            return Err(changed(&self.source, found_bytes));
        }
        Ok(())
    }
}

/// Maximum number of scattered entries per chunk, so that the caller regains control regularly.
const MAX_SEEKS: usize = 4096;

/// Appends the bytes `range` of `file` to `buffer`.
fn append(
    file: &mut CorpusFile,
    range: Range<u64>,
    buffer: &mut Vec<u8>,
    source: &Source,
) -> Result<()> {
    let io = |cause| Error::io(&source.path, cause);
    let expected = range.end - range.start;
    file.seek(SeekFrom::Start(range.start)).map_err(io)?;
    buffer.reserve_exact(expected as usize);
    let num_read = file.take(expected).read_to_end(buffer).map_err(io)?;
    if (num_read as u64) < expected {
        return Err(changed(source, file.len_bytes().map_err(io)?));
    }
    Ok(())
}

fn changed(source: &Source, found_bytes: u64) -> Error {
    Error::SourceChanged {
        path: source.path.clone(),
        expected_bytes: source.bytes,
        found_bytes,
    }
}
