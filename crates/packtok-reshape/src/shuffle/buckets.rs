//! Shuffles data that does not fit in memory: distributes documents to buckets on disk by their
//! position in the output, then writes the buckets one after the other.
//!
//! The input is read once and in order. All buckets are in one temporary file without a name,
//! which the system removes with the process. The file grows by blocks, each of one bucket, so
//! distributing also writes in order. A bucket is a range of positions whose documents fit in
//! memory. Long documents, and the documents of a bucket that has become too large, are not
//! copied: the bucket refers to the input.

use std::path::Path;

use packtok_pbin::Origin;

use super::bucket_file::{BlockWriter, Stored};
use crate::error::{Error, Result};

/// The memory that shuffling uses, apart from the order.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Inputs of up to this size are shuffled in memory.
    pub in_memory_bytes: u64,
    /// The size that buckets have on average, at most.
    pub bucket_bytes: u64,
    /// Memory of all buffers while documents are distributed.
    pub buffer_bytes: u64,
    /// The longest document that is copied to a bucket.
    pub inline_bytes: u64,
}

impl Default for Budget {
    /// At most 300 MB: two buckets are in memory, up to half as large again as the average.
    fn default() -> Self {
        Self {
            in_memory_bytes: 256 << 20,
            bucket_bytes: 64 << 20,
            buffer_bytes: 64 << 20,
            inline_bytes: 1 << 20,
        }
    }
}

impl Budget {
    /// Whether inputs with this many bytes are shuffled in memory, where offsets have 32 bits.
    pub(super) fn fits_in_memory(&self, num_bytes: u64) -> bool {
        num_bytes <= self.in_memory_bytes.min(u32::MAX.into())
    }
}

/// The bytes of a document in an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputSpan {
    /// Index of the file.
    pub(super) file: u32,
    /// Offset of the document, in a unit that the caller chooses. It is passed back unchanged.
    pub(super) offset: u64,
    /// Bytes of the document.
    pub(super) bytes: u64,
}

/// Receives documents in their new order.
pub(crate) trait Sink {
    /// Receives the next bytes of the current document.
    fn piece(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the current document.
    fn end(&mut self, origin: Option<Origin>) -> Result<()>;
}

/// Documents that are brought into the cache together.
pub(super) const GROUP_LEN: usize = 64;

/// Reads the ends of some documents that are anywhere in memory. The processor thus waits for all
/// of them at the same time instead of one after the other.
#[inline]
pub(super) fn fetch(documents: [&[u8]; GROUP_LEN]) {
    let ends = |document: &[u8]| match document {
        [first, .., last] => first ^ last,
        [only] => *only,
        [] => 0,
    };
    let all = documents
        .iter()
        .fold(0, |all, document| all ^ ends(document));
    std::hint::black_box(all);
}

const POSITION_BYTES: usize = 4;
const LEN_BYTES: usize = 4;
const ORIGIN_BYTES: usize = 16;
const INPUT_SPAN_BYTES: usize = 20;
/// The most bytes of a record without its document.
const RECORD_BYTES: u64 = (POSITION_BYTES + LEN_BYTES + ORIGIN_BYTES + INPUT_SPAN_BYTES) as u64;
/// Marks a document that is not copied; stored as its length.
const REFERRED: u32 = u32::MAX;
const MIN_BLOCK_BYTES: usize = 4 << 10;
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Documents distributed by their position in the output.
pub(super) struct Buckets {
    writer: BlockWriter,
    /// A position shifted by this is the number of its bucket.
    shift: u32,
    num_positions: u32,
    has_origins: bool,
    inline_bytes: u64,
    max_bucket_bytes: u64,
    buckets: Vec<Bucket>,
}

#[derive(Default)]
struct Bucket {
    stored: Stored,
    num_bytes: u64,
}

impl Buckets {
    /// Buckets for `num_positions` documents with `data_bytes` bytes together, next to `output`.
    pub(super) fn create(
        output: &Path,
        (num_positions, data_bytes): (u32, u64),
        has_origins: bool,
        budget: &Budget,
    ) -> Result<Self> {
        let folder = match output.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let all_bytes = data_bytes.saturating_add(u64::from(num_positions) * RECORD_BYTES);
        let wanted = all_bytes.div_ceil(budget.bucket_bytes).max(1);
        let positions = u64::from(num_positions).div_ceil(wanted).max(1);
        // Rounds down to a power of two, because a shift is faster than a division.
        let shift = positions.ilog2();
        let num_buckets = (u64::from(num_positions) >> shift) as usize + 1;
        let block_bytes = (budget.buffer_bytes as usize / num_buckets).next_power_of_two() / 2;
        Ok(Self {
            writer: BlockWriter::create(
                folder,
                block_bytes.clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES),
            )?,
            shift,
            num_positions,
            has_origins,
            inline_bytes: budget.inline_bytes.min(u64::from(REFERRED) - 1),
            max_bucket_bytes: budget.bucket_bytes + budget.bucket_bytes / 2,
            buckets: std::iter::repeat_with(Bucket::default)
                .take(num_buckets)
                .collect(),
        })
    }

