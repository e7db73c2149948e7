//! Handling of an existing output.

use std::path::{Path, PathBuf};

use packtok_corpus::OnBadDocument;
use packtok_corpus::Source;
use packtok_corpus::rejects::first_reject;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{Metadata, Options, Reader, Replace, SpecialToken};
use packtok_tokenizer::Tokenizer;

use super::leftover::has_published;
use super::recorded::{metadata, recorded_sources};
use super::report::report;
use super::{Existing, PackOptions, PackReport, RejectFault};
use crate::error::{Error, Result};

/// Returns a report if the existing output is proven correct, or `None` if the run must pack.
///
/// # Errors
/// The output exists and must not be changed, or it should be kept but is damaged or differs.
pub(super) fn check(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    monitor: &mut Monitor<'_>,
) -> Result<Option<PackReport>> {
    if !output_exists(&options.spec.output)? {
        return Ok(None);
    }
    match options.spec.existing {
        Existing::Replace => Ok(None),
        Existing::Error if !has_published(&options.spec.output) => Err(Error::OutputExists {
            path: options.spec.output.clone(),
        }),
        Existing::Error | Existing::Skip => prove(options, tokenizer, sources, monitor).map(Some),
    }
}

/// Whether the output exists; it must be a file.
pub(crate) fn output_exists(output: &Path) -> Result<bool> {
    // A dangling link counts as existing: publishing would replace it.
    let Ok(metadata) = std::fs::symlink_metadata(output) else {
        return Ok(false);
    };
    // A rename over a device or FIFO would succeed and remove it.
    if !metadata.is_file() && !metadata.is_symlink() {
        return Err(Error::OutputNotAFile {
            path: output.to_owned(),
            found: packtok_corpus::kind(&metadata),
        });
    }
    Ok(true)
}

impl Existing {
    /// Whether an existing output should be kept.
    ///
    /// # Errors
    /// The output exists and must be neither kept nor replaced; or it is not a file.
    pub fn keeps(self, output: &Path) -> Result<bool> {
        match (output_exists(output)?, self) {
            (false, _) | (true, Self::Replace) => Ok(false),
            (true, Self::Skip) => Ok(true),
            (true, Self::Error) => Err(Error::OutputExists {
                path: output.to_owned(),
            }),
        }
    }

    /// Fails if another run published the output in the meantime, so that the other run's rejects
    /// and tokenizer are not replaced.
    ///
    /// # Errors
    /// [`Error::OutputExists`].
    pub(crate) fn reject_new_output(self, output: &Path) -> Result<()> {
        if self != Self::Replace && output.symlink_metadata().is_ok() {
            Err(Error::OutputExists {
                path: output.to_owned(),
            })
        } else {
            Ok(())
        }
    }

    /// The corresponding option of publishing.
    pub fn replace(self) -> Replace {
        match self {
            Self::Replace => Replace::Existing,
            Self::Error | Self::Skip => Replace::Never,
        }
    }
}

fn prove(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let reader = Reader::open(&options.spec.output)?;
    let recorded = reader.metadata()?.ok_or_else(|| Error::ExistingUnknown {
        path: options.spec.output.clone(),
    })?;
    let expected = metadata(options, tokenizer, recorded.counts, recorded.stopped_early);
    compare(recorded, &expected, &|what, found, expected| {
        differing(options, what, found, expected)
    })?;
    if options.spec.on_bad_document == OnBadDocument::Fail && recorded.counts.rejected > 0 {
        let num_rejected = recorded.counts.rejected.to_string();
        differing(
            options,
            "its number of rejected documents",
            num_rejected,
            "none".to_owned(),
        )?;
    }
    check_rejects(options, recorded)?;
    compare_sources(options, sources, &reader, recorded.stopped_early, monitor)?;
    let total_bytes = reader.data_bytes();
    reader.verify(&mut |bytes_read| {
        let progress = Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        };
        monitor(&progress)
    })?;
    let rejects_path: Option<PathBuf> =
        (recorded.counts.rejected > 0).then(|| options.rejects_path());
    let mut report = report(
        options,
        tokenizer,
        sources,
        recorded,
        reader.file_bytes(),
        rejects_path,
    );
    report.skipped_existing = true;
    if recorded.stopped_early {
        report.warnings.push(
            "the existing output stopped at a limit; its sources were compared by name and size only".to_owned(),
        );
    }
    Ok(report)
}

