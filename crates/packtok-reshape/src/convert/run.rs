//! One conversion.

use std::path::{Path, PathBuf};

use packtok_formats::TokenFile;
use packtok_formats::npy::IdType;
use packtok_jobs::Monitor;
use packtok_pack::pack::Existing;
use packtok_pbin::{Replace, TokenizerInfo};
use serde::Serialize;

use super::formats::{Meaning, TokenFormat};
use super::marker::Marker;
use super::npy::{NpyWritten, write_npy};
use super::pbin;
use crate::error::{Error, Result};

/// The file to convert, and the target format.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// The file to read.
    pub input: PathBuf,
    /// The format of the input; `None` to detect it from the content.
    pub format: Option<TokenFormat>,
    /// The file to write.
    pub output: PathBuf,
    /// The format of the output.
    pub to: TokenFormat,
    /// The type of ids in formats that have several.
    pub id_type: IdType,
    /// The tokenizer that the caller vouches for.
    pub tokenizer: Option<TokenizerInfo>,
    /// The action if the output exists.
    pub existing: Existing,
}

/// The result of a conversion.
#[derive(Debug, Serialize)]
pub struct ConvertReport {
    /// The written file.
    pub output: PathBuf,
    /// The format that was read.
    pub from: TokenFormat,
    /// The format that was written.
    pub to: TokenFormat,
    /// Number of documents in the output.
    pub documents: u64,
    /// Number of tokens in the output.
    pub tokens: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Whether an existing output was kept: it has the same documents.
    pub skipped_existing: bool,
}

/// Writes the documents of a token file in another format.
///
/// # Errors
/// The input is damaged, does not have the format that the caller set, or has ids outside the
/// vocabulary of the tokenizer; the output exists and may not be replaced.
pub fn convert(options: &ConvertOptions, monitor: &mut Monitor<'_>) -> Result<ConvertReport> {
    let ConvertOptions { input, output, .. } = options;
    let file = TokenFile::open(input)?;
    let from = TokenFormat::of(&file).ok_or_else(|| Error::RawTokens {
        path: input.clone(),
    })?;
    if let Some(expected) = options.format.filter(|&expected| expected != from) {
        return Err(Error::OtherFormat {
            path: input.clone(),
            found: from.name(),
            expected: expected.name(),
        });
    }
    if is_same_file(input, output) {
        return Err(Error::OutputIsInput {
            path: input.clone(),
        });
    }
    let meaning = meaning_of(&file, options.tokenizer.as_ref())?;
    let report = |file_bytes, skipped_existing| ConvertReport {
        output: output.clone(),
        from,
        to: options.to,
        documents: file.num_documents(),
        tokens: file.num_tokens(),
        file_bytes,
        skipped_existing,
    };
    let replace = match options.existing {
        Existing::Replace => Replace::Existing,
        Existing::Error | Existing::Skip => Replace::Never,
    };
    if output.symlink_metadata().is_ok() {
        match options.existing {
            Existing::Error => {
                return Err(packtok_pbin::Error::Exists {
                    path: output.clone(),
                }
                .into());
            }
            Existing::Skip => {
                let existing = TokenFile::open(output)?;
                check_same_documents(&file, &existing)?;
                complete_marker(options, &file, &meaning, &existing)?;
                return Ok(report(existing.file_bytes(), true));
            }
            Existing::Replace => {}
        }
    }
    packtok_pbin::remove_abandoned(&[output])?;
    let file_bytes = match options.to {
        TokenFormat::Pbin => pbin::write(&file, &meaning, output, replace, monitor)?,
        TokenFormat::CepeNpy => {
            let documents = [(&file, 0..file.num_documents())];
            let written = write_npy(&documents, output, options.id_type, replace, monitor)?;
            Marker::of_conversion(&file, &meaning, options.id_type, &written).publish(output)?;
            written.file_bytes
        }
    };
    Ok(report(file_bytes, false))
}

/// Writes the marker of an existing NPY file that has none. A run that was killed after writing
/// the file leaves it without a marker.
fn complete_marker(
    options: &ConvertOptions,
    file: &TokenFile,
    meaning: &Meaning,
    existing: &TokenFile,
) -> Result<()> {
    let TokenFile::Npy(npy) = existing else {
        return Ok(());
    };
    let is_as_requested = npy.element() == options.id_type.element();
    if !is_as_requested || Marker::find(&options.output)?.is_some() {
        return Ok(());
    }
    let written = NpyWritten {
        documents: npy.num_documents(),
        tokens: npy.num_tokens(),
        file_bytes: npy.file_bytes(),
        crc32c: npy.crc32c(),
    };
    Marker::of_conversion(file, meaning, options.id_type, &written).publish(&options.output)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// The meaning of a file's ids, from its trailer or its marker. It must agree with the caller's
/// tokenizer, if any.
fn meaning_of(file: &TokenFile, tokenizer: Option<&TokenizerInfo>) -> Result<Meaning> {
    let recorded = match file.metadata()? {
        Some(metadata) => Meaning {
            tokenizer: metadata.tokenizer.clone(),
            eod: metadata.eod.clone(),
            bos: metadata.bos.clone(),
        },
        None => Marker::find(file.path())?
            .map(|marker| marker.plan.meaning())
            .unwrap_or_default(),
    };
    match (&recorded.tokenizer, tokenizer) {
        (Some(recorded), Some(tokenizer)) if recorded.fingerprint != tokenizer.fingerprint => {
            Err(Error::TokenizerDiffers {
                path: file.path().into(),
                found: recorded.fingerprint.clone(),
                expected: tokenizer.fingerprint.clone(),
            })
        }
        (None, Some(tokenizer)) => Ok(Meaning {
            tokenizer: Some(tokenizer.clone()),
            ..recorded
        }),
        _ => Ok(recorded),
    }
}

/// Checks that two files have the same documents.
fn check_same_documents(file: &TokenFile, existing: &TokenFile) -> Result<()> {
    let differs = |document| {
        Err(Error::ExistingDocumentDiffers {
            path: existing.path().into(),
            document,
        })
    };
    let num_documents = file.num_documents().min(existing.num_documents());
    for document in 0..num_documents {
        let expected = ids(file, document)?;
        if !ids(existing, document)?.eq(expected) {
            return differs(document);
        }
    }
    if file.num_documents() == existing.num_documents() {
        Ok(())
    } else {
        differs(num_documents)
    }
}

/// The ids of a document.
fn ids(file: &TokenFile, document: u64) -> Result<impl Iterator<Item = u32> + '_> {
    let bytes = file.tokens(file.document_tokens(document)?)?;
    let width = file.width().bytes() as usize;
    Ok(bytes.chunks_exact(width).map(|id| {
        let bytes = id.iter().rev();
        bytes.fold(0, |id, &byte| id << 8 | u32::from(byte))
    }))
}
