//! Determines the valid part of an unfinished pbin by comparing the files of a killed process with
//! its checkpoints.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data_checksums::DataChecksums;
use crate::error::{Error, Result};
use crate::header::HEADER_BYTES;
use crate::spool::{NUMBER_BYTES, Spooled};
use crate::trailer::CHECKED_DATA_BYTES;
use crate::verify::{ProgressFn, report_progress};

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
    /// CRC32C of the documents' origins, each encoded as two u64: source and offset. `None` if the
    /// file does not record origins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins_crc32c: Option<u32>,
}

/// Numbers per document in the spool of origins.
pub(crate) const NUMBERS_PER_ORIGIN: u64 = 2;

/// The open files of an unfinished pbin.
pub(crate) struct Unfinished<'a> {
    pub(crate) data: &'a File,
    pub(crate) lengths: &'a File,
    pub(crate) origins: Option<&'a File>,
}

/// The valid start of an unfinished pbin.
#[derive(Debug, Default)]
pub(crate) struct Valid {
    pub(crate) checksums: DataChecksums,
    pub(crate) lengths: Spooled,
    pub(crate) origins: Spooled,
}

/// Compares the content of an unfinished pbin with `checkpoints`, reading each byte once.
///
/// Returns the number of leading checkpoints that match, and the valid content up to the last of
/// them.
pub(crate) fn matching(
    files: &Unfinished<'_>,
    checkpoints: &[Checkpoint],
    progress: ProgressFn<'_>,
    dst: &Path,
) -> Result<(usize, Valid)> {
    let mut valid = Valid::default();
    let reader = |file, start| {
        let mut reader = BufReader::with_capacity(CHECKED_DATA_BYTES as usize, file);
        reader.seek(SeekFrom::Start(start)).map(|_| reader)
    };
    let mut data = reader(files.data, HEADER_BYTES).map_err(Error::io(dst))?;
    let mut lengths = reader(files.lengths, 0).map_err(Error::io(dst))?;
    let mut origins =
        (files.origins.map(|file| reader(file, 0)).transpose()).map_err(Error::io(dst))?;
    for (i, checkpoint) in checkpoints.iter().enumerate() {
        let before = valid.checksums.mark();
        let mut compare = || {
            let Some(more_bytes) = checkpoint
                .data_bytes
                .checked_sub(valid.checksums.num_bytes())
            else {
                return Ok(None);
            };
            let is_complete = feed(&mut data, more_bytes, |piece| valid.checksums.update(piece))?;
            if !is_complete || valid.checksums.total() != checkpoint.data_crc32c {
                return Ok(None);
            }
            let documents = checkpoint.documents;
            let crc32c = Some(checkpoint.lengths_crc32c);
            let lengths = extended(&mut lengths, valid.lengths, documents, crc32c)?;
            let origins = match &mut origins {
                Some(origins) => {
                    let num_numbers = documents.saturating_mul(NUMBERS_PER_ORIGIN);
                    extended(
                        origins,
                        valid.origins,
                        num_numbers,
                        checkpoint.origins_crc32c,
                    )?
                }
                None => Some(valid.origins).filter(|_| checkpoint.origins_crc32c.is_none()),
            };
            Ok(lengths.zip(origins))
        };
        let Some((known_lengths, known_origins)) = compare().map_err(Error::io(dst))? else {
            valid.checksums.rewind(before);
            return Ok((i, valid));
        };
        (valid.lengths, valid.origins) = (known_lengths, known_origins);
        report_progress(progress, checkpoint.data_bytes)?;
    }
    Ok((checkpoints.len(), valid))
}

/// Reads a spool from the end of `known` up to `num_numbers`. `None` if the spool ends before
/// that, or if its checksum differs.
fn extended(
    spool: &mut impl BufRead,
    known: Spooled,
    num_numbers: u64,
    expected_crc32c: Option<u32>,
) -> std::io::Result<Option<Spooled>> {
    let more = num_numbers.checked_sub(known.num_numbers);
    let Some(more_bytes) = more.and_then(|more| more.checked_mul(NUMBER_BYTES)) else {
        return Ok(None);
    };
    let mut crc32c = known.crc32c;
    let is_complete = feed(spool, more_bytes, |piece| {
        crc32c = crc32c::crc32c_append(crc32c, piece);
    })?;
    let spooled = Spooled {
        num_numbers,
        crc32c,
    };
    Ok((is_complete && expected_crc32c == Some(crc32c)).then_some(spooled))
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
