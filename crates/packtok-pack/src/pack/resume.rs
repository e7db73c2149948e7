//! Resumes an unfinished run with the same output.
//!
//! A run regularly records its progress: position in the corpus, counts, and lengths of the
//! unfinished files. A later run resumes at the last record that is still valid. Nothing is
//! trusted: the corpus up to that position and the unfinished files are read again and compared
//! with checksums, so only the tokenizing is saved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use packtok_corpus::Error as CorpusError;
use packtok_corpus::OnBadDocument;
use packtok_corpus::rejects::{Rejects, RejectsCheckpoint, num_matching};
use packtok_corpus::{Plugin, ResumePoint, Source};
use packtok_jobs::journal::Journal;
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{Checkpoint, Counts, MappedFile, Metadata, Writer, crash};
use packtok_tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};

use super::existing::compare;
use super::recorded::{metadata, recorded_sources, redacted};
use super::{CorpusPart, PackOptions, RejectFault, reader};
use crate::error::{Error, Result};

/// Name of the rejects among the unfinished files.
const REJECTS_NAME: &str = "rejects";

/// The head of the journal: everything that determines the output's bytes, except the corpus.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    packtok_journal: u32,
    metadata: Metadata,
    /// CRC32C of the raw index, if one is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index_crc32c: Option<u32>,
}

/// Version of the journal.
const VERSION: u32 = 1;

/// A record of progress: the unfinished files contain everything before a position in the corpus.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Span {
    /// The sources that ended since the previous span.
    closed: Vec<packtok_pbin::Source>,
    /// Label of the source that contains the position; `None` at the end of the corpus.
    source: Option<String>,
    place: ResumePoint,
    /// Lines of that source before the position.
    pub(super) lines: u64,
    /// Lines before the position, for each source that is only partly read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) part_lines: BTreeMap<usize, u64>,
    /// The counts of all lines before the position.
    pub(super) counts: Counts,
    pbin: Checkpoint,
    rejects: RejectsCheckpoint,
}

impl Span {
    /// Index of the source that the span ends in.
    pub(super) fn source(&self) -> usize {
        self.place.source
    }
}

/// A started run, possibly resumed.
pub(super) struct StartedRun {
    pub(super) notes: Notes,
    pub(super) parts: Parts,
}

/// The state that a run starts from.
pub(super) struct Parts {
    pub(super) reader: packtok_corpus::Reader,
    pub(super) writer: Writer,
    pub(super) rejects: Rejects,
    /// The last valid span.
    pub(super) span: Span,
    num_closed: usize,
}

/// The journal of a run and its pending changes.
pub(super) struct Notes {
    journal: Journal,
    span_bytes: u64,
    /// End of the last batch.
    place: ResumePoint,
    /// Digests of sources that ended since the last span.
    closed: Vec<u32>,
    /// Number of sources recorded as ended.
    num_closed: usize,
    /// Bytes of text since the last span.
    pending_bytes: u64,
    /// Whether a recorded span is worth keeping.
    is_worth_keeping: bool,
}

/// Takes ownership of the output, and resumes an unfinished run.
///
/// # Errors
/// Another run owns the output, or an unfinished run has other options; a source cannot be read.
pub(super) fn begin(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    part: &CorpusPart<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<StartedRun> {
    let total_bytes = part.sources.iter().map(Source::span_bytes).sum();
    let mut tick = |bytes_read| {
        let progress = Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        };
        report_progress(monitor, &progress)
    };
    let mut journal = match part.shard {
        None => Journal::open(&options.spec.output, &mut || tick(0))?,
        // A cluster task that is presumed dead may still run next to its replacement.
        Some(_) => Journal::open_or_private(&options.spec.output, &mut || tick(0))?,
    };
    match resume_after(options, tokenizer, part, &mut journal, &mut tick) {
        Ok(parts) => Ok(parts.started(options, journal)),
        Err(error) => {
            if journal.is_empty() {
                // The first error is reported, not an error of the cleanup.
                let _ = journal.remove();
            }
            Err(error)
        }
    }
}

