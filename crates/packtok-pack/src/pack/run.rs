//! A packing run, from options to the published pbin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use packtok_corpus::rejects::{Rejects, remove_rejects};
use packtok_corpus::{Expansion, Source};
use packtok_jobs::journal::remove_private_journals;
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::{Counts, Finished, Metadata, Replace, Summary, crash, remove_abandoned};
use packtok_tokenizer::Tokenizer;

use super::corpus_part::CorpusPart;
use super::existing;
use super::leftover::remove_leftover;
use super::options::PackOptions;
use super::process::process;
use super::recorded::{metadata, recorded_sources};
use super::report::{PackReport, report};
use super::resume::begin;
use super::sidecar_files::write_tokenizer;
use super::sink::Sink;
use super::worker::Sample;
use crate::error::{Error, Result};

/// The result of a run before its report.
pub(crate) struct Written {
    pub(crate) report: PackReport,
    pub(crate) counts: Counts,
    /// CRC32C of the bytes read of each source.
    pub(crate) digests: Vec<Option<u32>>,
    /// Number of lines of each source that was only partly read.
    pub(crate) part_lines: BTreeMap<usize, u64>,
    pub(crate) summary: Summary,
}

/// Packs a corpus.
///
/// # Errors
/// The first error in corpus order. In that case, neither an output nor a temporary file remains.
pub fn pack(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let started = Instant::now();
    let Expansion { sources, ignored } = options.spec.expand()?;
    reject_output_among_sources(&sources, options)?;
    let removed_temporary = remove_temporary(options)?;
    let mut report = match existing::check(options, tokenizer, &sources, monitor)? {
        Some(report) => {
            remove_leftover(&options.spec.output)?;
            report
        }
        None => write(options, tokenizer, &CorpusPart::whole(&sources), monitor)?.report,
    };
    report.removed_temporary = removed_temporary;
    report.ignored = ignored;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Packs a part of a corpus. An existing output is replaced only if the options allow it.
pub(crate) fn write(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    part: &CorpusPart<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<Written> {
    let sources = part.sources;
    let started = begin(options, tokenizer, part, monitor)?;
    let resumed_bytes = started.parts.resumed_bytes();
    let mut monitor = |progress: &Progress| monitor(progress);
    let (mut sink, reader) = Sink::new(options, sources, started, &mut monitor);
    let filled = fill(options, tokenizer, sources, reader, &mut sink).and_then(|digests| {
        // The percentage of rejects in one shard does not show the percentage in the corpus;
        // joining checks it.
        match part.shard {
            Some(_) => Ok(digests),
            None => sink.check_rejects().map(|()| digests),
        }
    });
    let digests = match filled {
        Ok(digests) => digests,
        Err(error) => return Err(sink.give_up(error)),
    };
    let counts = sink.counts;
    let part_lines = std::mem::take(&mut sink.part_lines);
    let metadata = Metadata {
        shard: part.shard.clone(),
        ..metadata(options, tokenizer, counts, sink.stopped_early)
    };
    let recorded = recorded_sources(options, sources, digests.clone());
    let (finished, rejects, notes) = sink.finish(&metadata, &recorded)?;
    let published = publish(options, tokenizer, part, finished, rejects);
    let (summary, rejects_path) = match published {
        Ok(published) => published,
        Err(error) => return Err(notes.give_up(error)),
    };
    notes.remove()?;
    if part.shard.is_some() {
        remove_private_journals(&options.spec.output)?;
    }
    let mut report = report(
        options,
        tokenizer,
        sources,
        &metadata,
        summary.file_bytes,
        rejects_path,
    );
    report.resumed_bytes = resumed_bytes;
    Ok(Written {
        report,
        counts,
        digests,
        part_lines,
        summary,
    })
}

/// Packs the lines of `reader`; returns the digests for the trailer.
fn fill(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    reader: packtok_corpus::Reader,
    sink: &mut Sink<'_>,
) -> Result<Vec<Option<u32>>> {
    let digests = process(options, tokenizer, sources, reader, Sample::ALL, sink)?;
    if !sink.stopped_early {
        sink.note_end(&digests)?;
    }
    recorded_digests(options, sources, digests, sink)
}

/// Publishes the file, its rejects and its tokenizer.
fn publish(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    part: &CorpusPart<'_>,
    finished: Finished,
    rejects: Rejects,
) -> Result<(Summary, Option<PathBuf>)> {
    let tokenizer_copy = match part.shard {
        Some(_) => None,
        None => Some(write_tokenizer(&options.spec.output, tokenizer)?),
    };
    // All disk space is allocated by now; from here on files are only renamed.
    options
        .spec
        .existing
        .reject_new_output(&options.spec.output)?;
    let rejects_path = rejects.publish()?;
    if let Some(tokenizer_copy) = tokenizer_copy {
        tokenizer_copy.publish(Replace::Existing)?;
    }
    crash::point("tokenizer published");
    let summary = finished.publish(options.spec.existing.replace())?;
    crash::point("pbin published");
    remove_rejects(&options.failed_rejects_path())?;
    Ok((summary, rejects_path))
}

/// Rejects an output that is one of the sources: writing it would destroy or extend the input.
fn reject_output_among_sources(sources: &[Source], options: &PackOptions) -> Result<()> {
    let Ok(output) = options.spec.output.canonicalize() else {
        return Ok(());
    };
    let is_output = |source: &&Source| source.path.canonicalize().is_ok_and(|path| path == output);
    match sources.iter().find(is_output) {
        Some(source) => Err(Error::OutputIsInput {
            path: source.path.clone(),
        }),
        None => Ok(()),
    }
}

fn remove_temporary(options: &PackOptions) -> Result<Vec<PathBuf>> {
    let dsts = [
        &*options.spec.output,
        &options.rejects_path(),
        &options.failed_rejects_path(),
        &options.tokenizer_path(),
    ];
    Ok(remove_abandoned(&dsts)?)
}

/// The checksums for the trailer.
///
/// A run that a limit stopped has read an amount that depends on chunks, so it records no
/// checksums. A run by an index reads only parts, so the file is read once more.
fn recorded_digests(
    options: &PackOptions,
    sources: &[Source],
    digests: Vec<Option<u32>>,
    sink: &mut Sink<'_>,
) -> Result<Vec<Option<u32>>> {
    match options.spec.index_path {
        _ if sink.stopped_early => Ok(vec![None; sources.len()]),
        Some(_) => {
            let tick = |bytes_read| Ok(sink.report(bytes_read)?);
            Ok(packtok_corpus::digests(
                sources,
                &options.spec.read(),
                tick,
            )?)
        }
        None => Ok(digests),
    }
}
