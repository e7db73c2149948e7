//! One conversion.

use std::path::{Path, PathBuf};

use packtok_formats::npy::IdType;
use packtok_formats::{FlatFormat, TokenFile};
use packtok_jobs::Monitor;
use packtok_pack::pack::Existing;
use packtok_pbin::{Replace, TokenizerInfo};
use serde::Serialize;

use super::flat::{FlatConversion, FlatWritten, dtype};
use super::formats::{Meaning, TokenFormat};
use super::marker::Marker;
use super::npy::{NpyWritten, write_npy};
use super::paths::OutputPaths;
use super::{pbin, rest};
use crate::diff::{Difference, first_difference};
use crate::error::{Error, Result};

/// The file to convert, and the target format.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// The file to read.
    pub input: PathBuf,
    /// The format of the input; `None` to detect it from the content.
    pub format: Option<TokenFormat>,
    /// The file to write; of a format with several files, the name that they share.
    pub output: PathBuf,
    /// The format of the output.
    pub to: TokenFormat,
    /// Whether Megatron's file of the tokens is a link to the input, a pbin.
    pub link: bool,
    /// What the input records and the output may lose.
    pub accept_loss: Vec<String>,
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
    /// Sentences for the user.
    pub notes: Vec<String>,
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
    let paths = OutputPaths::new(options.to, output);
    if paths.all().any(|path| is_same_file(input, path)) {
        return Err(Error::OutputIsInput {
            path: input.clone(),
        });
    }
    if options.link && from != TokenFormat::Pbin {
        return Err(Error::LinkedInputIsNoPbin {
            path: input.clone(),
            found: from.name(),
        });
    }
    check_losses(&file, options)?;
    let meaning = meaning_of(&file, options.tokenizer.as_ref())?;
    let report = |file_bytes, skipped_existing, notes| ConvertReport {
        output: output.clone(),
        from,
        to: options.to,
        documents: file.num_documents(),
        tokens: file.num_tokens(),
        file_bytes,
        skipped_existing,
        notes,
    };
    let replace = match options.existing {
        Existing::Replace => Replace::Existing,
        Existing::Error | Existing::Skip => Replace::Never,
    };
    if let Some(existing) = paths.existing() {
        match options.existing {
            Existing::Error => {
                return Err(packtok_pbin::Error::Exists {
                    path: existing.to_owned(),
                }
                .into());
            }
            Existing::Skip => {
                let existing = TokenFile::open(&paths.to_open)?;
                check_same_documents(&file, &existing, monitor)?;
                complete_marker(options, &paths, &file, &meaning, &existing)?;
                return Ok(report(existing.file_bytes(), true, Vec::new()));
            }
            Existing::Replace => {}
        }
    }
    packtok_pbin::remove_abandoned(&paths.all().collect::<Vec<_>>())?;
    let mut notes = Vec::new();
    let file_bytes = match options.to {
        TokenFormat::Pbin => match rest::restore(&file, output, replace, monitor)? {
            Some(file_bytes) => file_bytes,
            None => pbin::write(&file, &meaning, output, replace, monitor)?,
        },
        TokenFormat::CepeNpy => {
            let documents = [(&file, 0..file.num_documents())];
            let written = write_npy(&documents, output, options.id_type, replace, monitor)?;
            Marker::of_conversion(&file, &meaning, options.id_type, &written).publish(output)?;
            written.file_bytes
        }
        TokenFormat::Megatron | TokenFormat::Datatrove => {
            let format = match options.to {
                TokenFormat::Megatron => FlatFormat::Megatron,
                _ => FlatFormat::Datatrove,
            };
            let conversion = FlatConversion {
                format,
                file: &file,
                meaning: &meaning,
                paths: &paths,
                link: options.link,
                replace,
            };
            let FlatWritten {
                dtype,
                notes: written,
            } = conversion.write(monitor)?;
            notes = written;
            let written = TokenFile::open(&paths.to_open)?;
            let marker = Marker::of_dataset(&file, &meaning, options.to, dtype, &written);
            marker.publish_for_dataset(&paths.data, options.link)?;
            written.file_bytes()
        }
    };
    Ok(report(file_bytes, false, notes))
}

/// Checks that the caller accepts the loss of what the input records besides documents. No output
/// holds it: in Megatron's files, too, each document is written as one sequence.
fn check_losses(file: &TokenFile, options: &ConvertOptions) -> Result<()> {
    let TokenFile::Flat(flat) = file else {
        return Ok(());
    };
    let mut lost = flat.extras().into_iter();
    let is_accepted = |name: &str| options.accept_loss.iter().any(|accepted| accepted == name);
    lost.find(|name| !is_accepted(name)).map_or(Ok(()), |name| {
        Err(Error::Lost {
            path: file.path().into(),
            name,
            format: options.to.name(),
        })
    })
}

/// Writes the marker of an existing output that has none. A run that was killed after writing the
/// output leaves it without a marker.
fn complete_marker(
    options: &ConvertOptions,
    paths: &OutputPaths,
    file: &TokenFile,
    meaning: &Meaning,
    existing: &TokenFile,
) -> Result<()> {
    if let TokenFile::Flat(flat) = existing
        && Marker::find(&paths.data)?.is_none()
    {
        let dtype = dtype(flat.format(), flat.width());
        let marker = Marker::of_dataset(file, meaning, options.to, dtype, existing);
        marker.publish_for_dataset(&paths.data, options.link)?;
    }
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
fn check_same_documents(
    file: &TokenFile,
    existing: &TokenFile,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    match first_difference(existing, file, monitor)? {
        None => Ok(()),
        Some(Difference { document, .. }) => Err(Error::ExistingDocumentDiffers {
            path: existing.path().into(),
            document,
        }),
    }
}