/// The unfinished files and the corpus reader, positioned after the last valid span.
fn resume_after(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    part: &CorpusPart<'_>,
    journal: &mut Journal,
    tick: &mut dyn FnMut(u64) -> packtok_jobs::Result<()>,
) -> Result<Parts> {
    let sources = part.sources;
    let mut spans = spans_of(options, tokenizer, part, journal)?;
    let rejects_path = journal.folder().join(REJECTS_NAME);
    spans.truncate(num_matching(
        &rejects_path,
        spans.iter().map(|span| span.rejects),
    )?);
    let corpus_ahead = pass(options, sources, &mut spans, tick)?;
    let checkpoints: Vec<Checkpoint> = spans.iter().map(|span| span.pbin).collect();
    let mut stop = None;
    let writer = Writer::keep(
        &options.spec.output,
        (options.width_for(tokenizer), options.spec.recorded.origins),
        journal.folder(),
        &checkpoints,
        &mut |_| match tick(0) {
            Ok(()) => std::ops::ControlFlow::Continue(()),
            Err(error) => {
                stop = Some(error);
                std::ops::ControlFlow::Break(())
            }
        },
    );
    if let Some(error) = stop {
        return Err(error.into());
    }
    let (writer, num_spans) = writer?;
    let is_shorter = num_spans < spans.len();
    spans.truncate(num_spans);
    journal.truncate(num_spans)?;
    let closed: Vec<u32> = spans
        .iter()
        .flat_map(|span| &span.closed)
        .filter_map(|source| source.crc32c)
        .collect();
    let span = spans.pop().unwrap_or_else(|| Span {
        counts: no_counts(options),
        ..Span::default()
    });
    let reader = match corpus_ahead {
        Some(reader) if !is_shorter => reader,
        _ => reader_at(options, sources, span.place, &closed)?,
    };
    let rejects = Rejects::keep(options.rejects_path(), rejects_path, span.rejects)?;
    Ok(Parts {
        reader,
        writer,
        rejects,
        span,
        num_closed: closed.len(),
    })
}

/// The counts before the first line. Bytes of a text say nothing about ids that were cut off or
/// added as padding.
fn no_counts(options: &PackOptions) -> Counts {
    let recorded = &options.spec.recorded;
    let has_all_ids = recorded.truncate_to.is_none() && recorded.padding.is_none();
    Counts {
        text: Counts::EMPTY.text.filter(|_| has_all_ids),
        ..Counts::EMPTY
    }
}

impl Parts {
    fn started(self, options: &PackOptions, journal: Journal) -> StartedRun {
        let notes = Notes {
            journal,
            span_bytes: options.spec.span_bytes,
            place: self.span.place,
            closed: Vec::new(),
            num_closed: self.num_closed,
            pending_bytes: 0,
            is_worth_keeping: self.span.counts.documents > 0,
        };
        StartedRun { notes, parts: self }
    }

    /// Bytes of the sources that need not be tokenized again.
    pub(super) fn resumed_bytes(&self) -> u64 {
        self.reader.bytes_read()
    }
}

/// The spans of the journal that match these options. Without any, starts a new journal.
fn spans_of(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    part: &CorpusPart<'_>,
    journal: &mut Journal,
) -> Result<Vec<Span>> {
    let head = Head {
        packtok_journal: VERSION,
        metadata: Metadata {
            shard: part.shard.clone(),
            ..metadata(options, tokenizer, Counts::default(), false)
        },
        index_crc32c: options
            .spec
            .index_path
            .as_ref()
            .map(|path| digest(path))
            .transpose()?,
    };
    let recorded = if options.spec.restart {
        None
    } else {
        journal.read::<Head, Span>()?
    };
    // An unfinished run without documents has no progress to resume or to lose.
    let has_documents = |spans: &[Span]| spans.last().is_some_and(|span| span.counts.documents > 0);
    let Some((journal_head, mut spans)) = recorded.filter(|(_, spans)| has_documents(spans)) else {
        journal.begin(&head)?;
        return Ok(Vec::new());
    };
    let differing = |what: &str, found: String, expected: String| {
        if found == expected {
            Ok(())
        } else {
            Err(Error::JournalDiffers {
                path: journal.folder().to_owned(),
                what: what.to_owned(),
                found,
                expected,
            })
        }
    };
    let writer = |head: &Head| {
        let writer = &head.metadata.writer;
        format!("{} {}", writer.name, writer.version)
    };
    differing("its writer", writer(&journal_head), writer(&head))?;
    compare(&journal_head.metadata, &head.metadata, &differing)?;
    let index = |head: &Head| {
        let crc32c = head.index_crc32c;
        crc32c.map_or_else(
            || "none".to_owned(),
            |crc32c| format!("CRC32C {crc32c:08x}"),
        )
    };
    differing("its raw index", index(&journal_head), index(&head))?;
    // Lines that were skipped then would end this run, so they are read again.
    if options.spec.on_bad_document == OnBadDocument::Fail {
        keep_while(&mut spans, |counts| counts.rejected == 0);
    }
    // The error names the first reject above the limit, so that line is read again.
    keep_while(&mut spans, |counts| {
        RejectFault::of_part(options.spec.max_rejects, counts.rejected).is_none()
    });
    Ok(spans)
}

