//! The position and the checksum of a source that is read as a stream of bytes, for the readers of
//! byte-stream formats.

use crate::bytes::decompressed::{Decompressed, RAW_BUFFER_BYTES};
use crate::bytes::frames::Frame;
use crate::error::Result;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::Content;
use crate::{ReadOptions, ResumePoint, Source};

/// The uncompressed bytes of a source, and the number of bytes in the records that were returned.
pub(crate) struct CountedBytes {
    decompressed: Decompressed,
    /// Offset in the uncompressed source of the first byte after the returned records.
    offset_bytes: u64,
    /// CRC32C of the uncompressed bytes before `offset_bytes`.
    crc: u32,
}

impl CountedBytes {
    /// Opens `source` at the start of the range to read.
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            decompressed: Decompressed::open(source, options)?,
            offset_bytes: source.span().start,
            crc: 0,
        })
    }

    /// As [`Decompressed::read`].
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.decompressed.read(buffer)
    }

    /// As [`Decompressed::check_head`].
    pub(crate) fn check_head(&self, head: &[u8]) -> Result<()> {
        self.decompressed.check_head(head)
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

    /// Moves to `offset`, as [`CountedBytes::pass_to`], and does not read bytes that are not
    /// compressed. The checksum is then not that of the bytes before.
    #[cfg(feature = "tables")]
    pub(crate) fn move_to(&mut self, offset: u64) -> Result<bool> {
        if self.decompressed.is_compressed() {
            return self.pass_to(offset, &mut |_| Ok(()));
        }
        self.offset_bytes = offset;
        self.decompressed.skip(offset, None)
    }

    /// Reads and counts the bytes up to `offset`; returns false if the source ends before it.
    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        let mut buffer = vec![0; RAW_BUFFER_BYTES];
        while self.offset_bytes < offset {
            let room = (offset - self.offset_bytes).min(RAW_BUFFER_BYTES as u64) as usize;
            let n = self.decompressed.read(&mut buffer[..room])?;
            if n == 0 {
                return Ok(false);
            }
            self.advance(&buffer[..n]);
            tick(self.decompressed.raw_bytes())?;
        }
        Ok(true)
    }
}

/// Divides the bytes of a [`CountedBytes`] into records.
pub(crate) trait BytesReader: Send {
    /// As [`SourceReader::next`].
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>>;

    /// As [`SourceReader::is_at_end`].
    fn is_at_end(&self) -> bool;

    /// The bytes.
    fn bytes(&self) -> &CountedBytes;

    /// The bytes, to read on.
    fn bytes_mut(&mut self) -> &mut CountedBytes;

    /// Whether the position is inside a skipped record, where reading cannot resume.
    fn is_inside_record(&self) -> bool {
        false
    }

    /// Called when reading continues at a position other than the start of the source.
    fn leave_start(&mut self) {}
}

impl<R: BytesReader> SourceReader for R {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        self.next_records(buffer)
    }

    fn is_at_end(&self) -> bool {
        BytesReader::is_at_end(self)
    }

    fn resume_point(&self, source: usize) -> Option<ResumePoint> {
        let bytes = self.bytes();
        (!self.is_inside_record()).then_some(ResumePoint {
            source,
            offset: bytes.offset_bytes,
            crc32c: bytes.crc,
        })
    }

    fn frame(&mut self) -> Option<Frame> {
        let bytes = self.bytes_mut();
        bytes.decompressed.frame_before(bytes.offset_bytes)
    }

    fn skip(&mut self, place: ResumePoint, frame: Option<Frame>) -> Result<bool> {
        self.leave_start();
        let bytes = self.bytes_mut();
        (bytes.offset_bytes, bytes.crc) = (place.offset, place.crc32c);
        bytes.decompressed.skip(place.offset, frame)
    }

    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        self.leave_start();
        self.bytes_mut().pass_to(offset, tick)
    }

    fn raw_bytes(&self) -> u64 {
        self.bytes().decompressed.raw_bytes()
    }

    fn digest(&self) -> u32 {
        let bytes = self.bytes();
        bytes.decompressed.digest().unwrap_or(bytes.crc)
    }
}