/// Fails like the run that made the output would, if it has more rejects than allowed.
fn check_rejects(options: &PackOptions, metadata: &Metadata) -> Result<()> {
    let fault = RejectFault::of_complete(
        options.spec.max_rejects,
        &metadata.counts,
        metadata.stopped_early,
    );
    fault.map_or(Ok(()), |fault| {
        let rejects = options.rejects_path();
        Err(Error::TooManyRejects {
            path: options.spec.output.clone(),
            fault,
            first: first_reject(&rejects),
            rejects,
        })
    })
}

/// Compares everything that affects the bytes, except the corpus.
///
/// Calls `differing` with the name and both values of the first difference.
pub(super) fn compare(
    found: &Metadata,
    expected: &Metadata,
    differing: &dyn Fn(&str, String, String) -> Result<()>,
) -> Result<()> {
    let fingerprint = |metadata: &Metadata| {
        let tokenizer = metadata.tokenizer.as_ref();
        tokenizer.map(|tokenizer| tokenizer.fingerprint.clone())
    };
    let differs = |what: &str, found: &dyn Describe, expected: &dyn Describe| {
        differing(what, found.describe(), expected.describe())
    };
    differs("its tokenizer", &fingerprint(found), &fingerprint(expected))?;
    differs("its EOD", &found.eod, &expected.eod)?;
    differs("its BOS", &found.bos, &expected.bos)?;
    compare_options(&found.options, &expected.options, differing)?;
    let shard = |metadata: &Metadata| {
        let shard = metadata.shard.as_ref();
        shard.map(|shard| format!("{} of {} by plan {}", shard.index, shard.count, shard.plan))
    };
    differs("its shard", &shard(found), &shard(expected))?;
    let num_parts = |metadata: &Metadata| Some(metadata.parts.len().to_string());
    differs(
        "its number of merged parts",
        &num_parts(found),
        &num_parts(expected),
    )?;
    let order = |metadata: &Metadata| {
        let order = if metadata.rearranged {
            "shuffled or filtered"
        } else {
            "the corpus"
        };
        Some(order.to_owned())
    };
    differs("its order of documents", &order(found), &order(expected))
}

/// Compares the options.
fn compare_options(
    found: &Options,
    expected: &Options,
    differing: &dyn Fn(&str, String, String) -> Result<()>,
) -> Result<()> {
    let fields = |options: &Options| match serde_json::to_value(options) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (found, expected) = (fields(found), fields(expected));
    let describe = |value: Option<&serde_json::Value>| {
        value.map_or_else(|| "none".to_owned(), serde_json::Value::to_string)
    };
    for name in found.keys().chain(expected.keys()) {
        differing(
            &format!("its option {name}"),
            describe(found.get(name)),
            describe(expected.get(name)),
        )?;
    }
    Ok(())
}

/// Returns the error that the output differs from the output of this run.
fn differing(options: &PackOptions, what: &str, found: String, expected: String) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::ExistingDiffers {
        path: options.spec.output.clone(),
        what: what.to_owned(),
        found,
        expected,
    })
}

/// Formats a part of the metadata for a message.
trait Describe {
    fn describe(&self) -> String;
}

impl Describe for Option<String> {
    fn describe(&self) -> String {
        self.clone().unwrap_or_else(|| "none".to_owned())
    }
}

impl Describe for Option<SpecialToken> {
    fn describe(&self) -> String {
        self.as_ref().map_or_else(
            || "none".to_owned(),
            |special| format!("{:?} ({})", special.token, special.id),
        )
    }
}

impl Describe for Option<&packtok_pbin::Source> {
    fn describe(&self) -> String {
        self.map_or_else(
            || "none".to_owned(),
            |source| {
                let crc32c = source
                    .crc32c
                    .map_or_else(String::new, |crc32c| format!(", CRC32C {crc32c:08x}"));
                format!("{} of {} bytes{crc32c}", source.path, source.bytes)
            },
        )
    }
}

fn compare_sources(
    options: &PackOptions,
    sources: &[Source],
    reader: &Reader,
    stopped_early: bool,
    monitor: &mut Monitor<'_>,
) -> Result<()> {
    let total_bytes = sources.iter().map(|source| source.bytes).sum();
    let tick = |bytes_read| {
        let progress = Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        };
        Ok(report_progress(monitor, &progress)?)
    };
    let digests = if stopped_early {
        vec![None; sources.len()]
    } else {
        packtok_corpus::digests(sources, &options.spec.read(), tick)?
    };
    let expected = recorded_sources(options, sources, digests);
    let recorded = reader.sources()?;
    for i in 0..recorded.len().max(expected.len()) {
        let (found, expected) = (recorded.get(i).describe(), expected.get(i).describe());
        differing(options, &format!("its source {i}"), found, expected)?;
    }
    Ok(())
}
