//! The ordered side: doc_batches become the pbin, the rejects file and the account of every line.

use std::collections::BTreeMap;

use packtok_pbin::{Counts, Writer};

use super::limits::Limits;
use super::ordered::{Consume, Flow};
use super::recorded::redacted;
use super::worker::{DocBatch, Outcome, Reject};
use super::{Monitor, PackOptions, Progress, tell};
use crate::corpus::{LineCounter, Source};
use crate::error::{Error, Result};
use crate::rejects::{LineNumber, RejectRecord, Rejects};

/// 1-based line numbers of rejects; where a run does not pass all lines, because it goes by an index or
/// begins inside the file, they are counted.
pub(crate) struct LineNumbers {
    counter: Option<LineCounter>,
}

impl LineNumbers {
    pub(crate) fn new(options: &PackOptions, sources: &[Source]) -> Self {
        let indexed = sources.first().filter(|_| options.index_path.is_some());
        Self {
            counter: indexed.map(LineCounter::new),
        }
    }

    /// The line of a reject in a batch that `num_lines_before` lines of its source precede.
    pub(crate) fn of(&mut self, num_lines_before: u64, reject: &Reject) -> Result<u64> {
        match &mut self.counter {
            Some(counter) => counter.line_at(reject.offset_bytes),
            None => Ok(num_lines_before + reject.line as u64 + 1),
        }
    }

    /// The same, counted from the start of a file that is read from its middle on.
    fn in_whole_file(
        &mut self,
        source: &Source,
        num_lines_before: u64,
        reject: &Reject,
    ) -> Result<u64> {
        if source.span().start > 0 {
            return LineCounter::new(source).line_at(reject.offset_bytes);
        }
        self.of(num_lines_before, reject)
    }
}

/// Writes what the workers made, in order.
pub(crate) struct Sink<'a> {
    options: &'a PackOptions,
    sources: &'a [Source],
    lines: LineNumbers,
    limits: Limits,
    pub(crate) writer: Writer,
    pub(crate) rejects: Rejects,
    pub(crate) counts: Counts,
    pub(crate) stopped_early: bool,
    /// The source at hand and how many of its lines were consumed before.
    position: (usize, u64),
    /// Lines of each source of which only a part is read.
    pub(crate) part_lines: BTreeMap<usize, u64>,
    total_bytes: u64,
    monitor: &'a mut Monitor<'a>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        options: &'a PackOptions,
        sources: &'a [Source],
        writer: Writer,
        monitor: &'a mut Monitor<'a>,
    ) -> Self {
        Self {
            options,
            sources,
            lines: LineNumbers::new(options, sources),
            limits: Limits::new(options.max_documents, options.max_tokens),
            writer,
            rejects: Rejects::new(options.rejects_path()),
            counts: Counts::default(),
            stopped_early: false,
            position: (0, 0),
            part_lines: BTreeMap::new(),
            total_bytes: sources.iter().map(Source::span_bytes).sum(),
            monitor,
        }
    }

    /// Adds the lines of a batch to the account.
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
    }

    fn write_rejects(&mut self, batch: &DocBatch) -> Result<()> {
        let source = &self.sources[batch.source];
        for reject in &batch.rejects {
            let line = self.lines.of(self.position.1, reject)?;
            // Counting up to a part's start would read all that is before it: joining adds that.
            let number = match source.span().start {
                0 => LineNumber::Line(line),
                _ => LineNumber::LineInShard(line),
            };
            self.rejects.write(&RejectRecord {
                source: redacted(&source.label, &self.options.redactions).into(),
                number,
                offset_bytes: reject.offset_bytes,
                len_bytes: reject.len_bytes,
                reason: redacted(&reject.reason.to_string(), &self.options.redactions).into(),
            })?;
        }
        Ok(())
    }
}

impl Consume<DocBatch> for Sink<'_> {
    fn consume(&mut self, batch: &mut DocBatch) -> Result<Flow> {
        if batch.source != self.position.0 {
            self.position = (batch.source, 0);
        }
        let flow = self.limits.cut(batch, self.writer.width());
        self.stopped_early |= flow == Flow::Stop;
        if batch.is_fatal {
            let reject = batch
                .rejects
                .pop()
                .expect("a fatal batch ends with its reject");
            let source = &self.sources[batch.source];
            let lines = &mut self.lines;
            return Err(Error::Document {
                line: lines.in_whole_file(source, self.position.1, &reject)?,
                path: source.path.clone(),
                offset_bytes: reject.offset_bytes,
                reason: Box::new(reject.reason),
            });
        }
        let tokens = batch.data.len() as u64 / self.writer.width().bytes();
        self.writer.append(&batch.data, &batch.document_bytes)?;
        self.write_rejects(batch)?;
        self.count(batch, tokens);
        let num_lines = batch.outcomes.len() as u64;
        self.position.1 += num_lines;
        if self.sources[batch.source].range.is_some() {
            *self.part_lines.entry(batch.source).or_default() += num_lines;
        }
        batch.shrink();
        Ok(flow)
    }

    fn tick(&mut self, bytes_read: u64) -> Result<()> {
        let progress = Progress {
            bytes_read,
            total_bytes: self.total_bytes,
            documents: self.counts.documents,
            tokens: self.counts.tokens,
        };
        tell(self.monitor, &progress)
    }
}
