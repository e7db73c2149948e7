//! Writes the documents of a token file as a pbin.

use std::path::Path;

use packtok_formats::TokenFile;
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{Counts, Metadata, Replace, Source, TokenWidth, Writer};

use super::meaning::Meaning;
use super::parts::convert_width;
use crate::error::{Error, Result};

/// Bytes of documents that are appended at a time.
const BATCH_BYTES: usize = 1 << 20;

/// Writes all documents of `file` to `dst` and returns its length in bytes.
pub(super) fn write(
    file: &TokenFile,
    meaning: &Meaning,
    dst: &Path,
    replace: Replace,
    monitor: &mut Monitor<'_>,
) -> Result<u64> {
    let vocab_size = meaning
        .tokenizer
        .as_ref()
        .map(|tokenizer| tokenizer.vocab_size);
    // If no vocabulary is known, the widest type is used, so that all files of one dataset have
    // the same width.
    let width = vocab_size.map_or(TokenWidth::U32, TokenWidth::for_vocab);
    let mut writer = Writer::create(dst, width, false)?;
    let mut data = Vec::with_capacity(BATCH_BYTES);
    let mut lengths = Vec::new();
    let mut bytes_read = 0;
    for document in 0..file.num_documents() {
        let tokens = file.tokens(file.document_tokens(document)?)?;
        let start = data.len();
        append(file, document, tokens, width, vocab_size, &mut data)?;
        lengths.push((data.len() - start) as u64);
        bytes_read += tokens.len() as u64;
        if data.len() >= BATCH_BYTES || lengths.len() == BATCH_BYTES {
            writer.append(&data, &lengths)?;
            data.clear();
            data.shrink_to(BATCH_BYTES);
            lengths.clear();
            let progress = Progress {
                bytes_read,
                total_bytes: file.data_bytes(),
                documents: document,
                ..Progress::default()
            };
            if monitor(&progress).is_break() {
                return Err(packtok_jobs::Error::Cancelled.into());
            }
        }
    }
    writer.append(&data, &lengths)?;
    let metadata = Metadata {
        tokenizer: meaning.tokenizer.clone(),
        eod: meaning.eod.clone(),
        bos: meaning.bos.clone(),
        counts: Counts {
            documents: file.num_documents(),
            tokens: file.num_tokens(),
            lines: file.num_documents(),
            packed: file.num_documents(),
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

/// Appends the tokens of a document in another width; all must be in the vocabulary.
fn append(
    file: &TokenFile,
    document: u64,
    tokens: &[u8],
    width: TokenWidth,
    vocab_size: Option<u64>,
    data: &mut Vec<u8>,
) -> Result<()> {
    let limit = vocab_size.unwrap_or(u64::MAX);
    let mut ids = file.width().ids(tokens).zip(0..);
    if let Some((id, token)) = ids.find(|&(id, _)| u64::from(id) >= limit) {
        return Err(Error::IdBeyondVocab {
            path: file.path().into(),
            document,
            token,
            id,
            vocab_size: limit,
        });
    }
    convert_width(tokens, file.width(), width, data);
    Ok(())
}
