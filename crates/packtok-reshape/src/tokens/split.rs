//! Writes the NPY files of a packed corpus.

use std::path::{Path, PathBuf};

use packtok_formats::TokenFile;
use packtok_formats::npy::{IdType, NpyFile};
use packtok_jobs::{Monitor, Progress};
use packtok_pack::pack::PackOptions;
use packtok_pbin::{Reader, Replace, Source, TokenizerInfo, remove_abandoned};
use serde::Serialize;

use super::rejects::Rejects;
use crate::convert::marker::{MarkedSource, Marker, TokenPlan, marker_path};
use crate::convert::{NpyWritten, write_npy};
use crate::error::{Error, Result};

/// An NPY file to write.
#[derive(Debug, Clone)]
pub struct Target {
    /// Number of the source in the pbin.
    pub source: usize,
    /// The source's path below the root of the inputs, for the marker.
    pub relative: String,
    /// The file to write; `None` if it is complete already.
    pub npy: Option<PathBuf>,
}

/// The options for writing the NPY files of a packed corpus.
#[derive(Debug, Clone)]
pub struct SplitOptions {
    /// The packed corpus, with origins.
    pub pbin: PathBuf,
    /// The files, in the order of the sources.
    pub targets: Vec<Target>,
    /// The type of the ids.
    pub id_type: IdType,
    /// Whether existing files are replaced.
    pub replace: Replace,
    /// The plan that the markers record.
    pub plan: TokenPlan,
}

/// The written files.
#[derive(Debug, Default, Serialize)]
pub struct SplitReport {
    /// Number of files.
    pub files: u64,
    /// Number of documents in the files.
    pub documents: u64,
    /// Number of tokens in the files.
    pub tokens: u64,
    /// Total length of the files in bytes.
    pub file_bytes: u64,
    /// Skipped records.
    pub rejected: u64,
}

/// The plan that the markers of a tokenizing run record.
pub fn plan_of(options: &PackOptions, tokenizer: TokenizerInfo, id_type: IdType) -> TokenPlan {
    TokenPlan {
        dtype: id_type.name().to_owned(),
        tokenizer: Some(tokenizer),
        bos: options.bos.clone(),
        eod: Some(options.eod.clone()),
        options: Some(options.spec.recorded.clone()),
    }
}

/// Writes the NPY files of a packed corpus, each with its rejects and its marker.
///
/// # Errors
/// The pbin is damaged or has no origins; a file exists that may not be replaced; the disk is full.
/// Files written before that are complete.
pub fn split(options: &SplitOptions, monitor: &mut Monitor<'_>) -> Result<SplitReport> {
    let file = TokenFile::open(&options.pbin)?;
    let TokenFile::Pbin(reader) = &file else {
        let path = options.pbin.clone();
        return Err(Error::NoOrigins { path });
    };
    let sources = reader.sources()?;
    let mut rejects = Rejects::of(&options.pbin)?;
    let mut report = SplitReport::default();
    let total_bytes = file.data_bytes();
    for target in &options.targets {
        let Some(source) = sources.get(target.source) else {
            return Err(Error::NotPacked {
                path: options.pbin.clone(),
                label: target.relative.clone(),
            });
        };
        let Some(npy) = &target.npy else {
            rejects.skip(&source.path)?;
            continue;
        };
        let before = report.tokens;
        let mut monitor = |progress: &Progress| {
            monitor(&Progress {
                bytes_read: (before + progress.tokens) * file.width().bytes(),
                total_bytes,
                documents: report.documents,
                tokens: before + progress.tokens,
                ..Progress::default()
            })
        };
        let written = write(options, (&file, reader), target, npy, &mut monitor)?;
        let rejected = rejects.publish(&source.path, npy)?;
        let source = marked(source, &target.relative);
        Marker::of(&written, options.plan.clone(), source, rejected).publish(npy)?;
        report.files += 1;
        report.documents += written.documents;
        report.tokens += written.tokens;
        report.file_bytes += written.file_bytes;
        report.rejected += rejected;
    }
    Ok(report)
}

fn marked(source: &Source, relative: &str) -> MarkedSource {
    MarkedSource {
        path: relative.to_owned(),
        bytes: source.bytes,
        crc32c: source.crc32c,
    }
}

fn write(
    options: &SplitOptions,
    (file, reader): (&TokenFile, &Reader),
    target: &Target,
    npy: &Path,
    monitor: &mut Monitor<'_>,
) -> Result<NpyWritten> {
    let Some(documents) = reader.documents_of_source(target.source as u64)? else {
        let path = options.pbin.clone();
        return Err(Error::NoOrigins { path });
    };
    remove_abandoned(&[npy, &marker_path(npy)])?;
    let documents = [(file, documents)];
    match write_npy(
        &documents,
        npy,
        options.id_type,
        None,
        options.replace,
        monitor,
    ) {
        // A process was killed between the file and its marker, or another program wrote the file.
        Err(crate::Error::Pbin(packtok_pbin::Error::Exists { path })) => {
            let existing = existing(&path)?;
            let beside = path.with_extension("npy.check");
            let expected = write_npy(
                &documents,
                &beside,
                options.id_type,
                None,
                Replace::Existing,
                monitor,
            );
            let removed = std::fs::remove_file(&beside);
            let expected = expected?;
            removed.map_err(crate::Error::io(&beside))?;
            if existing == Some(expected) {
                Ok(expected)
            } else {
                Err(Error::ExistingNpyDiffers { path })
            }
        }
        written => written,
    }
}

/// The content of an existing file; `None` if the file is not an NPY file of this layout.
fn existing(path: &Path) -> Result<Option<NpyWritten>> {
    let Ok(npy) = NpyFile::open(path) else {
        return Ok(None);
    };
    Ok(Some(NpyWritten::of(&npy)))
}
