//! What to do about an output that is already there.

use std::path::PathBuf;

use packtok_bpe::Tokenizer;
use packtok_pbin::{Metadata, Reader};

use super::{
    Existing, Monitor, OnBadDocument, PackOptions, PackReport, Progress, metadata, report,
};
use crate::corpus::{self, Source};
use crate::error::{Error, Result};

/// `None` when there is work to do; a report when the existing output is proven right.
///
/// # Errors
/// There is an output and it is to be left alone, or it is to be kept and is damaged or made of
/// something else.
pub(super) fn check(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    monitor: &mut Monitor<'_>,
) -> Result<Option<PackReport>> {
    // A dangling link counts as existing: publishing would replace it.
    if std::fs::symlink_metadata(&options.output).is_err() {
        return Ok(None);
    }
    match options.existing {
        Existing::Replace => Ok(None),
        Existing::Error => Err(Error::OutputExists {
            path: options.output.clone(),
        }),
        Existing::Skip => prove(options, tokenizer, sources, monitor).map(Some),
    }
}

fn prove(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let reader = Reader::open(&options.output)?;
    let found = reader.metadata()?.ok_or_else(|| Error::ExistingUnknown {
        path: options.output.clone(),
    })?;
    compare(options, tokenizer, found)?;
    compare_sources(options, sources, &reader, found.stopped_early)?;
    let total_bytes = reader.data_bytes();
    reader.verify(&mut |bytes_read| {
        let progress = Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        };
        monitor(&progress)
    })?;
    let rejects_path: Option<PathBuf> = (found.counts.rejected > 0).then(|| options.rejects_path());
    let mut report = report(
        options,
        tokenizer,
        sources,
        found,
        reader.file_bytes(),
        rejects_path,
    );
    report.skipped_existing = true;
    if found.stopped_early {
        report.warnings.push(
            "the existing output was ended by a limit; its sources were compared by name and size only".to_owned(),
        );
    }
    Ok(report)
}

/// Holds what the file says of itself against what this run would write.
fn compare(options: &PackOptions, tokenizer: &Tokenizer, found: &Metadata) -> Result<()> {
    let expected = metadata(
        options,
        tokenizer,
        found.counts.clone(),
        found.stopped_early,
    );
    let differs = |what: &'static str, found: String, expected: String| {
        if found == expected {
            return Ok(());
        }
        Err(Error::ExistingDiffers {
            path: options.output.clone(),
            what,
            found,
            expected,
        })
    };
    let fingerprint = |metadata: &Metadata| {
        let tokenizer = metadata.tokenizer.as_ref();
        tokenizer.map_or_else(String::new, |tokenizer| tokenizer.fingerprint.clone())
    };
    differs("the tokenizer", fingerprint(found), fingerprint(&expected))?;
    let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
    differs("EOD", shown(&found.eod), shown(&expected.eod))?;
    differs("BOS", shown(&found.bos), shown(&expected.bos))?;
    differs("an option", shown(&found.options), shown(&expected.options))?;
    differs("merged parts", shown(&found.parts), shown(&expected.parts))?;
    if options.on_bad_document == OnBadDocument::Fail && found.counts.rejected > 0 {
        differs(
            "rejected documents",
            found.counts.rejected.to_string(),
            "none".to_owned(),
        )?;
    }
    Ok(())
}

fn compare_sources(
    options: &PackOptions,
    sources: &[Source],
    reader: &Reader,
    stopped_early: bool,
) -> Result<()> {
    let digests = match stopped_early {
        true => vec![None; sources.len()],
        false => corpus::digests(sources)?,
    };
    let expected = super::recorded_sources(options, sources, digests);
    let found = reader.sources()?;
    let differing = (0..found.len().max(expected.len())).find(|&i| found.get(i) != expected.get(i));
    match differing {
        None => Ok(()),
        Some(i) => Err(Error::ExistingDiffers {
            path: options.output.clone(),
            what: "a source",
            found: format!("{:?}", found.get(i)),
            expected: format!("{:?}", expected.get(i)),
        }),
    }
}
