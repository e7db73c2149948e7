//! The pipeline: a corpus becomes a pbin.
//!
//! Lines are packed in the order of the corpus, each either as one document closed by EOD, or
//! counted as empty, blank or rejected: `lines = packed + empty + blank + rejected` always holds.
//! Nothing about the output depends on how many threads worked.

mod beside;
mod existing;
mod limits;
mod options;
mod ordered;
mod reason;
mod recorded;
mod report;
mod sink;
mod worker;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use packtok_bpe::Tokenizer;
use packtok_pbin::{
    Counts, Metadata, Replace, ShardInfo, Summary, TokenWidth, Writer, read_raw_index,
    remove_abandoned,
};

pub use options::{EmptyDocument, Existing, OnBadDocument, PackOptions};
pub use reason::Reason;
pub use report::PackReport;

pub(crate) use beside::{publish_tokenizer, tokenizer_path_of, with_suffix};
pub(crate) use ordered::{Consume, Flow};
pub(crate) use recorded::{metadata, redacted};
pub(crate) use report::report;
pub(crate) use sink::LineNumbers;
pub(crate) use worker::{DocBatch, Outcome, Sample, UNSAMPLED};

use crate::corpus::{self, Source};
use crate::error::{Error, Result};
use beside::write_tokenizer;
use ordered::run;
use recorded::{recorded_digests, recorded_sources};
use sink::Sink;
use worker::Worker;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes of the sources read, as they lie on disk.
    pub bytes_read: u64,
    /// Bytes of all sources.
    pub total_bytes: u64,
    /// Documents written.
    pub documents: u64,
    /// Tokens written.
    pub tokens: u64,
}

/// Told how far a run is, 10 to 20 times a second; `Break` ends the run with [`Error::Cancelled`].
pub type Monitor<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Packs a corpus.
///
/// # Errors
/// The first thing that is wrong, in the order of the corpus; nothing is left under a final name,
/// and no temporary file.
pub fn pack(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    monitor: &mut Monitor<'_>,
) -> Result<PackReport> {
    let started = Instant::now();
    let sources = corpus::expand(&options.inputs)?;
    refuse_output_among(&sources, options)?;
    let removed_temporary = remove_temporary(options)?;
    let mut report = match existing::check(options, tokenizer, &sources, monitor)? {
        Some(report) => report,
        None => write(options, tokenizer, &Job::whole(&sources), monitor)?.report,
    };
    report.removed_temporary = removed_temporary;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// What one run packs.
pub(crate) struct Job<'a> {
    /// What is read, in order.
    pub(crate) sources: &'a [Source],
    /// Which part of the corpus that is; a part has no tokenizer of its own beside it.
    pub(crate) shard: Option<ShardInfo>,
}

impl<'a> Job<'a> {
    fn whole(sources: &'a [Source]) -> Self {
        Self {
            sources,
            shard: None,
        }
    }
}

/// What one run has written.
pub(crate) struct Written {
    pub(crate) report: PackReport,
    pub(crate) counts: Counts,
    /// CRC32C of what was read of each source.
    pub(crate) digests: Vec<Option<u32>>,
    /// Lines of each source of which only a part was read.
    pub(crate) part_lines: BTreeMap<usize, u64>,
    pub(crate) summary: Summary,
}

/// Packs the sources of a job; what has the output's name is replaced only if the options say so.
pub(crate) fn write(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<Written> {
    let sources = job.sources;
    let width = TokenWidth::for_vocab(tokenizer.vocab_size());
    let writer = Writer::create(&options.output, width)?;
    let mut monitor = |progress: &Progress| monitor(progress);
    let mut sink = Sink::new(options, sources, writer, &mut monitor);
    let digests = process(options, tokenizer, sources, Sample::ALL, &mut sink)?;
    let counts = sink.counts;
    let stopped_early = sink.stopped_early;
    let metadata = Metadata {
        shard: job.shard.clone(),
        ..metadata(options, tokenizer, counts, stopped_early)
    };
    let digests = recorded_digests(options, sources, digests, stopped_early, &mut sink)?;
    let recorded = recorded_sources(options, sources, digests.clone());
    let part_lines = std::mem::take(&mut sink.part_lines);
    let finished = sink.writer.finish(&metadata, &recorded)?;
    let tokenizer_copy = match job.shard {
        Some(_) => None,
        None => Some(write_tokenizer(&options.output, tokenizer)?),
    };
    // All that needs room on the disk is there: from here on names are given.
    existing::refuse_newcomer(options)?;
    let rejects_path = sink.rejects.publish()?;
    if let Some(tokenizer_copy) = tokenizer_copy {
        tokenizer_copy.publish(Replace::Existing)?;
    }
    let replace = match options.existing {
        Existing::Replace => Replace::Existing,
        Existing::Error | Existing::Skip => Replace::Never,
    };
    let summary = finished.publish(replace)?;
    let report = report(
        options,
        tokenizer,
        sources,
        &metadata,
        summary.file_bytes,
        rejects_path,
    );
    Ok(Written {
        report,
        counts,
        digests,
        part_lines,
        summary,
    })
}

/// Tokenizes a sample of the corpus on all threads, the results to `consumer` in order.
///
/// Returns the digests of the sources, as far as they are known.
pub(crate) fn process(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    sample: Sample,
    consumer: &mut impl Consume<DocBatch>,
) -> Result<Vec<Option<u32>>> {
    let workers = (0..options.num_threads.max(1))
        .map(|_| Worker::new(tokenizer, options, sample))
        .collect::<Result<Vec<_>>>()?;
    let reader = reader(options, sources)?;
    run(reader, workers, 4 * options.read.chunk_bytes, consumer)
        .map_err(|error| name_panic(error, sources))
}

/// Reports how far a run is; the error is that the caller asked to stop.
pub(crate) fn tell(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}

fn reader(options: &PackOptions, sources: &[Source]) -> Result<corpus::Reader> {
    let Some(index_path) = &options.index_path else {
        return Ok(corpus::Reader::new(sources.to_vec(), options.read));
    };
    let [source] = sources else {
        return Err(Error::IndexForMany {
            path: index_path.clone(),
            num_sources: sources.len(),
        });
    };
    let entries = read_raw_index(index_path)?;
    corpus::Reader::indexed(source.clone(), entries, options.read)
}

/// The thread that panicked knows only the number of the source.
fn name_panic(error: Error, sources: &[Source]) -> Error {
    match error {
        Error::Panicked {
            source_index,
            offset_bytes,
        } => Error::EnginePanicked {
            path: sources[source_index].path.clone(),
            offset_bytes,
        },
        other => other,
    }
}

/// Writing the output would destroy, or grow, what is being read.
fn refuse_output_among(sources: &[Source], options: &PackOptions) -> Result<()> {
    let Ok(output) = options.output.canonicalize() else {
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
    let mut removed = Vec::new();
    for path in [
        &options.output,
        &options.rejects_path(),
        &options.tokenizer_path(),
    ] {
        removed.extend(remove_abandoned(path)?);
    }
    Ok(removed)
}
