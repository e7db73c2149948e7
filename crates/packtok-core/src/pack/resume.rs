//! Going on where a run over the same output ended.
//!
//! A run notes now and then how far it is: in the corpus, in the account, in the unfinished files. A later run
//! goes on at the last note of which everything still holds, so that nothing is taken on trust: the corpus up to
//! there is read again, and so are the unfinished files, and only the work of tokenizing is saved.

use crate::corpus::CorpusError;
use crate::pack::PackError;
use std::collections::BTreeMap;
use std::path::Path;

use packtok_pbin::{Checkpoint, Counts, MappedFile, Metadata, TokenWidth, Writer, crash};
use packtok_tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};

use super::existing::compare;
use super::recorded::{metadata, recorded_sources, redacted};
use super::{Job, OnBadDocument, PackOptions, RejectFault, reader};
use crate::corpus::{self, Place, Source};
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::pipeline::{Monitor, Progress, tell};
use crate::rejects::{Rejects, RejectsCheckpoint, num_agreed};

/// Name of the rejects among the unfinished files.
const REJECTS_NAME: &str = "rejects";

/// What a journal begins with: all that the output's bytes hang on but the corpus.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    packtok_journal: u32,
    metadata: Metadata,
    /// CRC32C of the raw index, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index_crc32c: Option<u32>,
}

/// Version of the journal.
const VERSION: u32 = 1;

/// How far a run was: everything up to a place in the corpus is in the unfinished files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Span {
    /// The sources that ended since the span before.
    closed: Vec<packtok_pbin::Source>,
    /// Label of the source that the place is in; none at the end of the corpus.
    source: Option<String>,
    place: Place,
    /// Lines of that source before the place.
    pub(super) lines: u64,
    /// Lines before the place of each source of which only a part is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) part_lines: BTreeMap<usize, u64>,
    /// The account of all lines before the place.
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

/// A run that has begun, perhaps long ago.
pub(super) struct Begun {
    pub(super) notes: Notes,
    pub(super) parts: Parts,
}

/// What a run goes on with.
pub(super) struct Parts {
    pub(super) reader: corpus::Reader,
    pub(super) writer: Writer,
    pub(super) rejects: Rejects,
    /// How far it was.
    pub(super) span: Span,
    num_closed: usize,
}

/// The journal of a run, and what is to be noted in it next.
pub(super) struct Notes {
    journal: Journal,
    span_bytes: u64,
    /// Where the last batch ended.
    place: Place,
    /// Digests of sources that ended since the last note.
    closed: Vec<u32>,
    /// Sources that were noted as ended.
    num_closed: usize,
    /// Bytes of text since the last note.
    pending_bytes: u64,
    /// Whether a span was noted that is worth being kept.
    is_worth_keeping: bool,
}

/// Takes the output for this run, and goes on with what is done already.
///
/// # Errors
/// Another run has the output, or began it with other options; a source cannot be read.
pub(super) fn begin(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<Begun> {
    let total_bytes = job.sources.iter().map(Source::span_bytes).sum();
    let mut tick = |bytes_read| {
        let progress = Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        };
        tell(monitor, &progress)
    };
    let mut journal = match job.shard {
        None => Journal::open(&options.spec.output, &mut || tick(0))?,
        // A task that is taken for dead may run on beside the one that takes its place.
        Some(_) => Journal::open_or_aside(&options.spec.output, &mut || tick(0))?,
    };
    match go_on(options, tokenizer, job, &mut journal, &mut tick) {
        Ok(parts) => Ok(parts.begun(options, journal)),
        Err(error) => {
            if journal.is_empty() {
                // As after any error, what there is to be told is this one.
                let _ = journal.remove();
            }
            Err(error)
        }
    }
}

