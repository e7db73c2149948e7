//! Examines the texts of a corpus on all threads and writes nothing.
//!
//! Lines are read and judged as in packing. The caller provides an examiner per thread and receives
//! its findings in corpus order.

use packtok_corpus::Reason;
use packtok_corpus::field::{Extractors, Fields};
use packtok_corpus::pipeline::{Work, run};
use packtok_corpus::{Chunk, Expansion, Location, ReadOptions, Reader, Selection, Source};
use packtok_corpus::{OnBadDocument, text_of};
use packtok_jobs::{Consume, Flow, Monitor, Progress, report_progress};
use packtok_tokenizer::Result as BpeResult;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::pack::{Outcome, PackSpec, Reject, explain};

/// The corpus to scan, and the selection of its texts.
#[derive(Clone)]
pub struct ScanOptions {
    /// Files, globs and folders, in order.
    pub inputs: Vec<String>,
    /// The selection of the files of the inputs.
    pub selection: Selection,
    /// The filters that extract the texts.
    pub fields: Fields,
    /// The action for a line that is not a document.
    pub on_bad_document: OnBadDocument,
    /// Maximum number of documents.
    pub max_documents: Option<u64>,
    /// Number of threads.
    pub num_threads: usize,
    /// Options for reading sources.
    pub read: ReadOptions,
}

impl ScanOptions {
    /// The options of a run that determine how a corpus is read.
    ///
    /// # Errors
    /// The filter is not valid jq, or a glob of the files to ignore is not valid.
    pub fn of(spec: &PackSpec) -> Result<Self> {
        Ok(Self {
            inputs: spec.input.clone(),
            selection: spec.selection()?,
            fields: spec.fields()?,
            on_bad_document: spec.on_bad_document,
            max_documents: spec.recorded.max_documents,
            num_threads: spec.num_cpus,
            read: spec.read(),
        })
    }

    /// The files that the inputs stand for.
    pub(crate) fn expand(&self) -> Result<Expansion> {
        Ok(self.read.expand(&self.inputs, &self.selection)?)
    }
}

/// Counts of the lines of a source: `lines = documents + empty + blank + rejected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// Lines read.
    pub lines: u64,
    /// Lines that are documents.
    pub documents: u64,
    /// Documents without tokens.
    pub empty: u64,
    /// Lines with whitespace only.
    pub blank: u64,
    /// Lines that are not documents.
    pub rejected: u64,
}

impl LineCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.documents += other.documents;
        self.empty += other.empty;
        self.blank += other.blank;
        self.rejected += other.rejected;
    }

    fn count(&mut self, outcome: Outcome) {
        self.lines += 1;
        *match outcome {
            Outcome::Packed => &mut self.documents,
            Outcome::Empty => &mut self.empty,
            Outcome::Blank => &mut self.blank,
            Outcome::Rejected => &mut self.rejected,
        } += 1;
    }
}

/// The work of one thread.
pub(crate) trait Examine: Send + 'static {
    /// The result for one text.
    type Finding: Send + 'static;

    /// Examines a text; returns `None` if it has no tokens.
    fn examine(&mut self, text: &str) -> BpeResult<Option<Self::Finding>>;
}

/// Receives the findings in corpus order.
pub(crate) trait Receive<F> {
    /// Receives the finding for the document in a line (from 1); returns its tokens, for progress.
    fn receive(&mut self, source: usize, line: u64, finding: F) -> Result<u64>;
}

/// The extent of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The lines of each source.
    pub(crate) lines: Vec<LineCounts>,
    /// CRC32C of the raw bytes of each source, if it was read completely.
    pub(crate) digests: Vec<Option<u32>>,
    /// Whether `max_documents` ended it.
    pub(crate) stopped_early: bool,
}

/// Lets `examiners`, one per thread, examine the texts of `sources`.
pub(crate) fn scan<E: Examine>(
    options: &ScanOptions,
    sources: &[Source],
    examiners: Vec<E>,
    receiver: &mut impl Receive<E::Finding>,
    monitor: &mut Monitor<'_>,
) -> Result<Scanned> {
    let worker = |examiner| Worker {
        extractors: options.fields.extractors(),
        examiner,
        on_bad_document: options.on_bad_document,
        max_document_bytes: options.read.max_document_bytes,
        place: (0, 0),
    };
    let workers = examiners.into_iter().map(worker).collect();
    let mut collector = Collector {
        sources,
        receiver,
        left: options.max_documents.unwrap_or(u64::MAX),
        scanned: Scanned {
            lines: vec![LineCounts::default(); sources.len()],
            digests: Vec::new(),
            stopped_early: false,
        },
        progress: Progress {
            total_bytes: sources.iter().map(Source::span_bytes).sum(),
            ..Progress::default()
        },
        monitor,
    };
    let reader = Reader::new(sources.to_vec(), options.read.clone());
    let digests = run(
        reader,
        workers,
        4 * options.read.chunk_bytes,
        &mut collector,
    )
    .map_err(|error| error.with_names(sources))?;
    Ok(Scanned {
        // Threads determine where a limit ends a scan, and thus which sources are read to the end.
        // So a limited scan has no digests.
        digests: if collector.scanned.stopped_early {
            vec![None; sources.len()]
        } else {
            digests
        },
        ..collector.scanned
    })
}

