//! Makes rows of tokens from documents in their order: `concat_chunk`, `chunk` and
//! `pack_chunk(strategy="next_fit")`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Sample;
use super::builder::{OperatorSpec, Site};
use super::node::{History, Node};
use super::position::{Numbers, Position, damaged};
use super::report::Report;
use super::sample::{DocumentPart, Name, RowFields, RowLayout, SampleOrigin};
use super::value::Value;
use crate::error::{Error, Result};

/// Arguments of the operators that make rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowsSpec {
    chunk_length: usize,
    columns: Vec<String>,
    drop_remainder: bool,
    fields: RowFields,
}

impl RowsSpec {
    pub(super) fn options(&self, of: RowsOf) -> RowOptions {
        let columns = self.columns.iter().map(|name| name.as_str().into());
        RowOptions {
            of,
            length: self.chunk_length,
            columns: columns.collect(),
            drop_remainder: self.drop_remainder,
            fields: self.fields,
        }
    }

    pub(super) fn build(&self, site: &Site<'_>, of: RowsOf) -> Result<Box<dyn Node>> {
        let (upstream, options) = (site.input()?, self.options(of));
        Ok(Box::new(Rows::new(upstream, options, site.report())))
    }
}

/// Divides the tokens of all documents, one after the other, into rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConcatChunkSpec(RowsSpec);

impl OperatorSpec for ConcatChunkSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        self.0.build(site, RowsOf::Concat)
    }
}

/// Divides every document into rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChunkSpec(RowsSpec);

impl OperatorSpec for ChunkSpec {
    fn build(&self, site: &Site<'_>) -> Result<Box<dyn Node>> {
        self.0.build(site, RowsOf::Document)
    }
}

/// The rule for combining documents into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsOf {
    /// Consecutive tokens of all documents.
    Concat,
    /// Consecutive tokens of one document.
    Document,
    /// Complete documents that fit, in order. A row ends before the first document that does not
    /// fit.
    Whole {
        /// Whether a document longer than a row is dropped; it is truncated otherwise.
        discard_long: bool,
    },
}

/// Options of rows.
#[derive(Debug, Clone)]
pub(super) struct RowOptions {
    /// The rule for combining documents into rows.
    pub(super) of: RowsOf,
    /// Tokens of a complete row, at least 1.
    pub(super) length: usize,
    /// The columns of a row. All columns of a document have the same length.
    pub(super) columns: Vec<Name>,
    /// Whether incomplete rows are dropped: at the end, or with [`RowsOf::Document`], at the end
    /// of each document.
    pub(super) drop_remainder: bool,
    /// The fields that rows have in addition to the columns.
    pub(super) fields: RowFields,
}

/// A document that is being divided into rows.
pub(super) struct Document {
    pub(super) number: u64,
    pub(super) mark: Vec<u8>,
    columns: Vec<Value>,
    pub(super) len: usize,
    place: Option<SampleOrigin>,
    /// The token after the last kept token, if the document was truncated.
    next: Option<i64>,
}

impl Document {
    /// The document of a sample, with the columns that rows have.
    pub(super) fn of(sample: &mut Sample, options: &RowOptions) -> Result<Self> {
        let mut columns = Vec::with_capacity(options.columns.len());
        for name in &options.columns {
            columns.push(sample.take_required_tokens(name)?);
        }
        let lengths = columns.iter().map(Value::num_tokens);
        if let Some(i) = lengths
            .clone()
            .position(|len| len != columns[0].num_tokens())
        {
            return Err(Error::UnequalColumns {
                at: sample.shown_place(),
                first: options.columns[0].to_string(),
                second: options.columns[i].to_string(),
            });
        }
        Ok(Self {
            number: 0,
            mark: Vec::new(),
            len: columns.first().and_then(Value::num_tokens).unwrap_or(0),
            columns,
            place: sample.place.take(),
            next: None,
        })
    }

    /// The token at `i`, or that after the end of a truncated document.
    pub(super) fn token(&self, i: usize) -> Option<i64> {
        match self.columns.first() {
            Some(ids) if i < self.len => ids.token(i),
            _ => self.next,
        }
    }
}

/// A row in the process of being filled.
pub(super) struct RowBuilder {
    len: usize,
    columns: Vec<Value>,
    layout: RowLayout,
}

