//! Finds how much of an unfinished pbin is valid, by comparing what a killed process left with its
//! checkpoints.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data_checksums::DataChecksums;
use crate::error::{Error, Result};
use crate::header::HEADER_BYTES;
use crate::lengths::{KnownLengths, LENGTH_BYTES, Lengths};
use crate::trailer::CHECKED_DATA_BYTES;
use crate::verify::{Progress, report_progress};

/// The state of a writer: identifies the documents appended so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Documents appended.
    pub documents: u64,
    /// Bytes of the documents' data.
    pub data_bytes: u64,
    /// CRC32C of the data.
    pub data_crc32c: u32,
    /// CRC32C of the documents' lengths, each encoded as a u64.
    pub lengths_crc32c: u32,
}

/// Compares the content of `data` and `lengths` with `checkpoints`, reading each byte once.
///
/// Returns the number of leading checkpoints that match, and the checksums up to the last match.
pub(crate) fn matching(
    data: &File,
    lengths: &File,
    checkpoints: &[Checkpoint],
    progress: Progress<'_>,
    dst: &Path,
) -> Result<(usize, DataChecksums, KnownLengths)> {
    let mut checksums = DataChecksums::default();
    let mut known = Lengths::NONE;
    let reader = |file, start| {
        let mut reader = BufReader::with_capacity(CHECKED_DATA_BYTES as usize, file);
        reader.seek(SeekFrom::Start(start)).map(|_| reader)
    };
    let mut data = reader(data, HEADER_BYTES).map_err(Error::io(dst))?;
    let mut lengths = reader(lengths, 0).map_err(Error::io(dst))?;
    for (i, checkpoint) in checkpoints.iter().enumerate() {
        let before = checksums.mark();
        let mut is_match = || {
            let more_documents = checkpoint.documents.checked_sub(known.num_documents);
            let more_bytes = checkpoint.data_bytes.checked_sub(checksums.num_bytes());
            let (Some(more_documents), Some(more_bytes)) = (more_documents, more_bytes) else {
                return Ok(false);
            };
            let mut crc32c = known.crc32c;
            let is_complete = feed(&mut data, more_bytes, |piece| checksums.update(piece))?
                && feed(&mut lengths, more_documents * LENGTH_BYTES, |piece| {
                    crc32c = crc32c::crc32c_append(crc32c, piece);
                })?;
            let is_same =
                checksums.total() == checkpoint.data_crc32c && crc32c == checkpoint.lengths_crc32c;
            Ok(is_complete && is_same)
        };
        if !is_match().map_err(Error::io(dst))? {
            checksums.rewind(before);
            return Ok((i, checksums, known));
        }
        known = KnownLengths {
            num_documents: checkpoint.documents,
            crc32c: checkpoint.lengths_crc32c,
        };
        report_progress(progress, checkpoint.data_bytes)?;
    }
    Ok((checkpoints.len(), checksums, known))
}

/// Passes `num_bytes` bytes of `reader` to `take`; returns false if the reader ends before.
fn feed(
    reader: &mut impl BufRead,
    num_bytes: u64,
    mut take: impl FnMut(&[u8]),
) -> std::io::Result<bool> {
    let mut rest = num_bytes;
    while rest > 0 {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(false);
        }
        let taken = piece.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        take(&piece[..taken]);
        reader.consume(taken);
        rest -= taken as u64;
    }
    Ok(true)
}