/// The unfinished files and the corpus, behind the last span of which everything holds.
fn go_on(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    journal: &mut Journal,
    tick: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Parts> {
    let sources = job.sources;
    let mut spans = spans_of(options, tokenizer, job, journal)?;
    let rejects_path = journal.folder().join(REJECTS_NAME);
    spans.truncate(num_agreed(
        &rejects_path,
        spans.iter().map(|span| span.rejects),
    )?);
    let corpus_ahead = pass(options, sources, &mut spans, tick)?;
    let checkpoints: Vec<Checkpoint> = spans.iter().map(|span| span.pbin).collect();
    let mut stop = None;
    let writer = Writer::keep(
        &options.spec.output,
        TokenWidth::for_vocab(tokenizer.vocab_size()),
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
        return Err(error);
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
    let span = spans.pop().unwrap_or_default();
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

impl Parts {
    fn begun(self, options: &PackOptions, journal: Journal) -> Begun {
        let notes = Notes {
            journal,
            span_bytes: options.spec.span_bytes,
            place: self.span.place,
            closed: Vec::new(),
            num_closed: self.num_closed,
            pending_bytes: 0,
            is_worth_keeping: self.span.counts.documents > 0,
        };
        Begun { notes, parts: self }
    }

    /// Bytes of the sources that need not be tokenized again.
    pub(super) fn resumed_bytes(&self) -> u64 {
        self.reader.bytes_read()
    }
}

/// What the journal notes, as far as these options may build on it; a new journal if there is none.
fn spans_of(
    options: &PackOptions,
    tokenizer: &Tokenizer,
    job: &Job<'_>,
    journal: &mut Journal,
) -> Result<Vec<Span>> {
    let head = Head {
        packtok_journal: VERSION,
        metadata: Metadata {
            shard: job.shard.clone(),
            ..metadata(options, tokenizer, Counts::default(), false)
        },
        index_crc32c: options
            .spec
            .index_path
            .as_ref()
            .map(|path| digest(path))
            .transpose()?,
    };
    let found = match options.spec.restart {
        true => None,
        false => journal.read::<Head, Span>()?,
    };
    // Where no document was packed, there is nothing to continue with, and nothing to lose.
    let has_documents = |spans: &[Span]| spans.last().is_some_and(|span| span.counts.documents > 0);
    let Some((found, mut spans)) = found.filter(|(_, spans)| has_documents(spans)) else {
        journal.begin(&head)?;
        return Ok(Vec::new());
    };
    let differing = |what: &str, found: String, expected: String| match found == expected {
        true => Ok(()),
        false => Err(Error::Pack(PackError::JournalDiffers {
            path: journal.folder().to_owned(),
            what: what.to_owned(),
            found,
            expected,
        })),
    };
    let writer = |head: &Head| {
        let writer = &head.metadata.writer;
        format!("{} {}", writer.name, writer.version)
    };
    differing("its writer", writer(&found), writer(&head))?;
    compare(&found.metadata, &head.metadata, &differing)?;
    let index = |head: &Head| {
        let crc32c = head.index_crc32c;
        crc32c.map_or_else(
            || "none".to_owned(),
            |crc32c| format!("CRC32C {crc32c:08x}"),
        )
    };
    differing("its raw index", index(&found), index(&head))?;
    // Lines that were skipped then, and now end the run, are looked at again.
    if options.spec.on_bad_document == OnBadDocument::Fail {
        keep_while(&mut spans, |counts| counts.rejected == 0);
    }
    // The error names the reject that is one too many, so that is looked for again.
    keep_while(&mut spans, |counts| {
        RejectFault::of_part(options.spec.max_rejects, counts.rejected).is_none()
    });
    Ok(spans)
}

/// Cuts `spans` at the first whose account does not have a property.
fn keep_while(spans: &mut Vec<Span>, is_kept: impl Fn(&Counts) -> bool) {
    let num_kept = (spans.iter())
        .take_while(|span| is_kept(&span.counts))
        .count();
    spans.truncate(num_kept);
}

fn digest(path: &Path) -> Result<u32> {
    Ok(crc32c::crc32c(MappedFile::open(path)?.bytes()))
}

/// Cuts `spans` where the corpus is not any more what it was; returns the reader behind the last of them, if it
/// is there.
fn pass(
    options: &PackOptions,
    sources: &[Source],
    spans: &mut Vec<Span>,
    tick: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Option<corpus::Reader>> {
    let mut reader = reader(options, sources)?;
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
        let closed = span.closed.iter().filter_map(|source| source.crc32c);
        let closed: Vec<u32> = closed.collect();
        let is_same = same_sizes
            && match reader.pass(span.place, &closed, tick) {
                Ok(is_same) => is_same,
                // What is wrong with a source is said when its turn comes.
                Err(
                    Error::Corpus(CorpusError::DamagedCompression { .. })
                    | Error::Corpus(CorpusError::ZstdWindow { .. }),
                ) => false,
                Err(Error::Corpus(CorpusError::SourceChanged { .. })) => false,
                Err(error) => return Err(error),
            };
        if !is_same {
            spans.truncate(i);
            return Ok(None);
        }
    }
    Ok(Some(reader))
}

/// The sources that a span speaks of have to be those of this run, whatever is in them.
fn check_labels(
    options: &PackOptions,
    sources: &[Source],
    num_closed: usize,
    span: &Span,
) -> Result<()> {
    let closed = span.closed.iter().map(|source| &source.path);
    for (i, noted) in (num_closed..).zip(closed.chain(&span.source)) {
        let found = sources.get(i).map_or_else(
            || "none".to_owned(),
            |source| redacted(&source.label, &options.spec.redactions),
        );
        if *noted != found {
            return Err(Error::Pack(PackError::JournalDiffers {
                path: crate::journal::folder_of(&options.spec.output),
                what: format!("its source {i}"),
                found: noted.clone(),
                expected: found,
            }));
        }
    }
    Ok(())
}

/// A reader of what lies behind `place`.
fn reader_at(
    options: &PackOptions,
    sources: &[Source],
    place: Place,
    closed: &[u32],
) -> Result<corpus::Reader> {
    if options.spec.index_path.is_some() {
        let mut reader = reader(options, sources)?;
        reader.pass(place, closed, &mut |_| Ok(()))?;
        return Ok(reader);
    }
    corpus::Reader::at(sources.to_vec(), options.spec.read(), place, closed)
}

impl Notes {
    /// Takes note that a batch was written; whether it is time to note how far the run is.
    pub(super) fn advance(&mut self, end: Option<Place>, closed: &[u32], text_bytes: u64) -> bool {
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

    /// All sources have ended, with these digests.
    pub(super) fn end(&mut self, digests: &[Option<u32>]) {
        let known = self.num_closed + self.closed.len();
        let rest: Option<Vec<u32>> = digests.iter().skip(known).copied().collect();
        // A source that is read by an index has no digest: there the last batch's end is the end.
        if let Some(rest) = rest {
            self.closed.extend(rest);
            self.place = Place {
                source: digests.len(),
                ..Place::default()
            };
        }
    }

    /// Whether there is anything that was not noted.
    pub(super) fn is_behind(&self) -> bool {
        self.pending_bytes > 0 || !self.closed.is_empty()
    }

    /// Index of the source that the place is in.
    pub(super) fn source(&self) -> usize {
        self.place.source
    }

    /// Notes that everything up to the place is done.
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

    /// Whether this process still has the output for itself.
    pub(super) fn check_owner(&self) -> Result<()> {
        self.journal.check_owner()
    }

    /// Whether what was noted would save work.
    pub(super) fn are_worth_keeping(&self) -> bool {
        self.is_worth_keeping && !self.journal.is_aside()
    }

    /// Gives up for `error`, and keeps for a later run what would save work and nothing else.
    pub(super) fn give_up(self, error: Error) -> Error {
        if self.are_worth_keeping() {
            let source = Box::new(error);
            return Error::Kept { source };
        }
        // There is an error to be told already, and what stays is removed by the next run.
        let _ = self.journal.remove();
        error
    }

    /// The output is published: nothing more is needed.
    pub(super) fn remove(self) -> Result<()> {
        self.journal.remove()
    }
}

/// What the sink knows of how far it is.
pub(super) struct Done {
    pub(super) lines: u64,
    pub(super) part_lines: BTreeMap<usize, u64>,
    pub(super) counts: Counts,
    pub(super) pbin: Checkpoint,
    pub(super) rejects: RejectsCheckpoint,
}