impl RowBuilder {
    /// A row of `len` tokens.
    pub(super) fn new(len: usize, options: &RowOptions) -> Self {
        Self {
            len,
            columns: Vec::with_capacity(options.columns.len()),
            layout: RowLayout {
                joins_documents: options.of == RowsOf::Concat,
                fields: options.fields,
                ids: options.columns.first().cloned(),
                ..RowLayout::default()
            },
        }
    }

    /// Appends tokens of a document.
    pub(super) fn push(&mut self, document: &Document, range: Range<usize>) {
        let num_used = range.len();
        self.layout.segments.push(num_used as u32);
        self.layout.parts.push(DocumentPart {
            place: document.place.clone(),
            start: range.start as u64,
        });
        for (i, value) in document.columns.iter().enumerate() {
            if i == self.columns.len() {
                self.columns.push(value.empty_like(self.len));
            }
            self.columns[i].append(value, range.clone());
        }
    }

    /// Finishes the row. `next` is the token after its last token, if that token is the label of
    /// the last token.
    pub(super) fn finish(mut self, options: &RowOptions, next: Option<i64>) -> Sample {
        self.layout.next = next;
        let names = options.columns.iter().cloned();
        Sample {
            columns: names.zip(self.columns).collect(),
            layout: Some(Box::new(self.layout)),
            ..Sample::default()
        }
    }
}

/// The node that makes rows.
struct Rows {
    upstream: History,
    options: RowOptions,
    report: Arc<Report>,
    /// Documents with unused tokens. The first `offset` tokens of the first document are used.
    pending: VecDeque<Document>,
    num_tokens: usize,
    /// Number of used tokens of the first pending document, or, if none is pending, of the next
    /// document.
    offset: usize,
}

impl Rows {
    fn new(upstream: Box<dyn Node>, options: RowOptions, report: Arc<Report>) -> Self {
        Self {
            upstream: History::new(upstream),
            options,
            report,
            pending: VecDeque::new(),
            num_tokens: 0,
            offset: 0,
        }
    }

    /// Reads the next document; false at the end.
    fn read_document(&mut self) -> Result<bool> {
        let number = self.upstream.number();
        let mut mark = Numbers::default();
        let Some(mut sample) = self.upstream.pull(&mut mark)? else {
            return Ok(false);
        };
        let document = Document::of(&mut sample, &self.options)?;
        let used = if self.pending.is_empty() {
            self.offset
        } else {
            0
        };
        if used > 0 && used >= document.len {
            return Err(damaged());
        }
        // A document without tokens is not pending, but a state may name it.
        if document.len > 0 {
            self.num_tokens += document.len - used;
            self.pending.push_back(Document {
                number,
                mark: mark.into_bytes(),
                ..document
            });
        }
        Ok(true)
    }

    /// A row of the next `len` pending tokens.
    fn take(&mut self, len: usize) -> Sample {
        let mut row = RowBuilder::new(len, &self.options);
        let mut next = None;
        let mut rest = len;
        while rest > 0 {
            let document = &self.pending[0];
            let num_used = rest.min(document.len - self.offset);
            row.push(document, self.offset..self.offset + num_used);
            next = document.token(self.offset + num_used);
            rest -= num_used;
            self.use_up(num_used);
        }
        if self.options.of == RowsOf::Concat {
            let first = self.pending.front();
            next = first.and_then(|first| first.token(self.offset));
        }
        row.finish(&self.options, next)
    }

    /// Marks `len` more tokens of the first pending document as used.
    fn use_up(&mut self, len: usize) {
        self.offset += len;
        self.num_tokens -= len;
        if self
            .pending
            .front()
            .is_some_and(|first| first.len == self.offset)
        {
            self.pending.pop_front();
            self.offset = 0;
        }
    }

    /// Passes over the rest of the first pending document and returns its length.
    fn pass_first(&mut self) -> usize {
        let rest = self.pending.front().map(|first| first.len - self.offset);
        self.use_up(rest.unwrap_or(0));
        rest.unwrap_or(0)
    }

    /// Drops the rest of the first pending document.
    fn drop_first(&mut self) {
        let num_dropped = self.pass_first();
        self.report.add_dropped(num_dropped);
    }

