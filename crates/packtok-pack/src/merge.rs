//! Merges pbins: joins them as the format defines, and handles existing outputs and the tokenizer.

use std::path::{Path, PathBuf};

use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{JoinOptions, Reader, Replace, TokenizerInfo, join, remove_abandoned};
use packtok_tokenizer::Tokenizer;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::pack::{Existing, output_exists, publish_tokenizer, tokenizer_path_of};

/// Options of a merge.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// The pbins, in order.
    pub parts: Vec<PathBuf>,
    /// The pbin to write.
    pub output: PathBuf,
    /// The action if the output already exists.
    pub existing: Existing,
}

/// The result of a merge.
#[derive(Debug, Serialize)]
pub struct MergeReport {
    /// The merged file.
    pub output: PathBuf,
    /// Number of parts.
    pub num_parts: usize,
    /// Documents of the output.
    pub documents: u64,
    /// Tokens of the output.
    pub tokens: u64,
    /// Length of the output in bytes.
    pub file_bytes: u64,
    /// The copy of the tokenizer next to the output, if the caller passed one or a part has one.
    pub tokenizer_path: Option<PathBuf>,
    /// Whether the output already existed and was proven correct.
    pub skipped_existing: bool,
}

/// Joins pbins in order. `tokenizer` is the tokenizer of all parts that do not name their own.
///
/// # Errors
/// A part is damaged, or the parts are incompatible.
pub fn merge(
    options: &MergeOptions,
    tokenizer: Option<&Tokenizer>,
    monitor: &mut Monitor<'_>,
) -> Result<MergeReport> {
    let mut total_bytes = 0;
    for part in &options.parts {
        let metadata = std::fs::metadata(part).map_err(|error| Error::io(part, error))?;
        total_bytes += metadata.len();
    }
    let mut report_progress = |bytes_read| {
        monitor(&Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        })
    };
    output_exists(&options.output)?;
    remove_abandoned(&[&options.output])?;
    if options.existing == Existing::Skip && options.output.exists() {
        let file = Reader::open(&options.output)?;
        check_parts(&options.output, &file, &options.parts)?;
        file.verify(&mut report_progress)?;
        return Ok(MergeReport {
            output: options.output.clone(),
            num_parts: options.parts.len(),
            documents: file.len(),
            tokens: file.num_tokens(),
            file_bytes: file.file_bytes(),
            tokenizer_path: None,
            skipped_existing: true,
        });
    }
    let join_options = JoinOptions {
        replace: match options.existing {
            Existing::Replace => Replace::Existing,
            Existing::Error | Existing::Skip => Replace::Never,
        },
        declared_tokenizer: tokenizer.map(|tokenizer| TokenizerInfo {
            name: tokenizer.name().to_owned(),
            fingerprint: tokenizer.fingerprint().to_owned(),
            vocab_size: tokenizer.vocab_size(),
        }),
    };
    let summary = join(
        &options.parts,
        &options.output,
        &join_options,
        &mut report_progress,
    )?;
    let tokenizer_path = copy_tokenizer(&options.output, &options.parts, tokenizer)?;
    Ok(MergeReport {
        tokenizer_path,
        output: options.output.clone(),
        num_parts: options.parts.len(),
        documents: summary.documents,
        tokens: summary.tokens,
        file_bytes: summary.file_bytes,
        skipped_existing: false,
    })
}

/// Copies the tokenizer next to a pbin that was made from others, so that data and tokenizer stay
/// together. Returns the path of the copy.
///
/// Uses `tokenizer` if set, or else the first tokenizer next to a part whose fingerprint matches
/// the pbin.
///
/// # Errors
/// The pbin cannot be read, or the copy cannot be written.
pub fn copy_tokenizer(
    output: &Path,
    parts: &[PathBuf],
    tokenizer: Option<&Tokenizer>,
) -> Result<Option<PathBuf>> {
    let merged = Reader::open(output)?;
    let recorded = merged
        .metadata()?
        .and_then(|metadata| metadata.tokenizer.as_ref());
    let next_to = |part: &PathBuf| {
        Tokenizer::from_file(&tokenizer_path_of(part), None)
            .ok()
            .filter(|sidecar| {
                recorded.is_some_and(|made| made.fingerprint == sidecar.fingerprint())
            })
    };
    let tokenizer_to_copy = tokenizer
        .cloned()
        .or_else(|| parts.iter().find_map(next_to));
    tokenizer_to_copy
        .map(|tokenizer| publish_tokenizer(output, &tokenizer))
        .transpose()
}

/// Compares the parts recorded in a merged file with the parts to merge.
fn check_parts(output: &Path, file: &Reader, parts: &[PathBuf]) -> Result<()> {
    let metadata = file.metadata()?.ok_or_else(|| Error::ExistingUnknown {
        path: output.to_owned(),
    })?;
    let differs = |found: String, expected: String| Error::ExistingDiffers {
        path: output.to_owned(),
        what: "its list of parts".to_owned(),
        found,
        expected,
    };
    if metadata.parts.len() != parts.len() {
        let counted = |num_parts: usize| format!("{num_parts} parts");
        return Err(differs(counted(metadata.parts.len()), counted(parts.len())));
    }
    for (path, listed) in parts.iter().zip(&metadata.parts) {
        let part = Reader::open(path)?;
        let data_crc32c = match part.data_crc32c()? {
            Some(recorded) => recorded,
            None => crc32c::crc32c(part.data()),
        };
        let is_same = listed.documents == part.len()
            && listed.tokens == part.num_tokens()
            && listed.data_crc32c == data_crc32c;
        if !is_same {
            return Err(differs(listed.name.clone(), path.display().to_string()));
        }
    }
    Ok(())
}
