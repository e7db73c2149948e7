//! The one type that reads a corpus, whether from end to end or as an index says.

use std::sync::Arc;

use super::chunk::Chunk;
use super::indexed::Indexed;
use super::sequential::Sequential;
use super::{Place, ReadOptions, Source};
use crate::error::Result;

/// Cuts sources into chunks of whole lines, in order.
pub struct Reader(Kind);

enum Kind {
    Sequential(Sequential),
    Indexed(Indexed),
}

impl Reader {
    /// A reader of all lines of all sources.
    pub fn new(sources: impl Into<Arc<[Source]>>, options: ReadOptions) -> Self {
        Self(Kind::Sequential(Sequential::new(sources.into(), options)))
    }

    /// A reader of those lines of one plain file that `entries` names, in the order of `entries`.
    ///
    /// An entry is a byte offset and a length in bytes without the `\n`.
    ///
    /// # Errors
    /// The source is compressed (an index counts bytes of the plain file), cannot be opened, or an
    /// entry reaches beyond its end.
    pub fn indexed(source: Source, entries: Vec<(u64, u64)>, options: ReadOptions) -> Result<Self> {
        Ok(Self(Kind::Indexed(Indexed::new(source, entries, options)?)))
    }

    /// A reader of what lies behind `place`, for one that has come that far before.
    ///
    /// `closed` holds the CRC32C of the raw bytes of the sources before it. Compressed sources are decompressed
    /// from their start.
    ///
    /// # Errors
    /// The source cannot be read or ends before `place`.
    pub fn at(
        sources: impl Into<Arc<[Source]>>,
        options: ReadOptions,
        place: Place,
        closed: &[u32],
    ) -> Result<Self> {
        let reader = Sequential::at(sources.into(), options, place, closed)?;
        Ok(Self(Kind::Sequential(reader)))
    }

    /// Reads on to `place` without a look at the lines, and says whether what was read has the given checksums:
    /// `closed` those of the sources that end before it, `place` that of the beginning of its own.
    ///
    /// Lines may be asked for only before the first call, or after one that said yes. `tick` is called now and
    /// then with the bytes read so far; its error ends the reading.
    ///
    /// # Errors
    /// A source cannot be read; or what `tick` returned.
    pub fn pass(
        &mut self,
        place: Place,
        closed: &[u32],
        tick: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<bool> {
        match &mut self.0 {
            Kind::Sequential(reader) => reader.pass(place, closed, tick),
            Kind::Indexed(reader) => reader.pass(place, tick),
        }
    }

    /// The next chunk, or `None` after the last one; `buffer` is overwritten and becomes the
    /// chunk's, and [`Chunk::into_buffer`] gives it back.
    ///
    /// # Errors
    /// A source cannot be read, is damaged or has another length than it had at the start. The
    /// reader must not be used afterwards.
    pub fn next_chunk(&mut self, buffer: Vec<u8>) -> Result<Option<Chunk>> {
        match &mut self.0 {
            Kind::Sequential(reader) => reader.next_chunk(buffer),
            Kind::Indexed(reader) => reader.next_chunk(buffer),
        }
    }

    /// Bytes read from the disk so far, of the sources as they lie there.
    pub fn bytes_read(&self) -> u64 {
        match &self.0 {
            Kind::Sequential(reader) => reader.bytes_read(),
            Kind::Indexed(reader) => reader.bytes_read(),
        }
    }

    /// CRC32C of the raw bytes of each source, known once it was read to its end; never known for
    /// a source read by an index.
    pub fn digests(&self) -> &[Option<u32>] {
        match &self.0 {
            Kind::Sequential(reader) => reader.digests(),
            Kind::Indexed(_) => &[None],
        }
    }
}
