//! Makes rows of tokens from documents: `concat_chunk`, `chunk` and `pack_chunk`.

use std::collections::VecDeque;

use super::node::{History, Node};
use super::position::{Numbers, Position, damaged};
use super::sample::{Name, Value};
use super::{Sample, StreamError};
use crate::error::{Error, Result};

/// How documents become rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsOf {
    /// Consecutive tokens of all documents.
    Concat,
    /// Consecutive tokens of one document.
    Document,
    /// Complete documents that fit, in order. A row ends before the document that does not fit.
    Whole {
        /// Whether a document longer than a row is dropped; it is truncated otherwise.
        discard_long: bool,
    },
}

/// Options of rows.
#[derive(Debug, Clone)]
pub struct RowOptions {
    /// How documents become rows.
    pub of: RowsOf,
    /// Tokens of a complete row, at least 1.
    pub length: usize,
    /// The columns of a row. Those of one document have equal lengths.
    pub columns: Vec<Name>,
    /// Whether an incomplete row is dropped, at the end or, with [`RowsOf::Document`], of each
    /// document.
    pub drop_remainder: bool,
}

/// The node that makes rows.
pub(super) struct Rows {
    upstream: History,
    options: RowOptions,
    /// Documents that were not used up, and their tokens without the first `offset`.
    pending: VecDeque<Document>,
    num_tokens: usize,
    /// Tokens of the first pending document that were used, or of the next one.
    offset: usize,
}

struct Document {
    number: u64,
    mark: Vec<u8>,
    columns: Vec<Value>,
    len: usize,
}

impl Rows {
    pub(super) fn new(upstream: Box<dyn Node>, options: RowOptions) -> Self {
        Self {
            upstream: History::new(upstream),
            options,
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
        let columns = self.take_columns(&mut sample)?;
        let len = columns.first().and_then(Value::num_tokens).unwrap_or(0);
        let used = match self.pending.is_empty() {
            true => self.offset,
            false => 0,
        };
        if used > len {
            return Err(damaged());
        }
        // A document without tokens may still be the one that a state names.
        if len > 0 {
            self.pending.push_back(Document {
                number,
                mark: mark.into_bytes(),
                columns,
                len,
            });
            self.num_tokens += len - used;
        }
        Ok(true)
    }

    /// The columns of a sample that rows have.
    fn take_columns(&self, sample: &mut Sample) -> Result<Vec<Value>> {
        let mut columns = Vec::with_capacity(self.options.columns.len());
        for name in &self.options.columns {
            columns.push(sample.take_tokens(name).ok_or_else(|| {
                Error::Stream(StreamError::NoTokens {
                    column: name.to_string(),
                })
            })?);
        }
        let lengths = columns.iter().map(Value::num_tokens);
        if let Some(i) = lengths
            .clone()
            .position(|len| len != columns[0].num_tokens())
        {
            return Err(Error::Stream(StreamError::UnequalColumns {
                first: self.options.columns[0].to_string(),
                second: self.options.columns[i].to_string(),
            }));
        }
        Ok(columns)
    }

    /// A row of the next `len` pending tokens.
    fn take(&mut self, len: usize) -> Sample {
        let mut columns: Vec<Value> = Vec::with_capacity(self.options.columns.len());
        let mut rest = len;
        let mut segments = Vec::new();
        while rest > 0 {
            let document = &self.pending[0];
            let num_used = rest.min(document.len - self.offset);
            segments.push(num_used as u32);
            let range = self.offset..self.offset + num_used;
            for (i, value) in document.columns.iter().enumerate() {
                match (columns.get_mut(i), value) {
                    (None, Value::Ids(ids)) => {
                        let mut row = Vec::with_capacity(len);
                        row.extend_from_slice(&ids[range.clone()]);
                        columns.push(Value::Ids(row));
                    }
                    (Some(Value::Ids(row)), Value::Ids(ids)) => {
                        row.extend_from_slice(&ids[range.clone()]);
                    }
                    (Some(Value::Ids(row)), _) => row.resize(row.len() + num_used, 1),
                    (Some(Value::Ones(ones)), Value::Ones(_)) => *ones += num_used,
                    (Some(ones), Value::Ids(ids)) => {
                        let mut row = vec![1; ones.num_tokens().unwrap_or(0)];
                        row.extend_from_slice(&ids[range.clone()]);
                        *ones = Value::Ids(row);
                    }
                    (_, _) => columns.push(Value::Ones(num_used)),
                }
            }
            rest -= num_used;
            self.use_up(num_used);
        }
        let names = self.options.columns.iter().cloned();
        Sample {
            columns: names.zip(columns).collect(),
            segments,
            ..Sample::default()
        }
    }

    /// Goes forward by `len` tokens of the first pending document.
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

    /// Drops the rest of the first pending document.
    fn drop_first(&mut self) {
        if let Some(first) = self.pending.front() {
            self.use_up(first.len - self.offset);
        }
    }

    fn next_concatenated(&mut self) -> Result<Option<Sample>> {
        while self.num_tokens < self.options.length {
            if !self.read_document()? {
                if self.options.drop_remainder || self.num_tokens == 0 {
                    while !self.pending.is_empty() {
                        self.drop_first();
                    }
                    return Ok(None);
                }
                return Ok(Some(self.take(self.num_tokens)));
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
                let is_long = |one: &Document| one.len > self.options.length;
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
            return;
        }
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
        while self
            .pending
            .front()
            .is_some_and(|first| first.number < number)
        {
            self.drop_first();
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