    /// Adds the document for a position. `document` is empty if the caller only has its span.
    pub(super) fn push(
        &mut self,
        position: u32,
        document: &[u8],
        span: InputSpan,
        origin: Option<Origin>,
    ) -> Result<()> {
        let bucket = &mut self.buckets[(position >> self.shift) as usize];
        let is_copied = span.bytes <= self.inline_bytes
            && bucket.num_bytes + span.bytes <= self.max_bucket_bytes;
        let buffer = &mut bucket.stored.rest;
        let before = buffer.len();
        buffer.extend_from_slice(&position.to_le_bytes());
        let len = if is_copied {
            span.bytes as u32
        } else {
            REFERRED
        };
        buffer.extend_from_slice(&len.to_le_bytes());
        if self.has_origins {
            let origin = origin.unwrap_or_default();
            buffer.extend_from_slice(&origin.source.to_le_bytes());
            buffer.extend_from_slice(&origin.offset.to_le_bytes());
        }
        if is_copied {
            buffer.extend_from_slice(document);
        } else {
            buffer.extend_from_slice(&span.file.to_le_bytes());
            buffer.extend_from_slice(&span.offset.to_le_bytes());
            buffer.extend_from_slice(&span.bytes.to_le_bytes());
        }
        bucket.num_bytes += (buffer.len() - before) as u64;
        self.writer.append_full(&mut bucket.stored)
    }

    /// Passes all documents to `sink` in the order of their positions. `refer` passes on the bytes
    /// of a document that was not copied. `check` is called after each bucket with the number of
    /// its documents.
    pub(super) fn write_with<S: Sink>(
        self,
        sink: &mut S,
        refer: &mut dyn FnMut(InputSpan, &mut S) -> Result<()>,
        check: &mut dyn FnMut(&S, u64) -> Result<()>,
    ) -> Result<()> {
        let stored: Vec<Stored> = (self.buckets.into_iter())
            .map(|bucket| bucket.stored)
            .collect();
        let numbers = 0..stored.len() as u32;
        let mut reader = self.writer.read(stored)?;
        let mut starts = Vec::new();
        for number in numbers {
            let first = number << self.shift;
            let num_positions = (self.num_positions - first).min(1 << self.shift);
            let records = reader.next()?;
            starts.clear();
            starts.resize(num_positions as usize, 0u32);
            let mut at = 0;
            while at < records.len() {
                let record = Record::at(&records, at, self.has_origins);
                starts[(record.position - first) as usize] = at as u32;
                at = record.stop;
            }
            for group in starts.chunks(GROUP_LEN) {
                let mut headers: [&[u8]; GROUP_LEN] = [&[]; GROUP_LEN];
                for (header, &start) in headers.iter_mut().zip(group) {
                    *header = &records[start as usize..][..POSITION_BYTES + LEN_BYTES];
                }
                fetch(headers);
                for &start in group {
                    let record = Record::at(&records, start as usize, self.has_origins);
                    match record.span {
                        Some(span) => refer(span, sink)?,
                        None => sink.piece(record.document)?,
                    }
                    sink.end(record.origin)?;
                }
            }
            reader.reuse(records);
            check(sink, num_positions.into())?;
        }
        Ok(())
    }
}

/// A record of a bucket.
struct Record<'a> {
    position: u32,
    origin: Option<Origin>,
    /// Empty if `span` is set.
    document: &'a [u8],
    span: Option<InputSpan>,
    /// Offset of the next record.
    stop: usize,
}

impl<'a> Record<'a> {
    /// The record at a byte of a bucket, which this module wrote.
    #[inline]
    fn at(records: &'a [u8], start: usize, has_origins: bool) -> Self {
        let mut at = start;
        let mut bytes = |len: usize| {
            let bytes = &records[at..at + len];
            at += len;
            bytes
        };
        let position = u32_of(bytes(POSITION_BYTES));
        let len = u32_of(bytes(LEN_BYTES));
        let origin = has_origins.then(|| Origin {
            source: u64_of(bytes(8)),
            offset: u64_of(bytes(8)),
        });
        let (document, span): (&[u8], _) = match len {
            REFERRED => {
                let span = InputSpan {
                    file: u32_of(bytes(4)),
                    offset: u64_of(bytes(8)),
                    bytes: u64_of(bytes(8)),
                };
                (&[], Some(span))
            }
            len => (bytes(len as usize), None),
        };
        Self {
            position,
            origin,
            document,
            span,
            stop: at,
        }
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}
