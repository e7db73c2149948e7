//! The one type that reads a corpus, whether from end to end or as an index says.

use std::sync::Arc;

use super::chunk::Chunk;
use super::indexed::Indexed;
use super::sequential::Sequential;
use super::{ReadOptions, Source};
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
