//! The ordered side of packing: document batches become the pbin, the rejects file and the counts.

use std::collections::BTreeMap;

use packtok_corpus::rejects::{RejectRecord, Rejects, first_reject};
use packtok_corpus::{Format, LineCounter, Location, Reader, RecordNumber, Source, counts_records};
use packtok_jobs::{Consume, Flow};
use packtok_jobs::{Monitor, Progress, report_progress};
use packtok_pbin::{Counts, Finished, Metadata, Origin, Writer};

use super::explain::explain;
use super::limits::Limits;
use super::recorded::redacted;
use super::resume::{Done, Notes, Parts, StartedRun};
use super::worker::{DocBatch, Outcome, Reject};
use super::{PackOptions, RejectFault, RejectLimit};
use crate::error::{Error, Result};

/// 1-based line numbers of rejects. If a run does not read all lines, because it uses an index or
/// starts inside a file, lines are counted separately.
pub(crate) struct LineNumbers {
    counter: Option<LineCounter>,
}

impl LineNumbers {
    pub(crate) fn new(options: &PackOptions, sources: &[Source]) -> Self {
        let indexed = sources
            .first()
            .filter(|_| options.spec.index_path.is_some());
        Self {
            counter: indexed.map(LineCounter::new),
        }
    }

    /// The number of a reject in a batch, given the number of records of its source before the
    /// batch.
    pub(crate) fn of(
        &mut self,
        source: &Source,
        num_lines_before: u64,
        reject: &Reject,
    ) -> Result<u64> {
        match &mut self.counter {
            Some(counter) => Ok(counter.line_at(reject.offset)?),
            None if counts_records(source.format) => Ok(reject.offset + 1),
            None => Ok(num_lines_before + reject.line as u64 + 1),
        }
    }

    /// The line number for a file that is read from a position other than its start.
    fn in_complete_file(
        &mut self,
        source: &Source,
        num_lines_before: u64,
        reject: &Reject,
    ) -> Result<u64> {
        if source.span().start > 0 && source.format == Format::Jsonl {
            return Ok(LineCounter::new(source).line_at(reject.offset)?);
        }
        self.of(source, num_lines_before, reject)
    }
}

