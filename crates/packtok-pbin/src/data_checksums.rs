//! Checksums of a growing data segment, per piece and in total.

use crate::checksum::with_full_piece;
use crate::trailer::CHECKED_DATA_BYTES;

/// CRC32C of every piece of the data so far. Takes four bytes of memory per MiB of data.
#[derive(Debug, Default)]
pub(crate) struct DataChecksums {
    full_pieces: Vec<u32>,
    end: ChecksumsEnd,
}

/// The state of the checksums at the end of the data so far.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ChecksumsEnd {
    num_full_pieces: usize,
    /// Checksum of all full pieces together.
    total: u32,
    /// Checksum of the current, incomplete piece.
    last: u32,
    last_bytes: u64,
}

impl ChecksumsEnd {
    pub(crate) fn combined(&self) -> u32 {
        crc32c::crc32c_combine(self.total, self.last, self.last_bytes as usize)
    }
}

impl DataChecksums {
    pub(crate) fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let end = &mut self.end;
            let room = (CHECKED_DATA_BYTES - end.last_bytes).min(data.len() as u64);
            let (piece, rest) = data.split_at(room as usize);
            end.last = crc32c::crc32c_append(end.last, piece);
            end.last_bytes += room;
            if end.last_bytes == CHECKED_DATA_BYTES {
                self.full_pieces.push(end.last);
                *end = ChecksumsEnd {
                    num_full_pieces: self.full_pieces.len(),
                    total: with_full_piece(end.total, end.last),
                    ..ChecksumsEnd::default()
                };
            }
            data = rest;
        }
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = u32> {
        let last = (self.end.last_bytes > 0).then_some(self.end.last);
        self.full_pieces.iter().copied().chain(last)
    }

    pub(crate) fn total(&self) -> u32 {
        self.end.combined()
    }

    pub(crate) fn num_bytes(&self) -> u64 {
        self.end.num_full_pieces as u64 * CHECKED_DATA_BYTES + self.end.last_bytes
    }

    pub(crate) fn mark(&self) -> ChecksumsEnd {
        self.end
    }

    /// Discards everything after `mark`.
    pub(crate) fn rewind(&mut self, mark: ChecksumsEnd) {
        self.full_pieces.truncate(mark.num_full_pieces);
        self.end = mark;
    }
}
