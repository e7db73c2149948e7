//! Writes documents of token files as an NPY file.

use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;

use packtok_formats::npy::{DocumentsWriter, IdType, NpyFile};
use packtok_formats::{TokenFile, TokenRead};
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{Replace, TempFile};

use super::parts::check_vocabulary;
use crate::error::{Error, Result};

/// Tokens that are copied between two reports of progress.
const STEP_TOKENS: u64 = 1 << 20;

/// A published NPY file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpyWritten {
    /// Number of documents written.
    pub documents: u64,
    /// Number of tokens written.
    pub tokens: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// CRC32C of all bytes of the file.
    pub crc32c: u32,
}

impl NpyWritten {
    /// What an existing file has.
    pub(crate) fn of(file: &NpyFile) -> Self {
        Self {
            documents: file.num_documents(),
            tokens: file.num_tokens(),
            file_bytes: file.file_bytes(),
            crc32c: file.crc32c(),
        }
    }
}

/// Writes the documents of `files` with the given numbers to `dst` and publishes `dst`. Ids must be below
/// `vocab_size`, if that is given.
///
/// # Errors
/// A file is damaged; an id, a length or the number of documents does not fit in the type of the
/// ids; or the disk is full. In these cases, `dst` does not exist or is unchanged.
pub fn write_npy(
    files: &[(&TokenFile, Range<u64>)],
    dst: &Path,
    id_type: IdType,
    vocab_size: Option<u64>,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<NpyWritten> {
    let tokens = files
        .iter()
        .map(|(file, documents)| tokens_of(file, documents));
    let tokens = tokens.collect::<Result<Vec<_>>>()?;
    let num_tokens = tokens.iter().map(|tokens| tokens.end - tokens.start).sum();
    let num_documents = (files.iter())
        .map(|(_, documents)| documents.end - documents.start)
        .sum();
    // The writer has its own buffer. This `BufWriter` only adapts the type and does not buffer.
    let out = BufWriter::with_capacity(0, TempFile::create(dst)?);
    let mut writer = DocumentsWriter::start(out, dst, id_type, num_documents, num_tokens)?;
    for (file, documents) in files {
        for document in documents.clone() {
            let tokens = file.document_tokens(document)?;
            writer.push_length(tokens.end - tokens.start)?;
        }
    }
    let mut copied = 0;
    for ((file, _), tokens) in files.iter().zip(&tokens) {
        let width = file.width();
        let mut start = tokens.start;
        while start < tokens.end {
            let stop = (start + STEP_TOKENS).min(tokens.end);
            if let Some(vocab_size) = vocab_size {
                check_vocabulary(file, start..stop, vocab_size)?;
            }
            writer.push_ids(file.tokens(start..stop)?, width)?;
            copied += stop - start;
            start = stop;
            let progress = Progress {
                bytes_read: copied * width.bytes(),
                total_bytes: num_tokens * width.bytes(),
                tokens: copied,
                ..Progress::default()
            };
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
    }
    let (out, summary) = writer.finish()?;
    let file = out
        .into_inner()
        .map_err(|error| Error::io(dst)(error.into_error()))?;
    file.publish(replace)?;
    Ok(NpyWritten {
        documents: num_documents,
        tokens: num_tokens,
        file_bytes: summary.file_bytes,
        crc32c: summary.crc32c,
    })
}

/// The tokens of consecutive documents.
fn tokens_of(file: &TokenFile, documents: &Range<u64>) -> Result<Range<u64>> {
    if documents.is_empty() {
        return Ok(0..0);
    }
    let first = file.document_tokens(documents.start)?;
    let last = file.document_tokens(documents.end - 1)?;
    Ok(first.start..last.end)
}
