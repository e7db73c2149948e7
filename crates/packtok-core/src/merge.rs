//! Merging pbins: the format's join, with the policies of the command around it.

use crate::pack::PackError;
use std::path::{Path, PathBuf};

use packtok_pbin::{JoinOptions, Reader, Replace, TokenizerInfo, join, remove_abandoned};
use packtok_tokenizer::Tokenizer;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::pack::{Existing, is_there, publish_tokenizer, tokenizer_path_of};
use crate::pipeline::{Monitor, Progress};

/// What is merged, and where to.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// The pbins, in order.
    pub parts: Vec<PathBuf>,
    /// The pbin to write.
    pub output: PathBuf,
    /// What becomes of an output that is already there.
    pub existing: Existing,
}

/// What a merge did.
#[derive(Debug, Serialize)]
pub struct MergeReport {
    /// The merged file.
    pub output: PathBuf,
    /// Number of parts.
    pub num_parts: usize,
    /// Its documents.
    pub documents: u64,
    /// Its tokens.
    pub tokens: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// The copy of the tokenizer beside the output, if one was given or lies beside a part.
    pub tokenizer_path: Option<PathBuf>,
    /// Whether the output was there already and was proven right.
    pub skipped_existing: bool,
}

/// Joins pbins in order; `tokenizer` vouches for parts that do not say what made them.
///
/// # Errors
/// A part is damaged, or the parts do not fit together.
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
    let mut tell = |bytes_read| {
        monitor(&Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        })
    };
    is_there(&options.output)?;
    remove_abandoned(&[&options.output])?;
    if options.existing == Existing::Skip && options.output.exists() {
        let file = Reader::open(&options.output)?;
        check_parts(&options.output, &file, &options.parts)?;
        file.verify(&mut tell)?;
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
        vouched: tokenizer.map(|tokenizer| TokenizerInfo {
            name: tokenizer.name().to_owned(),
            fingerprint: tokenizer.fingerprint().to_owned(),
            vocab_size: tokenizer.vocab_size(),
        }),
    };
    let summary = join(&options.parts, &options.output, &join_options, &mut tell)?;
    let tokenizer_path = copy_tokenizer(options, tokenizer)?;
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

/// Puts the tokenizer beside the output, where data and tokenizer travel together.
///
/// It is the one given, or the first that lies beside a part and made the merged file.
fn copy_tokenizer(
    options: &MergeOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<Option<PathBuf>> {
    let merged = Reader::open(&options.output)?;
    let recorded = merged
        .metadata()?
        .and_then(|metadata| metadata.tokenizer.as_ref());
    let beside = |part: &PathBuf| {
        Tokenizer::from_file(&tokenizer_path_of(part), None)
            .ok()
            .filter(|found| recorded.is_some_and(|made| made.fingerprint == found.fingerprint()))
    };
    let found = tokenizer
        .cloned()
        .or_else(|| options.parts.iter().find_map(beside));
    found
        .map(|found| publish_tokenizer(&options.output, &found))
        .transpose()
}

/// Holds the parts that a merged file lists against those that are to be merged.
fn check_parts(output: &Path, file: &Reader, parts: &[PathBuf]) -> Result<()> {
    let metadata = file.metadata()?.ok_or_else(|| {
        Error::Pack(PackError::ExistingUnknown {
            path: output.to_owned(),
        })
    })?;
    let differs = |found: String, expected: String| {
        Error::Pack(PackError::ExistingDiffers {
            path: output.to_owned(),
            what: "its list of parts".to_owned(),
            found,
            expected,
        })
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