/// Truncates `spans` at the first span whose counts fail `is_kept`.
fn keep_while(spans: &mut Vec<Span>, is_kept: impl Fn(&Counts) -> bool) {
    let num_kept = (spans.iter())
        .take_while(|span| is_kept(&span.counts))
        .count();
    spans.truncate(num_kept);
}

fn digest(path: &Path) -> Result<u32> {
    Ok(crc32c::crc32c(MappedFile::open(path)?.bytes()))
}

/// Truncates `spans` at the first span whose part of the corpus has changed. Returns the reader,
/// if it is positioned after the last valid span.
fn pass(
    options: &PackOptions,
    sources: &[Source],
    spans: &mut Vec<Span>,
    tick: &mut dyn FnMut(u64) -> packtok_jobs::Result<()>,
) -> Result<Option<packtok_corpus::Reader>> {
    let mut reader = reader(options, sources)?;
    let plugin = options.spec.plugin.as_deref();
    let mut num_closed = 0;
    for i in 0..spans.len() {
        let span = &spans[i];
        check_labels(options, sources, num_closed, span)?;
        let same_sizes = span
            .closed
            .iter()
            .zip(&sources[num_closed..])
            .all(|(noted, source)| noted.bytes == source.bytes);
        num_closed += span.closed.len();
        if plugin.is_some_and(Plugin::is_resumable) {
            // A resumable plug-in starts where the last span ends and does not repeat earlier
            // documents.
            continue;
        }
        let closed = span.closed.iter().filter_map(|source| source.crc32c);
        let closed: Vec<u32> = closed.collect();
        let is_same = same_sizes
            && match reader.pass(span.place, &closed, &mut |bytes| Ok(tick(bytes)?)) {
                Ok(is_same) => is_same,
                // A fault of a source is reported when packing reaches it.
                Err(
                    CorpusError::DamagedCompression { .. }
                    | CorpusError::ZstdWindow { .. }
                    | CorpusError::SourceChanged { .. },
                ) => false,
                Err(error) => return Err(error.into()),
            };
        if let (false, Some(plugin)) = (is_same, plugin) {
            let ended = sources.get(span.place.source.min(sources.len() - 1));
            return Err(Error::Corpus(CorpusError::OtherDocuments {
                plugin: plugin.name().to_owned(),
                path: ended.map_or_else(PathBuf::new, |source| source.path.clone()),
            }));
        }
        if !is_same {
            spans.truncate(i);
            return Ok(None);
        }
    }
    Ok((!plugin.is_some_and(Plugin::is_resumable)).then_some(reader))
}

/// Checks that the labels of the sources in a span equal those of this run.
fn check_labels(
    options: &PackOptions,
    sources: &[Source],
    num_closed: usize,
    span: &Span,
) -> Result<()> {
    let closed = span.closed.iter().map(|source| &source.path);
    for (i, noted) in (num_closed..).zip(closed.chain(&span.source)) {
        let label = sources.get(i).map_or_else(
            || "none".to_owned(),
            |source| redacted(&source.label, &options.spec.redactions),
        );
        if *noted != label {
            return Err(Error::JournalDiffers {
                path: packtok_jobs::journal::folder_of(&options.spec.output),
                what: format!("its source {i}"),
                found: noted.clone(),
                expected: label,
            });
        }
    }
    Ok(())
}

