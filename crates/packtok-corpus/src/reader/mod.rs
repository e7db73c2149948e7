//! Reads the sources of a corpus as chunks of records, in order or by an index.

pub(crate) mod chunk;
pub(crate) mod cut;
pub(crate) mod digest;
#[cfg(feature = "tables")]
pub(crate) mod excerpt;
mod indexed;
pub mod pipeline;
pub(crate) mod record_reader;
mod sequential;

use std::sync::Arc;

use crate::error::Result;
use crate::reader::chunk::Chunk;
use crate::reader::indexed::Indexed;
use crate::reader::sequential::Sequential;
use crate::{ReadOptions, ResumePoint, Source};

/// Divides sources into chunks of complete records, in order.
pub struct Reader(Kind);

enum Kind {
    Sequential(Sequential),
    Indexed(Indexed),
}

impl Reader {
    /// Reads all records of all sources.
    pub fn new(sources: impl Into<Arc<[Source]>>, options: ReadOptions) -> Self {
        Self(Kind::Sequential(Sequential::new(sources.into(), options)))
    }

    /// Reads the lines of one uncompressed file that `entries` lists, in the order of `entries`.
    ///
    /// An entry is a byte offset and a length in bytes without the `\n`.
    ///
    /// # Errors
    /// The source is compressed (an index counts bytes of the uncompressed file) or cannot be
    /// opened, or an entry exceeds the file.
    pub fn indexed(source: Source, entries: Vec<(u64, u64)>, options: ReadOptions) -> Result<Self> {
        Ok(Self(Kind::Indexed(Indexed::new(source, entries, options)?)))
    }

    /// A reader that resumes at `place`, which an earlier reader returned.
    ///
    /// `closed` contains the CRC32C of the raw bytes of the sources before `place`. Compressed
    /// sources are decompressed from their start.
    ///
    /// # Errors
    /// The source cannot be read or ends before `place`.
    pub fn at(
        sources: impl Into<Arc<[Source]>>,
        options: ReadOptions,
        place: ResumePoint,
        closed: &[u32],
    ) -> Result<Self> {
        let reader = Sequential::at(sources.into(), options, place, closed)?;
        Ok(Self(Kind::Sequential(reader)))
    }

    /// Reads up to `place` without parsing lines, and returns whether the content has the given
    /// checksums: `closed` for the sources that end before `place`, and the checksum of `place`
    /// for the start of its own source.
    ///
    /// Lines can be read only before the first call, or after a call that returned true. `tick` is
    /// called regularly with the bytes read so far; its error ends the reading.
    ///
    /// # Errors
    /// A source cannot be read; or the error of `tick`.
    pub fn pass(
        &mut self,
        place: ResumePoint,
        closed: &[u32],
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        match &mut self.0 {
            Kind::Sequential(reader) => reader.pass(place, closed, tick),
            Kind::Indexed(reader) => reader.pass(place, tick),
        }
    }

    /// The next chunk, or `None` after the last one. `buffer` is overwritten and becomes part of
    /// the chunk; [`Chunk::into_buffer`] returns it.
    ///
    /// # Errors
    /// A source cannot be read, is damaged or its length changed. The reader must not be used
    /// afterwards.
    pub fn next_chunk(&mut self, buffer: Vec<u8>) -> Result<Option<Chunk>> {
        match &mut self.0 {
            Kind::Sequential(reader) => reader.next_chunk(buffer),
            Kind::Indexed(reader) => reader.next_chunk(buffer),
        }
    }

    /// Raw bytes of the sources read from disk so far.
    pub fn bytes_read(&self) -> u64 {
        match &self.0 {
            Kind::Sequential(reader) => reader.bytes_read(),
            Kind::Indexed(reader) => reader.bytes_read(),
        }
    }

    /// CRC32C of the raw bytes of each source. `None` until the source was read to its end, and
    /// always `None` for a source read by an index.
    pub fn digests(&self) -> &[Option<u32>] {
        match &self.0 {
            Kind::Sequential(reader) => reader.digests(),
            Kind::Indexed(_) => &[None],
        }
    }
}
