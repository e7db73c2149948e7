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
mod reject_limit;
mod report;
mod resume;
mod sink;
mod worker;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use packtok_pbin::{
    Counts, Finished, Metadata, Replace, ShardInfo, Summary, crash, read_raw_index,
    remove_abandoned,
};
use packtok_tokenizer::Tokenizer;

pub use options::{Existing, OnBadDocument, PackOptions, PackSpec, SpecError};
pub use reason::Reason;
pub use reject_limit::{NotALimit, RejectFault, RejectLimit};
pub use report::PackReport;

pub(crate) use beside::{publish_tokenizer, tokenizer_path_of, with_suffix};
pub(crate) use existing::is_there;
pub(crate) use ordered::{Consume, Flow, Work, run};
pub(crate) use recorded::{metadata, redacted};
pub(crate) use reject_limit::first_reject;
pub(crate) use report::report;
pub(crate) use sink::LineNumbers;
pub(crate) use worker::{DocBatch, KEPT_IDS, Outcome, Reject, Sample, UNSAMPLED, text_of};

use crate::corpus::{self, Source};
use crate::error::{Error, Result};
use crate::journal::remove_asides;
use crate::rejects::{Rejects, remove_if_there};
use beside::write_tokenizer;
use recorded::{recorded_digests, recorded_sources};
use resume::begin;
pub(crate) use resume::{has_published, remove_leftover};
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
    /// Of `bytes_read`, those that an earlier run had packed.
    pub resumed_bytes: u64,
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
    let sources = corpus::expand(&options.spec.input)?;
    refuse_output_among(&sources, options)?;
    let removed_temporary = remove_temporary(options)?;
    let mut report = match existing::check(options, tokenizer, &sources, monitor)? {
        Some(report) => {
            remove_leftover(&options.spec.output)?;
            report
        }
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
    let begun = begin(options, tokenizer, job, monitor)?;
    let resumed_bytes = begun.parts.resumed_bytes();
    let mut monitor = |progress: &Progress| monitor(progress);
    let (mut sink, reader) = Sink::new(options, sources, begun, &mut monitor);
    let filled = fill(options, tokenizer, sources, reader, &mut sink).and_then(|digests| {
        // Of a shard's share nothing follows for the corpus; joining judges that.
        match job.shard {
            Some(_) => Ok(digests),
            None => sink.judge_rejects().map(|()| digests),
        }
    });
    let digests = match filled {
        Ok(digests) => digests,
        Err(error) => return Err(sink.give_up(error)),
    };
    let counts = sink.counts;
    let part_lines = std::mem::take(&mut sink.part_lines);
    let metadata = Metadata {
        shard: job.shard.clone(),
        ..metadata(options, tokenizer, counts, sink.stopped_early)
    };
    let recorded = recorded_sources(options, sources, digests.clone());
    let (finished, rejects, notes) = sink.finish(&metadata, &recorded)?;
    let published = publish(options, tokenizer, job, finished, rejects);
    let (summary, rejects_path) = match published {
        Ok(published) => published,
        Err(error) => return Err(notes.give_up(error)),
    };
    notes.remove()?;
    if job.shard.is_some() {
        remove_asides(&options.spec.output)?;
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

/// Packs what `reader` reads; returns the digests that the trailer names.
fn fill(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    reader: corpus::Reader,
    sink: &mut Sink<'_>,
) -> Result<Vec<Option<u32>>> {
    let digests = process(options, tokenizer, sources, reader, Sample::ALL, sink)?;
    if !sink.stopped_early {
        sink.note_end(&digests)?;
    }
    recorded_digests(options, sources, digests, sink)
}

/// Gives the file, its rejects and its tokenizer their names.
fn publish(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    finished: Finished,
    rejects: Rejects,
) -> Result<(Summary, Option<PathBuf>)> {
    let tokenizer_copy = match job.shard {
        Some(_) => None,
        None => Some(write_tokenizer(&options.spec.output, tokenizer)?),
    };
    // All that needs room on the disk is there: from here on names are given.
    options
        .spec
        .existing
        .refuse_newcomer(&options.spec.output)?;
    let rejects_path = rejects.publish()?;
    if let Some(tokenizer_copy) = tokenizer_copy {
        tokenizer_copy.publish(Replace::Existing)?;
    }
    crash::point("tokenizer published");
    let summary = finished.publish(options.spec.existing.replace())?;
    crash::point("pbin published");
    remove_if_there(&options.failed_rejects_path())?;
    Ok((summary, rejects_path))
}

/// Tokenizes a sample of what `reader` reads on all threads, the results to `consumer` in order.
///
/// Returns the digests of the sources, as far as they are known.
pub(crate) fn process(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    sources: &[Source],
    reader: corpus::Reader,
    sample: Sample,
    consumer: &mut impl Consume<DocBatch>,
) -> Result<Vec<Option<u32>>> {
    let workers = (0..options.spec.num_cpus.max(1))
        .map(|_| Worker::new(tokenizer, options, sample))
        .collect::<Result<Vec<_>>>()?;
    run(reader, workers, 4 * options.spec.chunk_bytes, consumer)
        .map_err(|error| name_panic(error, sources))
}

/// Reports how far a run is; the error is that the caller asked to stop.
pub(crate) fn tell(monitor: &mut Monitor<'_>, progress: &Progress) -> Result<()> {
    match monitor(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}

/// A reader of the corpus from its start.
pub(crate) fn reader(options: &PackOptions, sources: &[Source]) -> Result<corpus::Reader> {
    let Some(index_path) = &options.spec.index_path else {
        return Ok(corpus::Reader::new(sources.to_vec(), options.spec.read()));
    };
    let [source] = sources else {
        return Err(Error::IndexForMany {
            path: index_path.clone(),
            num_sources: sources.len(),
        });
    };
    let entries = read_raw_index(index_path)?;
    corpus::Reader::indexed(source.clone(), entries, options.spec.read())
}

/// The thread that panicked knows only the number of the source.
pub(crate) fn name_panic(error: Error, sources: &[Source]) -> Error {
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
