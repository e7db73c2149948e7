//! The location of a record, as messages and rejects show it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::detect::format::{counts_records, offset_unit};
use crate::{Format, Source};

/// 1-based number of a record in its source, with the word that its format uses for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordNumber {
    /// A line of JSON.
    Line(u64),
    /// A line of JSON in a shard that starts inside the source, counted from the start of the
    /// shard.
    LineInShard(u64),
    /// A row of a table, not counting a header.
    Row(u64),
    /// A document of a plain text or of a source plug-in.
    Document(u64),
}

impl RecordNumber {
    /// The number `number`, under the name that `format` has for a record.
    pub fn in_format(format: Format, number: u64) -> Self {
        match format {
            Format::Jsonl => Self::Line(number),
            Format::Parquet | Format::Arrow | Format::Csv | Format::Tsv => Self::Row(number),
            Format::Text | Format::Cbor | Format::Plugin => Self::Document(number),
        }
    }

    /// Shows the record with this number in `source`, as in `a.jsonl:3` or `a.parquet: row 3`.
    pub fn shown_in(self, source: &str) -> String {
        match self {
            Self::Line(number) => format!("{source}:{number}"),
            Self::LineInShard(number) => format!("{source}: line {number} of the shard"),
            Self::Row(number) => format!("{source}: row {number}"),
            Self::Document(number) => format!("{source}: document {number}"),
        }
    }
}

/// A record of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The source.
    pub path: PathBuf,
    /// The record.
    pub number: RecordNumber,
}

impl Location {
    /// Record `number` of `source`, from 1.
    pub fn of(source: &Source, number: u64) -> Self {
        Self {
            path: source.path.clone(),
            number: RecordNumber::in_format(source.format, number),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.number.shown_in(&self.path.display().to_string()))
    }
}

impl Source {
    /// An offset of this source with its unit, for messages, as in `byte 5` or `row 5`.
    pub fn offset_shown(&self, offset: u64) -> String {
        match (offset_unit(self.format), counts_records(self.format)) {
            (unit, true) => format!("{unit} {}", offset + 1),
            (unit, false) => format!("{unit} {offset}"),
        }
    }

    /// `offset` if it counts bytes.
    pub fn offset_bytes(&self, offset: u64) -> Option<u64> {
        (!counts_records(self.format)).then_some(offset)
    }
}
