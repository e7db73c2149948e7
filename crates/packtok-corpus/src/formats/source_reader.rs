//! The interface of the reader of one source, for all formats.

use crate::ResumePoint;
use crate::bytes::frames::Frame;
use crate::error::Result;
use crate::reader::chunk::Content;

/// Bytes of an oversize record skipped before the caller regains control.
pub(crate) const SKIP_TURN_BYTES: u64 = 64 << 20;

/// Reads one source from its start to its end.
pub(crate) trait SourceReader: Send {
    /// Overwrites `buffer` with the next records and returns their positions; `None` at the end.
    ///
    /// While the reader skips a very long record, it returns no records, so that the caller
    /// regains control.
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>>;

    /// Whether all records were returned.
    fn is_at_end(&self) -> bool;

    /// The start of the next record, with `source` as its source; `None` if reading cannot resume
    /// there.
    fn resume_point(&self, source: usize) -> Option<ResumePoint>;

    /// The last frame of a compressed source that starts at or before the next record.
    fn frame(&mut self) -> Option<Frame> {
        None
    }

    /// Continues at `place`, which an earlier reader returned; returns false if the source is
    /// shorter. Must be called before any read. If `frame`, which the earlier reader returned, is
    /// given, the content before the frame is not decompressed.
    fn skip(&mut self, place: ResumePoint, frame: Option<Frame>) -> Result<bool>;

    /// Reads up to `offset`, an offset of a [`ResumePoint`], without returning records. Returns
    /// false if the source ends before `offset`.
    ///
    /// `tick` is called regularly with the raw bytes read so far; its error ends the reading.
    fn pass_to(&mut self, offset: u64, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool>;

    /// Raw bytes read so far.
    fn raw_bytes(&self) -> u64;

    /// CRC32C of the raw bytes, once all are read.
    fn digest(&self) -> u32;
}