    fn next_concatenated(&mut self) -> Result<Option<Sample>> {
        // The label of the last token is the token after it.
        let num_labels = usize::from(self.options.fields.needs_next());
        while self.num_tokens < self.options.length + num_labels {
            if !self.read_document()? {
                if self.options.drop_remainder || self.num_tokens == 0 {
                    while !self.pending.is_empty() {
                        self.drop_first();
                    }
                    return Ok(None);
                }
                return Ok(Some(self.take(self.num_tokens.min(self.options.length))));
            }
        }
        Ok(Some(self.take(self.options.length)))
    }

    fn next_of_document(&mut self) -> Result<Option<Sample>> {
        loop {
            match self.pending.front().map(|first| first.len - self.offset) {
                None if !self.read_document()? => return Ok(None),
                None => {}
                Some(rest) if rest >= self.options.length => {
                    return Ok(Some(self.take(self.options.length)));
                }
                Some(_) if self.options.drop_remainder => self.drop_first(),
                Some(rest) => return Ok(Some(self.take(rest))),
            }
        }
    }

    fn next_of_whole(&mut self, discard_long: bool) -> Result<Option<Sample>> {
        loop {
            let is_complete = self.num_tokens > self.options.length;
            if !is_complete && self.read_document()? {
                let is_long = |document: &Document| document.len > self.options.length;
                if self.pending.back().is_some_and(is_long) {
                    self.shorten_last(discard_long);
                }
                continue;
            }
            let last = if is_complete {
                self.pending.back()
            } else {
                None
            };
            return match self.num_tokens - last.map_or(0, |last| last.len) {
                0 => Ok(None),
                len => Ok(Some(self.take(len))),
            };
        }
    }

    /// Drops or truncates the last pending document, which is longer than a row.
    fn shorten_last(&mut self, discard_long: bool) {
        let Some(mut last) = self.pending.pop_back() else {
            return;
        };
        self.num_tokens -= last.len;
        if discard_long {
            self.report.add_dropped(last.len);
            return;
        }
        self.report.add_dropped(last.len - self.options.length);
        last.next = last.token(self.options.length);
        last.len = self.options.length;
        self.num_tokens += last.len;
        self.pending.push_back(last);
    }
}

impl Node for Rows {
    fn next(&mut self) -> Result<Option<Sample>> {
        let row = match self.options.of {
            RowsOf::Concat => self.next_concatenated(),
            RowsOf::Document => self.next_of_document(),
            RowsOf::Whole { discard_long } => self.next_of_whole(discard_long),
        };
        let oldest = self.pending.front().map(|first| first.number);
        self.upstream
            .forget_before(oldest.unwrap_or(self.upstream.number()));
        row
    }

    fn mark(&self, mark: &mut Numbers) {
        match self.pending.front() {
            Some(first) => {
                mark.push(first.number);
                mark.push_bytes(&first.mark);
            }
            None => {
                mark.push(self.upstream.number());
                let mut next = Numbers::default();
                self.upstream.mark(&mut next);
                mark.push_bytes(next.bytes());
            }
        }
        mark.push(self.offset as u64);
    }

    fn advance(&mut self, mark: &mut Position<'_>) -> Result<()> {
        let (number, before) = (mark.number()?, mark.bytes()?);
        let offset = mark.number_to(usize::MAX as u64)? as usize;
        // Rows of complete documents start at the start of a document.
        if offset > 0 && matches!(self.options.of, RowsOf::Whole { .. }) {
            return Err(damaged());
        }
        while self
            .pending
            .front()
            .is_some_and(|first| first.number < number)
        {
            self.pass_first();
        }
        match self.pending.front() {
            Some(first) if first.number == number && (self.offset..first.len).contains(&offset) => {
                self.num_tokens -= offset - self.offset;
            }
            Some(_) => return Err(damaged()),
            None => self.upstream.advance(number, before)?,
        }
        self.offset = offset;
        Ok(())
    }

    fn save(&self, state: &mut Numbers) {
        let oldest = self.pending.front().map(|first| first.number);
        self.upstream
            .save(oldest.unwrap_or(self.upstream.number()), state);
        self.mark(state);
    }

    fn load(&mut self, state: &mut Position<'_>) -> Result<()> {
        self.pending.clear();
        (self.num_tokens, self.offset) = (0, 0);
        self.upstream.load(state)?;
        self.advance(state)
    }

    fn set_recomputing(&mut self, is_recomputing: bool) {
        self.upstream.set_recomputing(is_recomputing);
    }
}
