//! A sample: the unit that nodes of a stream pass on.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::field::NoText;
use packtok_corpus::{Body, Compression, Format, LineCounter, Record, Source, compression, is_url};
use packtok_dataset::files::file_set::Files;
use packtok_dataset::items::token_rows::{RowIds, TokenRow};
use serde::{Deserialize, Serialize};

use super::value::{Found, Value};
use crate::error::{Error, Result};

/// The column of ids.
pub(super) const IDS_COLUMN: &str = "input_ids";

/// The name of a column.
pub type Name = Arc<str>;

/// A sample in the caller's own form, such as a dict of Python.
pub trait ForeignSample: Any + Send {
    /// About how many bytes it has, which bounds how many samples are in memory.
    fn len_bytes(&self) -> usize;

    /// The bytes of the text in a column, which may not be UTF-8; or the type of the actual
    /// content.
    ///
    /// # Errors
    /// The caller's code failed.
    fn text(&self, column: &str) -> Result<Found<Vec<u8>, &'static str>>;

    /// The tokens in a column; or, as a predicate of the column, the reason why it has none.
    ///
    /// # Errors
    /// The caller's code failed.
    fn tokens(&self, column: &str) -> Result<Found<Value, String>>;
}

/// A sample: columns by name.
///
/// A line of a corpus is kept unparsed until a step needs its columns. The tokenizer only looks
/// for one text, and steps that make rows drop all columns except the ids.
#[derive(Default)]
pub struct Sample {
    /// The position of the record of the sample.
    pub place: Option<SampleOrigin>,
    /// The action that its source sets for a document without text.
    pub on_bad_document: OnBadDocument,
    /// The record that the sample was read from; its columns come before `columns`.
    pub record: Option<SourceRecord>,
    /// Columns that were added or replaced, in order.
    pub columns: Vec<(Name, Value)>,
    /// The form in which the caller receives the tokens of `columns`.
    pub form: TokenForm,
    /// The number of the row, for a sample of joined lanes.
    pub row: Option<StreamRow>,
    /// The documents of the row and the fields to derive from them, for a row of tokens.
    pub layout: Option<Box<RowLayout>>,
    /// Whether the sample is a placeholder: the last round has no row for this rank.
    pub is_absent: bool,
    /// The samples of the batch, for a batch.
    pub rows: Option<Vec<Sample>>,
    /// The caller's own form of a sample, instead of a record. The entries of `columns` follow its
    /// columns.
    pub foreign: Option<Box<dyn ForeignSample>>,
}

/// A record of a corpus, unparsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceRecord {
    /// A line with a JSON object.
    JsonLine(Vec<u8>),
    /// The bytes of a text, which may not be UTF-8, with the name of its column.
    Text(Name, Vec<u8>),
    /// A row of a table without a text.
    NoText(NoText),
    /// A record that is longer than allowed.
    Oversize {
        /// The length of the record.
        len_bytes: u64,
        /// The longest that is allowed.
        max_document_bytes: u64,
    },
}

impl SourceRecord {
    /// The record as the corpus has it, at offset 0.
    pub(super) fn as_record(&self) -> Record<'_> {
        let (body, len_bytes) = match self {
            Self::JsonLine(line) => (Body::JsonLine(line), line.len() as u64),
            Self::Text(_, text) => (Body::Text(text), text.len() as u64),
            Self::NoText(reason) => (Body::NoText(*reason), 0),
            Self::Oversize { len_bytes, .. } => (Body::Oversize, *len_bytes),
        };
        Record {
            offset: 0,
            len_bytes,
            body,
        }
    }
}

/// The number of a row in the stream of all lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamRow {
    /// Number of the row, from 0.
    pub number: u64,
    /// The range of rows in which each rank has one row.
    pub round: (u64, u64),
    /// Whether the last round may have fewer rows than there are ranks.
    pub may_be_short: bool,
}

/// The documents of a row of tokens.
#[derive(Default)]
pub struct RowLayout {
    /// Number of tokens of the row from each document, in order. The remaining tokens are padding.
    pub segments: Vec<u32>,
    /// For each segment, the document that it is a part of.
    pub parts: Vec<DocumentPart>,
    /// The token after the last token of the row, if it is the label of the last token.
    pub next: Option<i64>,
    /// Whether the first token of the next document is the label of a document's last token.
    pub joins_documents: bool,
    /// The fields that a row has in addition to its columns.
    pub fields: RowFields,
    /// The column of its ids.
    pub ids: Option<Name>,
}

/// Where a segment is from.
pub struct DocumentPart {
    /// The origin of the document; `None` if it is not from a file.
    pub place: Option<SampleOrigin>,
    /// The segment's first token in the tokens of the document.
    pub start: u64,
}

/// Fields of a row that follow from its documents, as `TokenDataset` has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowFields {
    /// The labels.
    pub labels: Option<LabelKind>,
    /// The position of each token in its segment.
    pub position_ids: bool,
    /// The number of the segment of each token in its row.
    pub document_ids: bool,
    /// Whether a token has a label.
    pub loss_mask: bool,
    /// The boundaries of segments.
    pub cu_seqlens: bool,
}

/// The label of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelKind {
    /// The token after it.
    Next,
    /// The token itself, for models that shift labels.
    Aligned,
}

impl RowFields {
    /// Whether the token after a row is its last label.
    pub(super) fn needs_next(self) -> bool {
        self.labels == Some(LabelKind::Next) || self.loss_mask
    }
}

