//! Writes the documents of a token file as a pbin.

use std::fs::File;
use std::path::Path;

use packtok_formats::TokenFile;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{Counts, Metadata, Reader, Replace, Source, TempFile, TokenWidth, Writer};

use super::loss_masks::LossMasks;
use super::meaning::Meaning;
use super::parts::{check_vocabulary, convert_width};
use crate::error::{Error, Result};

/// Bytes that are copied between two reports of progress.
const STEP_BYTES: u64 = 64 << 20;
/// Tokens of documents that are written at a time, at least.
const BATCH_TOKENS: u64 = 4 << 20;

/// Copies a pbin to `dst` and returns its length in bytes.
pub(super) fn copy(
    pbin: &Reader,
    dst: &Path,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<u64> {
    let (path, file_bytes) = (pbin.path(), pbin.file_bytes());
    let source = File::open(path).map_err(Error::io(path))?;
    let mut out = TempFile::create(dst)?;
    let mut start = 0;
    while start < file_bytes {
        let stop = (start + STEP_BYTES).min(file_bytes);
        out.append_from(&source, start..stop)?;
        start = stop;
        let progress = Progress {
            bytes_read: start,
            total_bytes: file_bytes,
            ..Progress::default()
        };
        report_progress(monitor, &progress)?;
    }
    out.publish(replace)?;
    Ok(file_bytes)
}

/// Writes all documents of `file` to `dst` and returns its length in bytes.
pub(super) fn write(
    file: &TokenFile,
    meaning: &Meaning,
    masks: &LossMasks<'_>,
    dst: &Path,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<u64> {
    let vocab_size = meaning
        .tokenizer
        .as_ref()
        .map(|tokenizer| tokenizer.vocab_size);
    // If no vocabulary is known, ids stay as wide as they are.
    let width = vocab_size.map_or(file.width(), TokenWidth::for_vocab);
    let mut writer = Writer::create(dst, width, false)?;
    if masks.are_of_any([file].into_iter()) {
        writer = writer.with_loss_mask()?;
    }
    let mut is_counted = Vec::new();
    let mut converted = Vec::new();
    let mut document = 0;
    while document < file.num_documents() {
        let start = file.document_tokens(document)?.start;
        let mut stop = start;
        // Documents follow each other without gaps in all formats.
        while document < file.num_documents() && stop - start < BATCH_TOKENS {
            let tokens = file.document_tokens(document)?;
            writer.push_document((tokens.end - tokens.start) * width.bytes())?;
            stop = tokens.end;
            document += 1;
        }
        let bytes = file.tokens(start..stop)?;
        if let Some(vocab_size) = vocab_size {
            check_vocabulary(file, start..stop, vocab_size)?;
        }
        if writer.has_loss_mask() {
            is_counted.clear();
            masks.append_to(file, start..stop, &mut is_counted)?;
            writer.push_loss_mask(is_counted.iter().copied())?;
        }
        let written = writer.data_bytes();
        if file.width() == width {
            writer.write_data(bytes)?;
        } else {
            converted.clear();
            convert_width(bytes, file.width(), width, &mut converted);
            writer.write_data(&converted)?;
        }
        writer.start_writeback(written..writer.data_bytes());
        file.release_pages();
        let progress = Progress {
            bytes_read: stop * file.width().bytes(),
            total_bytes: file.data_bytes(),
            documents: document,
            ..Progress::default()
        };
        if monitor(&progress).is_break() {
            return Err(packtok_jobs::Error::Cancelled.into());
        }
    }
    let metadata = Metadata {
        tokenizer: meaning.tokenizer.clone(),
        eod: meaning.eod.clone(),
        bos: meaning.bos.clone(),
        counts: Counts {
            documents: file.num_documents(),
            tokens: file.num_tokens(),
            lines: file.num_documents(),
            packed: file.num_documents(),
            text: match file {
                TokenFile::Pbin(reader) => reader.metadata()?.and_then(|pbin| pbin.counts.text),
                TokenFile::Raw(_) | TokenFile::Npy(_) | TokenFile::Flat(_) => None,
            },
            ..Counts::default()
        },
        ..Metadata::default()
    };
    let path = file.path().file_name().unwrap_or_default();
    let source = Source {
        path: path.to_string_lossy().into_owned(),
        bytes: file.file_bytes(),
        crc32c: match file {
            TokenFile::Npy(npy) => Some(npy.crc32c()),
            TokenFile::Pbin(_) | TokenFile::Raw(_) | TokenFile::Flat(_) => None,
        },
        format: None,
        input: None,
    };
    let finished = writer.finish(&metadata, &[source])?;
    Ok(finished.publish(replace)?.file_bytes)
}
