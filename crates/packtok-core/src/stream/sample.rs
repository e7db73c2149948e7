//! A sample: what flows between the nodes of a stream.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::corpus::Source;
use crate::field::NoText;

/// The name of a column.
pub type Name = Arc<str>;

/// A sample in the caller's own form, such as a dict of Python.
pub trait ForeignSample: Any + Send {
    /// The text in a column; `None` if there is none.
    fn text(&self, column: &str) -> Option<String>;

    /// The ids in a column; `None` if there are none.
    fn ids(&self, column: &str) -> Option<Vec<u32>>;

    /// Adds or replaces a column. The samples of the caller's source stay as they are.
    fn set(&mut self, column: &str, value: &Value);
}

/// A sample: columns by name.
///
/// A line of a corpus stays as it is until something needs its columns: the tokenizer looks for one
/// text only, and what makes rows drops all columns but the ids.
#[derive(Default)]
pub struct Sample {
    /// Where it was read.
    pub place: Option<SamplePlace>,
    /// The record that the sample was read from; its columns come before `columns`.
    pub record: Option<SourceRecord>,
    /// Columns that were added or replaced, in order.
    pub columns: Vec<(Name, Value)>,
    /// For a sample of joined lanes: its number.
    pub row: Option<StreamRow>,
    /// For a row of tokens: how many of them are from each document, in order.
    pub segments: Vec<u32>,
    /// For a batch: its samples.
    pub rows: Option<Vec<Sample>>,
    /// The caller's own form of the whole sample, which replaces all others.
    pub foreign: Option<Box<dyn ForeignSample>>,
}

/// A record of a corpus, unparsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceRecord {
    /// A line with a JSON object.
    JsonLine(Vec<u8>),
    /// The bytes of a text, which may not be UTF-8, under the name of its column.
    Text(Name, Vec<u8>),
    /// A row of a table without a text.
    NoText(NoText),
    /// A record that is longer than allowed, with its length in bytes.
    Oversize(u64),
}

/// The number of a row in the stream of all lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamRow {
    /// Its number, from 0.
    pub number: u64,
    /// The end of the rows of which each rank has one.
    pub end: u64,
}

/// The place of a record.
#[derive(Clone)]
pub struct SamplePlace {
    /// The files of which one is its source.
    pub sources: Arc<[Source]>,
    /// Index of the source.
    pub source: usize,
    /// Offset as in [`crate::corpus::Record`].
    pub offset: u64,
}

impl fmt::Display for SamplePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.sources[self.source];
        write!(
            f,
            "{}: {}",
            source.path.display(),
            source.offset_shown(self.offset)
        )
    }
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Token ids.
    Ids(Vec<u32>),
    /// As many ones as there are ids, such as an attention mask.
    Ones(usize),
    /// A number.
    Integer(i64),
}

impl Value {
    /// Length of a column of tokens; `None` for a number.
    pub fn num_tokens(&self) -> Option<usize> {
        match self {
            Self::Ids(ids) => Some(ids.len()),
            Self::Ones(len) => Some(*len),
            Self::Integer(_) => None,
        }
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample")
            .field("record", &self.record)
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl Sample {
    /// Bytes of the record, to divide work evenly.
    pub(super) fn len_bytes(&self) -> usize {
        match &self.record {
            Some(SourceRecord::JsonLine(line)) => line.len(),
            Some(SourceRecord::Text(_, text)) => text.len(),
            _ => 64,
        }
    }

    /// A column that was added or replaced.
    pub fn column(&self, name: &str) -> Option<&Value> {
        let found = self.columns.iter().find(|(known, _)| &**known == name);
        found.map(|(_, value)| value)
    }

    /// Takes the tokens in a column; `None` if there are none.
    pub(super) fn take_tokens(&mut self, name: &Name) -> Option<Value> {
        if let Some(foreign) = &self.foreign {
            return foreign.ids(name).map(Value::Ids);
        }
        let (_, value) = self.columns.iter_mut().find(|(known, _)| known == name)?;
        value.num_tokens()?;
        Some(std::mem::replace(value, Value::Integer(0)))
    }

    /// Adds or replaces a column.
    pub fn set(&mut self, name: &Name, value: Value) {
        if let Some(foreign) = &mut self.foreign {
            return foreign.set(name, &value);
        }
        match self.columns.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.columns.push((name.clone(), value)),
        }
    }
}
