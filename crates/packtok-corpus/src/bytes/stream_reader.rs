//! What the readers of formats share that are streams of bytes: how far they are, and the checksum up
//! to there.

use crate::bytes::decompressed::{RAW_BUFFER_BYTES, Stream};
use crate::bytes::frames::Frame;
use crate::error::Result;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::Content;
use crate::{Place, ReadOptions, Source};

/// The uncompressed bytes of a source, and how many of them belong to records that were returned.
pub(crate) struct CountedStream {
    stream: Stream,
    /// Offset of the first byte after those records, in the uncompressed source.
    offset_bytes: u64,
    /// CRC32C of the uncompressed bytes before it.
    crc: u32,
}

impl CountedStream {
    /// Opens `source` at the start of the range to read.
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            stream: Stream::open(source, options)?,
            offset_bytes: source.span().start,
            crc: 0,
        })
    }

    /// As [`Stream::read`].
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.stream.read(buffer)
    }

    /// As [`Stream::check_head`].
    pub(crate) fn check_head(&self, head: &[u8]) -> Result<()> {
        self.stream.check_head(head)
    }

    /// Offset of the first byte after the records that were returned.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Counts `passed`, the next bytes, as belonging to returned records.
    pub(crate) fn advance(&mut self, passed: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, passed);
        self.offset_bytes += passed.len() as u64;
    }

    /// Reads up to `offset` and counts what it reads; returns false if the source ends before it.
    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        let mut buffer = vec![0; RAW_BUFFER_BYTES];
        while self.offset_bytes < offset {
            let room = (offset - self.offset_bytes).min(RAW_BUFFER_BYTES as u64) as usize;
            let n = self.stream.read(&mut buffer[..room])?;
            if n == 0 {
                return Ok(false);
            }
            self.advance(&buffer[..n]);
            tick(self.stream.raw_bytes())?;
        }
        Ok(true)
    }
}

/// Divides the bytes of a [`CountedStream`] into records.
pub(crate) trait StreamReader: Send {
    /// As [`SourceReader::next`].
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>>;

    /// As [`SourceReader::is_at_end`].
    fn is_at_end(&self) -> bool;

    /// The stream.
    fn stream(&self) -> &CountedStream;

    /// The stream, to change it.
    fn stream_mut(&mut self) -> &mut CountedStream;

    /// Whether the stream is inside a record that is skipped, where reading cannot resume.
    fn is_inside_record(&self) -> bool {
        false
    }

    /// Called when reading continues at another place than the start of the source.
    fn leave_start(&mut self) {}
}

impl<R: StreamReader> SourceReader for R {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        self.next_records(buffer)
    }

    fn is_at_end(&self) -> bool {
        StreamReader::is_at_end(self)
    }

    fn place(&self, source: usize) -> Option<Place> {
        let stream = self.stream();
        (!self.is_inside_record()).then_some(Place {
            source,
            offset: stream.offset_bytes,
            crc32c: stream.crc,
        })
    }

    fn frame(&mut self) -> Option<Frame> {
        let stream = self.stream_mut();
        stream.stream.frame_before(stream.offset_bytes)
    }

    fn skip(&mut self, place: Place, frame: Option<Frame>) -> Result<bool> {
        self.leave_start();
        let stream = self.stream_mut();
        (stream.offset_bytes, stream.crc) = (place.offset, place.crc32c);
        stream.stream.skip(place.offset, frame)
    }

    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        self.leave_start();
        self.stream_mut().pass_to(offset, tick)
    }

    fn raw_bytes(&self) -> u64 {
        self.stream().stream.raw_bytes()
    }

    fn digest(&self) -> u32 {
        let stream = self.stream();
        stream.stream.digest().unwrap_or(stream.crc)
    }
}