/// A reader positioned at `place`.
fn reader_at(
    options: &PackOptions,
    sources: &[Source],
    place: ResumePoint,
    closed: &[u32],
) -> Result<packtok_corpus::Reader> {
    if options.spec.index_path.is_some() {
        let mut reader = reader(options, sources)?;
        reader.pass(place, closed, &mut |_| Ok(()))?;
        return Ok(reader);
    }
    let reader = packtok_corpus::Reader::at(sources.to_vec(), options.spec.read(), place, closed)?;
    Ok(reader)
}

impl Notes {
    /// Records the end of a written batch; returns whether the next span is due.
    pub(super) fn advance(
        &mut self,
        end: Option<ResumePoint>,
        closed: &[u32],
        text_bytes: u64,
    ) -> bool {
        self.closed.extend_from_slice(closed);
        self.pending_bytes += text_bytes;
        match end {
            None => false,
            Some(place) => {
                self.place = place;
                self.pending_bytes >= self.span_bytes
            }
        }
    }

    /// Records the end of all sources, with their digests.
    pub(super) fn end(&mut self, digests: &[Option<u32>]) {
        let known = self.num_closed + self.closed.len();
        let rest: Option<Vec<u32>> = digests.iter().skip(known).copied().collect();
        // A source read by an index has no digest; its end is the end of the last batch.
        if let Some(rest) = rest {
            self.closed.extend(rest);
            self.place = ResumePoint {
                source: digests.len(),
                ..ResumePoint::default()
            };
        }
    }

    /// Whether the unfinished files have changes that the journal does not record.
    pub(super) fn has_pending(&self) -> bool {
        self.pending_bytes > 0 || !self.closed.is_empty()
    }

    /// Index of the source that contains the position.
    pub(super) fn source(&self) -> usize {
        self.place.source
    }

    /// Appends a span for everything up to the position.
    pub(super) fn note(
        &mut self,
        options: &PackOptions,
        sources: &[Source],
        done: Done,
    ) -> Result<()> {
        crash::point("span flushed");
        let closed = self.closed.drain(..).map(Some).collect::<Vec<_>>();
        let ended = &sources[self.num_closed..][..closed.len()];
        self.num_closed += closed.len();
        let span = Span {
            closed: recorded_sources(options, ended, closed),
            source: sources
                .get(self.place.source)
                .map(|source| redacted(&source.label, &options.spec.redactions)),
            place: self.place,
            lines: done.lines,
            part_lines: done.part_lines,
            counts: done.counts,
            pbin: done.pbin,
            rejects: done.rejects,
        };
        self.journal.append(&span)?;
        self.is_worth_keeping |= self.pending_bytes >= self.span_bytes && span.counts.documents > 0;
        self.pending_bytes = 0;
        crash::point("span noted");
        Ok(())
    }

    /// Checks that this process still owns the output.
    pub(super) fn check_owner(&self) -> Result<()> {
        Ok(self.journal.check_owner()?)
    }

    /// Whether the recorded spans would save work.
    pub(super) fn are_worth_keeping(&self) -> bool {
        self.is_worth_keeping && !self.journal.is_private()
    }

    /// Stops with `error`, and keeps the unfinished files if they would save work.
    pub(super) fn give_up(self, error: Error) -> Error {
        if self.are_worth_keeping() {
            let source = Box::new(error);
            return Error::Kept { source };
        }
        // The first error is reported; the next run removes the rest of the journal.
        let _ = self.journal.remove();
        error
    }

    /// Removes the journal after the output was published.
    pub(super) fn remove(self) -> Result<()> {
        Ok(self.journal.remove()?)
    }
}

/// The progress of the sink.
pub(super) struct Done {
    pub(super) lines: u64,
    pub(super) part_lines: BTreeMap<usize, u64>,
    pub(super) counts: Counts,
    pub(super) pbin: Checkpoint,
    pub(super) rejects: RejectsCheckpoint,
}