/// Writes the results of the workers in order.
pub(crate) struct Sink<'a> {
    options: &'a PackOptions,
    sources: &'a [Source],
    lines: LineNumbers,
    limits: Limits,
    writer: Writer,
    rejects: Rejects,
    notes: Notes,
    pub(crate) counts: Counts,
    pub(crate) stopped_early: bool,
    /// The current source and the number of its lines consumed so far.
    position: (usize, u64),
    /// Lines of each source that is only partly read.
    pub(crate) part_lines: BTreeMap<usize, u64>,
    total_bytes: u64,
    resumed_bytes: u64,
    monitor: &'a mut Monitor<'a>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        options: &'a PackOptions,
        sources: &'a [Source],
        started: StartedRun,
        monitor: &'a mut Monitor<'a>,
    ) -> (Self, Reader) {
        let StartedRun { notes, parts } = started;
        let resumed_bytes = parts.resumed_bytes();
        let Parts {
            reader,
            writer,
            rejects,
            span,
            ..
        } = parts;
        let sink = Self {
            options,
            sources,
            lines: LineNumbers::new(options, sources),
            limits: Limits::new(
                options.spec.recorded.max_documents,
                options.spec.recorded.max_tokens,
            )
            .after(&span.counts),
            writer,
            rejects,
            notes,
            counts: span.counts,
            stopped_early: false,
            position: (span.source(), span.lines),
            part_lines: span.part_lines,
            total_bytes: sources.iter().map(Source::span_bytes).sum(),
            resumed_bytes,
            monitor,
        };
        (sink, reader)
    }

    /// Records that everything up to the end of the last batch is done.
    fn note(&mut self) -> Result<()> {
        let done = Done {
            // At the start of a source, no lines of it are done yet.
            lines: if self.notes.source() == self.position.0 {
                self.position.1
            } else {
                0
            },
            part_lines: self.part_lines.clone(),
            counts: self.counts,
            pbin: self.writer.checkpoint()?,
            rejects: self.rejects.checkpoint()?,
        };
        self.notes.note(self.options, self.sources, done)
    }

    /// Records that the whole corpus is packed; `digests` are the digests of its sources.
    pub(crate) fn note_end(&mut self, digests: &[Option<u32>]) -> Result<()> {
        self.notes.end(digests);
        self.note()
    }

    /// Stops with `error`, and keeps the unfinished files if they would save work.
    pub(crate) fn give_up(mut self, error: Error) -> Error {
        // The first error is reported. If the work cannot be recorded, the next run repeats it.
        if self.notes.are_worth_keeping() && self.notes.has_pending() {
            let _ = self.note();
        }
        self.notes.give_up(error)
    }

    /// Finishes the file and the rejects, and returns the journal for later removal.
    pub(crate) fn finish(
        self,
        metadata: &Metadata,
        sources: &[packtok_pbin::Source],
    ) -> Result<(Finished, Rejects, Notes)> {
        let Self {
            writer,
            rejects,
            notes,
            ..
        } = self;
        let finished = notes
            .check_owner()
            .and_then(|()| Ok(writer.finish(metadata, sources)?));
        match finished {
            Ok(finished) => Ok((finished, rejects, notes)),
            Err(error) => Err(notes.give_up(error)),
        }
    }

    /// Fails if the counts of the complete corpus have more rejects than allowed.
    pub(crate) fn check_rejects(&mut self) -> Result<()> {
        match RejectFault::of_complete(
            self.options.spec.max_rejects,
            &self.counts,
            self.stopped_early,
        ) {
            None => Ok(()),
            Some(fault) => Err(self.too_many_rejects(fault)),
        }
    }

    /// Fails at the first reject above the limit, if `batch` contains it.
    ///
    /// First records the work before the batch, because the rejects written for the user extend
    /// beyond that point.
    fn stop_at_limit(&mut self, batch: &mut DocBatch) -> Result<()> {
        let Some(limit @ RejectLimit::Count(allowed)) = self.options.spec.max_rejects else {
            return Ok(());
        };
        let num_rejected = batch.rejects.len() - usize::from(batch.is_fatal);
        let rejected = self.counts.rejected + num_rejected as u64;
        let Some(fault) = RejectFault::of_part(Some(limit), rejected) else {
            return Ok(());
        };
        if self.notes.are_worth_keeping() && self.notes.has_pending() {
            self.note()?;
        }
        let num_written = allowed.saturating_sub(self.counts.rejected) as usize + 1;
        batch.rejects.truncate(num_written);
        self.write_rejects(batch)?;
        Err(self.too_many_rejects(fault))
    }

    /// The error of a run with too many rejects, which are published for the user.
    fn too_many_rejects(&mut self, fault: RejectFault) -> Error {
        let output = &self.options.spec.output;
        // An existing output has its own rejects.
        let rejects = match output.symlink_metadata() {
            Ok(_) => self.options.failed_rejects_path(),
            Err(_) => self.options.rejects_path(),
        };
        match self.rejects.publish_copy(&rejects) {
            Err(error) => error.into(),
            Ok(()) => Error::TooManyRejects {
                path: output.clone(),
                fault,
                first: first_reject(&rejects),
                rejects,
            },
        }
    }

    /// Adds the lines of a batch to the counts.
    fn count(&mut self, batch: &DocBatch, tokens: u64) {
        let counts = &mut self.counts;
        for outcome in &batch.outcomes {
            *match outcome {
                Outcome::Packed => &mut counts.packed,
                Outcome::Empty => &mut counts.empty,
                Outcome::Blank => &mut counts.blank,
                Outcome::Rejected => &mut counts.rejected,
            } += 1;
        }
        counts.lines += batch.outcomes.len() as u64;
        counts.documents += batch.document_bytes.len() as u64;
        counts.tokens += tokens;
        counts.eods_in_text += batch.eods_in_text.iter().map(|eods| eods.1).sum::<u64>();
        if let Some(sum) = &mut counts.text {
            batch.texts.iter().for_each(|text| sum.add(text));
        }
    }

    fn write_rejects(&mut self, batch: &DocBatch) -> Result<()> {
        let source = &self.sources[batch.source];
        for reject in &batch.rejects {
            let number = self.lines.of(source, self.position.1, reject)?;
            // The absolute line number would require reading everything before the shard's part.
            // Joining adds the number of lines before it.
            let number = match RecordNumber::in_format(source.format, number) {
                RecordNumber::Line(line) if source.span().start > 0 => {
                    RecordNumber::LineInShard(line)
                }
                number => number,
            };
            self.rejects.write(&RejectRecord {
                source: redacted(&source.label, &self.options.spec.redactions).into(),
                number,
                offset_bytes: source.offset_bytes(reject.offset),
                len_bytes: reject.len_bytes,
                reason: redacted(&reject.reason.to_string(), &self.options.spec.redactions).into(),
            })?;
        }
        Ok(())
    }

    /// Reports progress.
    ///
    /// # Errors
    /// The caller requested to stop.
    pub(super) fn report(&mut self, bytes_read: u64) -> packtok_jobs::Result<()> {
        let progress = Progress {
            bytes_read,
            total_bytes: self.total_bytes,
            documents: self.counts.documents,
            tokens: self.counts.tokens,
            resumed_bytes: self.resumed_bytes,
            samples: None,
        };
        report_progress(self.monitor, &progress)
    }
}

impl Consume<DocBatch, Error> for Sink<'_> {
    fn consume(&mut self, batch: &mut DocBatch) -> Result<Flow> {
        if batch.source != self.position.0 {
            self.position = (batch.source, 0);
        }
        let flow = self.limits.cut(batch, self.writer.width());
        self.stopped_early |= flow == Flow::Stop;
        self.stop_at_limit(batch)?;
        if batch.is_fatal {
            let reject = batch
                .rejects
                .pop()
                .expect("a fatal batch ends with its reject");
            let source = &self.sources[batch.source];
            let lines = &mut self.lines;
            let number = lines.in_complete_file(source, self.position.1, &reject)?;
            let error = Error::BadDocument {
                location: Location::of(source, number),
                offset_bytes: source.offset_bytes(reject.offset),
                reason: Box::new(reject.reason),
            };
            return Err(explain(error, source));
        }
        let tokens = batch.data.len() as u64 / self.writer.width().bytes();
        self.writer.append(&batch.data, &batch.document_bytes)?;
        let origin = |&offset: &u64| Origin {
            source: batch.source as u64,
            offset,
        };
        self.writer.push_origins(batch.offsets.iter().map(origin))?;
        self.write_rejects(batch)?;
        self.count(batch, tokens);
        let num_lines = batch.outcomes.len() as u64;
        self.position.1 += num_lines;
        if self.sources[batch.source].range.is_some() {
            *self.part_lines.entry(batch.source).or_default() += num_lines;
        }
        if flow == Flow::Continue
            && self
                .notes
                .advance(batch.end, &batch.closed, batch.text_bytes)
        {
            self.note()?;
        }
        batch.shrink();
        Ok(flow)
    }

    fn tick(&mut self, bytes_read: u64) -> Result<()> {
        Ok(self.report(bytes_read)?)
    }
}