/// The place of a record.
#[derive(Clone)]
pub struct SampleOrigin {
    /// The files, one of which contains the record.
    pub files: OriginFiles,
    /// Index of the file.
    pub file: usize,
    /// Offset as in [`packtok_corpus::Record`]; for a token file, the number of the document.
    pub offset: u64,
}

/// The files of a source.
#[derive(Clone)]
pub enum OriginFiles {
    /// Sources of a corpus.
    Sources(Arc<[Source]>),
    /// Token files.
    Pbins(Arc<Files>),
}

impl SampleOrigin {
    /// The path of its file.
    pub fn path(&self) -> &Path {
        match &self.files {
            OriginFiles::Sources(sources) => &sources[self.file].path,
            OriginFiles::Pbins(files) => files.path(self.file),
        }
    }
}

impl SampleOrigin {
    /// File and position, and for local plain files of JSON lines also the line, for errors. To
    /// count the lines, the file is read up to the position.
    pub(super) fn shown_with_line(&self) -> String {
        let line = match &self.files {
            OriginFiles::Sources(sources) => line_of(&sources[self.file], self.offset),
            OriginFiles::Pbins(_) => None,
        };
        match line {
            Some(line) => format!("{}:{line}: byte {}", self.path().display(), self.offset),
            None => self.to_string(),
        }
    }
}

/// The line of a byte, if the file is plain and local.
fn line_of(source: &Source, offset: u64) -> Option<u64> {
    let is_local = source.format == Format::Jsonl && !is_url(&source.path);
    let is_plain = is_local && compression(source).ok()? == Compression::None;
    is_plain.then(|| LineCounter::new(source).line_at(offset).ok())?
}

impl fmt::Display for SampleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path().display())?;
        match &self.files {
            OriginFiles::Sources(sources) => {
                f.write_str(&sources[self.file].offset_shown(self.offset))
            }
            OriginFiles::Pbins(_) => write!(f, "document {}", self.offset),
        }
    }
}

/// The form in which a caller gets a column of tokens. The core works with ids in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenForm {
    /// A tensor of shape (n,).
    #[default]
    Tensor,
    /// A list, as a tokenizer returns it.
    List,
    /// A tensor of shape (1, n).
    TensorRow,
    /// An array of shape (1, n).
    ArrayRow,
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
            _ => self
                .foreign
                .as_ref()
                .map_or(64, |foreign| foreign.len_bytes()),
        }
    }

    /// A column that was added or replaced.
    pub fn column(&self, name: &str) -> Option<&Value> {
        let mut columns = self.columns.iter();
        let column = columns.find(|(known, _)| &**known == name);
        column.map(|(_, value)| value)
    }

    /// The tokens of a row and the fields to derive from them; `None` if no fields are requested.
    pub fn token_row(&self) -> Option<(TokenRow<'_>, RowFields)> {
        let layout = self.layout.as_ref()?;
        if layout.fields == RowFields::default() || self.foreign.is_some() {
            return None;
        }
        let ids = match self.column(layout.ids.as_ref()?)? {
            Value::Ids(ids) => RowIds::Unsigned(ids),
            Value::Signed(ids) => RowIds::Signed(ids),
            Value::Ones(_) | Value::Integer(_) => return None,
        };
        let row = TokenRow {
            ids,
            segments: &layout.segments,
            next: layout.next,
            joins_documents: layout.joins_documents,
        };
        Some((row, layout.fields))
    }

    /// Takes the tokens in a column; `None` if there is no such column.
    ///
    /// # Errors
    /// The column contains no tokens, or the caller's code failed.
    pub(super) fn take_tokens(&mut self, name: &Name) -> Result<Option<Value>> {
        let own = self.columns.iter_mut().find(|(known, _)| known == name);
        let tokens = match (own, &self.foreign, &self.record) {
            (Some((_, Value::Integer(_))), ..) => Found::Unfit("is a number".to_owned()),
            (Some((_, value)), ..) => Found::Value(std::mem::replace(value, Value::Integer(0))),
            (None, Some(foreign), _) => foreign.tokens(name)?,
            (None, None, Some(SourceRecord::JsonLine(line))) => Value::of_json_line(line, name),
            (None, None, _) => Found::Missing,
        };
        match tokens {
            Found::Value(tokens) => Ok(Some(tokens)),
            Found::Missing => Ok(None),
            Found::Unfit(reason) => Err(Error::UnfitColumn {
                at: self.shown_place(),
                column: name.to_string(),
                reason,
            }),
        }
    }

    /// As [`Self::take_tokens`], for a column that every sample must have.
    ///
    /// # Errors
    /// As [`Self::take_tokens`]; or the column does not exist.
    pub(super) fn take_required_tokens(&mut self, name: &Name) -> Result<Value> {
        let tokens = self.take_tokens(name)?;
        tokens.ok_or_else(|| Error::NoTokens {
            at: self.shown_place(),
            column: name.to_string(),
        })
    }

    /// The position of the sample, with the line, for an error.
    pub(super) fn shown_place(&self) -> Option<String> {
        self.place.as_ref().map(SampleOrigin::shown_with_line)
    }

    /// Adds or replaces a column. The samples of the caller's source stay as they are.
    pub fn set(&mut self, name: &Name, value: Value) {
        match self.columns.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.columns.push((name.clone(), value)),
        }
    }
}