/// The lines of a chunk.
struct LineBatch<F> {
    source: usize,
    outcomes: Vec<Outcome>,
    /// The results of the examiner, one per document.
    findings: Vec<F>,
    /// The line that ends the scan.
    fatal: Option<Reject>,
}

impl<F> Default for LineBatch<F> {
    fn default() -> Self {
        Self {
            source: 0,
            outcomes: Vec::new(),
            findings: Vec::new(),
            fatal: None,
        }
    }
}

struct Worker<E> {
    extractors: Extractors,
    examiner: E,
    on_bad_document: OnBadDocument,
    max_document_bytes: u64,
    place: (usize, u64),
}

impl<E: Examine> Work for Worker<E> {
    type Out = LineBatch<E::Finding>;
    type Error = Error;

    fn work(&mut self, chunk: &Chunk, out: &mut Self::Out) -> Result<()> {
        out.source = chunk.source();
        out.outcomes.clear();
        out.findings.clear();
        out.fatal = None;
        let extractor = self.extractors.of_input(chunk.input());
        for (i, record) in chunk.records().enumerate() {
            self.place = (chunk.source(), record.offset);
            let examined = match text_of(extractor, &record, self.max_document_bytes) {
                Ok(Some(text)) => self.examiner.examine(text).map_err(Reason::Tokenizer),
                Ok(None) => {
                    out.outcomes.push(Outcome::Blank);
                    continue;
                }
                Err(reason) => Err(reason.into()),
            };
            match examined {
                Ok(Some(finding)) => {
                    out.outcomes.push(Outcome::Packed);
                    out.findings.push(finding);
                }
                Ok(None) => out.outcomes.push(Outcome::Empty),
                Err(reason) => {
                    let reason = reason.about_document()?;
                    if self.on_bad_document == OnBadDocument::Skip {
                        out.outcomes.push(Outcome::Rejected);
                        continue;
                    }
                    out.fatal = Some(Reject {
                        line: i,
                        offset: record.offset,
                        len_bytes: record.len_bytes,
                        reason,
                    });
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn place(&self) -> (usize, u64) {
        self.place
    }
}

struct Collector<'a, 'm, R> {
    sources: &'a [Source],
    receiver: &'a mut R,
    /// Number of documents left until the limit.
    left: u64,
    scanned: Scanned,
    progress: Progress,
    monitor: &'a mut Monitor<'m>,
}

impl<F, R: Receive<F>> Consume<LineBatch<F>, Error> for Collector<'_, '_, R> {
    fn consume(&mut self, batch: &mut LineBatch<F>) -> Result<Flow> {
        let lines = &mut self.scanned.lines[batch.source];
        let mut findings = batch.findings.drain(..);
        for &outcome in &batch.outcomes {
            lines.count(outcome);
            if outcome != Outcome::Packed {
                continue;
            }
            let finding = findings
                .next()
                .expect("every document of a batch was examined");
            self.progress.tokens += self.receiver.receive(batch.source, lines.lines, finding)?;
            self.progress.documents += 1;
            self.left -= 1;
            // As in packing, lines after the last document are neither counted nor judged.
            if self.left == 0 {
                self.scanned.stopped_early = true;
                return Ok(Flow::Stop);
            }
        }
        match batch.fatal.take() {
            Some(reject) => {
                let source = &self.sources[batch.source];
                let error = Error::BadDocument {
                    location: Location::of(source, lines.lines + 1),
                    offset_bytes: source.offset_bytes(reject.offset),
                    reason: Box::new(reject.reason),
                };
                Err(explain(error, source))
            }
            None => Ok(Flow::Continue),
        }
    }

    fn tick(&mut self, bytes_read: u64) -> Result<()> {
        self.progress.bytes_read = bytes_read;
        Ok(report_progress(self.monitor, &self.progress)?)
    }
}
