//! A few records of one source as cells, for a person who looks at them.
//!
//! Work and memory are bounded: by the deadline of the options, and by a limit on each record.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use memchr::memmem;
use packtok_formats::table::{Cell, WorkLimits};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::bytes::counted::{BytesReader, CountedBytes};
use crate::detect::reject_json_lines;
use crate::error::{Error, Result};
use crate::field::{BadDocument, NoText, check_object};
use crate::formats::cbor::Cbor;
use crate::formats::csv::{Row, Rows, columns};
use crate::formats::table;
use crate::reader::Reader;
use crate::reader::chunk::{Chunk, Content, SpanContent};
use crate::{Body, Format, ReadOptions, Record, Source};

/// Most bytes of a table that are in memory as one piece.
const MAX_TABLE_BYTES: u64 = 64 << 20;
/// Bytes that are read at a time until the end of a record is found.
const READ_BYTES: usize = 16 << 10;
/// Longest name of a column.
const MAX_NAME_BYTES: usize = 256;

/// How much of records is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Most columns of a record.
    pub columns: usize,
    /// Most bytes of a value; of a record, most bytes of all values.
    pub bytes: usize,
}

/// The record at a place of a source.
#[derive(Debug, Default, Serialize)]
pub struct RecordOfSource {
    /// The line or text; `None` if the record has columns.
    pub text: Option<Cell>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Number of columns of the source.
    pub num_columns: usize,
    /// The values of the columns.
    pub cells: Vec<Cell>,
}

/// Consecutive records of a source.
#[derive(Debug, Default, Serialize)]
pub struct Excerpt {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Number of columns of these records.
    pub num_columns: usize,
    /// The records.
    pub rows: Vec<ExcerptRow>,
    /// Whether the source has more records.
    pub has_more: bool,
}

/// One of the records of an [`Excerpt`].
#[derive(Debug, Default, Serialize)]
pub struct ExcerptRow {
    /// The values by column; a missing one has no text.
    pub cells: Vec<Cell>,
    /// The text, or a line that is no object.
    pub text: Option<Cell>,
    /// The reason why packtok reads no text from the record.
    pub fault: Option<String>,
}

/// The record at `offset`, which counts as [`crate::offset_unit`] says; `None` if the source ends
/// before it.
///
/// # Errors
/// The source cannot be read, or, with an error of the kind [`ErrorKind::TimedOut`], not before the
/// deadline.
pub fn record_at(
    source: &Source,
    options: &ReadOptions,
    offset: u64,
    shown: Shown,
) -> Result<Option<RecordOfSource>> {
    let text = |cell: Option<Cell>| {
        cell.map(|cell| RecordOfSource {
            text: Some(cell),
            ..RecordOfSource::default()
        })
    };
    match source.format {
        Format::Jsonl => Ok(text(text_at(source, options, offset, b"\n", shown.bytes)?)),
        Format::Text => {
            let separator = options.text_separator.as_deref().unwrap_or_default();
            Ok(text(text_at(
                source,
                options,
                offset,
                separator,
                shown.bytes,
            )?))
        }
        Format::Cbor => Ok(text(item_at(source, options, offset, shown.bytes)?)),
        Format::Csv | Format::Tsv => row_at(source, options, offset, shown),
        Format::Parquet | Format::Arrow | Format::Plugin => {
            let rows = table::rows(
                source,
                limits(options),
                (offset, 1),
                (shown.columns, shown.bytes),
            )?;
            let mut cells = rows.rows;
            Ok(cells.pop().map(|mut cells| {
                fit(&mut cells, shown.bytes);
                RecordOfSource {
                    text: None,
                    columns: short_names(rows.columns),
                    num_columns: rows.num_columns,
                    cells,
                }
            }))
        }
    }
}

/// Up to `num_rows` records from record `first` on, which counts all but blank lines; and the error
/// that ended reading before.
pub fn first_rows(
    source: &Source,
    options: &ReadOptions,
    first: u64,
    num_rows: usize,
    shown: Shown,
) -> (Excerpt, Option<Error>) {
    let mut rows = Collected {
        first,
        num_rows,
        shown,
        seen: 0,
        column_of: HashMap::new(),
        excerpt: Excerpt::default(),
    };
    let read = match source.format {
        Format::Parquet | Format::Arrow => rows.of_table(source, options),
        Format::Csv | Format::Tsv => rows.of_csv(source, options),
        _ => rows.of_records(source, options),
    };
    let mut excerpt = rows.excerpt;
    for row in &mut excerpt.rows {
        row.cells.resize_with(excerpt.columns.len(), Cell::default);
    }
    excerpt.columns = short_names(excerpt.columns);
    (excerpt, read.err())
}

/// The limits for a table.
fn limits(options: &ReadOptions) -> WorkLimits {
    let later = || Instant::now() + Duration::from_secs(60);
    WorkLimits {
        deadline: options.deadline.unwrap_or_else(later),
        max_bytes: MAX_TABLE_BYTES,
    }
}

fn short_names(mut names: Vec<String>) -> Vec<String> {
    for name in &mut names {
        name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    }
    names
}

/// Shortens the longest values so that all together have at most `max_bytes`.
fn fit(cells: &mut [Cell], max_bytes: usize) {
    let len = |cell: &Cell| cell.text.as_ref().map_or(0, String::len);
    let mut lens: Vec<usize> = cells.iter().map(len).collect();
    lens.sort_unstable();
    let mut room = max_bytes;
    for (i, len) in lens.iter().enumerate() {
        let share = room / (lens.len() - i);
        if *len > share {
            cells.iter_mut().for_each(|cell| cell.cut(share));
            return;
        }
        room -= len;
    }
}

/// The text from `offset` to the next `end`, or to the end of the source.
fn text_at(
    source: &Source,
    options: &ReadOptions,
    offset: u64,
    end: &[u8],
    max_bytes: usize,
) -> Result<Option<Cell>> {
    let mut bytes = CountedBytes::open(source, options)?;
    if !bytes.move_to(offset)? {
        return Ok(None);
    }
    let mut text = Vec::new();
    let mut is_whole = false;
    while !is_whole && text.len() <= max_bytes + end.len() {
        let len = text.len();
        text.resize(len + READ_BYTES, 0);
        let n = bytes.read(&mut text[len..])?;
        text.truncate(len + n);
        is_whole = n == 0;
        let searched = len.saturating_sub(end.len());
        if !end.is_empty()
            && let Some(at) = memmem::find(&text[searched..], end)
        {
            text.truncate(searched + at);
            is_whole = true;
        }
    }
    if source.format == Format::Jsonl && is_whole && text.ends_with(b"\r") {
        text.pop();
    }
    let mut cell = Cell::text(&text, max_bytes);
    cell.bytes = cell.bytes.filter(|_| is_whole);
    Ok(Some(cell))
}

/// The CBOR item at `offset`, as JSON.
fn item_at(
    source: &Source,
    options: &ReadOptions,
    offset: u64,
    max_bytes: usize,
) -> Result<Option<Cell>> {
    let options = ReadOptions {
        // One item, as far as it has a text.
        chunk_bytes: READ_BYTES,
        ..options.clone()
    };
    let mut items = Cbor::open(source, &options)?;
    if !items.bytes_mut().move_to(offset)? {
        return Ok(None);
    }
    let mut buffer = Vec::new();
    let spans = match items.next_records(&mut buffer) {
        Ok(Some(Content::Spans(spans))) => spans,
        Ok(_) => return Ok(None),
        Err(Error::LongCborItem { .. }) => {
            return Ok(Some(Cell::fault(too_long(options.max_document_bytes))));
        }
        Err(error) => return Err(error),
    };
    Ok(spans.first().map(|span| match span.content {
        SpanContent::Line(start) => {
            Cell::text(&buffer[start..start + span.len_bytes as usize], max_bytes)
        }
        SpanContent::NoText(reason) => Cell::fault(BadDocument::NoText(reason).to_string()),
        SpanContent::Text(_) | SpanContent::Oversize => Cell::fault(too_long(span.len_bytes)),
    }))
}

/// The row of comma- or tab-separated values at `offset`.
fn row_at(
    source: &Source,
    options: &ReadOptions,
    offset: u64,
    shown: Shown,
) -> Result<Option<RecordOfSource>> {
    let names = columns(source, options.deadline)?;
    let mut rows = Rows::open(source, options)?;
    if !rows.move_to(offset)? {
        return Ok(None);
    }
    let row = loop {
        match rows.next_row()? {
            None => return Ok(None),
            Some(Row::Unfinished) => {}
            Some(row) => break row,
        }
    };
    if let Some(fault) = fault_of(&row, &rows, names.len(), options) {
        return Ok(Some(RecordOfSource {
            text: Some(Cell::fault(fault)),
            ..RecordOfSource::default()
        }));
    }
    let mut cells = cells_of(&rows, shown);
    fit(&mut cells, shown.bytes);
    Ok(Some(RecordOfSource {
        text: None,
        num_columns: names.len(),
        columns: short_names(names.into_iter().take(shown.columns).collect()),
        cells,
    }))
}

/// The reason why packtok reads no text from the current row.
fn fault_of(row: &Row, rows: &Rows, num_columns: usize, options: &ReadOptions) -> Option<String> {
    let no_text = |reason| Some(BadDocument::NoText(reason).to_string());
    match row {
        Row::Fields if rows.num_fields() == num_columns => None,
        Row::Fields => no_text(NoText::FieldCount {
            found: rows.num_fields(),
            expected: num_columns,
        }),
        Row::ManyFields(found) => no_text(NoText::FieldCount {
            found: *found,
            expected: num_columns,
        }),
        Row::OpenQuote => no_text(NoText::OpenQuote),
        Row::Oversize | Row::Unfinished => Some(too_long(options.max_document_bytes)),
    }
}

/// The cells of the current row.
fn cells_of(rows: &Rows, shown: Shown) -> Vec<Cell> {
    let fields = 0..rows.num_fields().min(shown.columns);
    fields
        .map(|i| Cell::text(rows.field(i), shown.bytes))
        .collect()
}

/// The fields of the current row, which do not fit the columns, as lines.
fn fields_of(rows: &Rows, shown: Shown) -> Cell {
    let mut text = Vec::new();
    for i in 0..rows.num_fields().min(shown.columns) {
        if i > 0 {
            text.push(b'\n');
        }
        text.extend_from_slice(rows.field(i));
    }
    Cell::text(&text, shown.bytes)
}

fn too_long(max_bytes: u64) -> String {
    format!("it has more than {max_bytes} bytes")
}

/// The records of a source from one on.
struct Collected {
    first: u64,
    num_rows: usize,
    shown: Shown,
    /// Number of records that were read.
    seen: u64,
    /// The columns of lines, by name.
    column_of: HashMap<String, usize>,
    excerpt: Excerpt,
}

impl Collected {
    /// Counts the next record, and returns whether it belongs to the excerpt; `None` if the excerpt
    /// is complete.
    fn next(&mut self) -> Option<bool> {
        let number = self.seen;
        self.seen += 1;
        self.excerpt.has_more = self.excerpt.rows.len() == self.num_rows;
        (!self.excerpt.has_more).then_some(number >= self.first)
    }

    fn of_table(&mut self, source: &Source, options: &ReadOptions) -> Result<()> {
        let Shown { columns, bytes } = self.shown;
        let wanted = (self.first, self.num_rows);
        let rows = table::rows(source, limits(options), wanted, (columns, bytes))?;
        let stop = self.first.saturating_add(self.num_rows as u64);
        self.excerpt = Excerpt {
            columns: rows.columns,
            num_columns: rows.num_columns,
            has_more: rows.num_rows > stop,
            rows: (rows.rows.into_iter())
                .map(|cells| ExcerptRow {
                    cells,
                    ..ExcerptRow::default()
                })
                .collect(),
        };
        Ok(())
    }

    fn of_csv(&mut self, source: &Source, options: &ReadOptions) -> Result<()> {
        reject_json_lines(source, source.format)?;
        let names = columns(source, options.deadline)?;
        self.excerpt.num_columns = names.len();
        self.excerpt.columns = names.iter().take(self.shown.columns).cloned().collect();
        let mut rows = Rows::open(source, options)?;
        // The header.
        while let Some(Row::Unfinished) = rows.next_row()? {}
        while let Some(row) = rows.next_row()? {
            if matches!(row, Row::Unfinished) {
                continue;
            }
            match self.next() {
                None => break,
                Some(false) => {}
                Some(true) => {
                    let fault = fault_of(&row, &rows, names.len(), options);
                    let has_fields = matches!(row, Row::Fields);
                    self.excerpt.rows.push(match fault {
                        None => ExcerptRow {
                            cells: cells_of(&rows, self.shown),
                            ..ExcerptRow::default()
                        },
                        fault => ExcerptRow {
                            text: has_fields.then(|| fields_of(&rows, self.shown)),
                            fault,
                            ..ExcerptRow::default()
                        },
                    });
                }
            }
        }
        Ok(())
    }

    fn of_records(&mut self, source: &Source, options: &ReadOptions) -> Result<()> {
        reject_json_lines(source, source.format)?;
        let mut reader = Reader::new(vec![source.clone()], options.clone());
        let mut buffer = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut reader, buffer, options)? {
            for record in chunk.records() {
                if matches!(record.body, Body::JsonLine(line) if line.trim_ascii().is_empty()) {
                    continue;
                }
                match self.next() {
                    None => return Ok(()),
                    Some(false) => {}
                    Some(true) => {
                        let row = self.row_of(&record, source, options)?;
                        self.excerpt.rows.push(row);
                    }
                }
            }
            buffer = chunk.into_buffer();
        }
        Ok(())
    }

    /// As [`Reader::next_chunk`]. An item that is too long ends the source, because its end is unknown.
    fn next_chunk(
        &mut self,
        reader: &mut Reader,
        buffer: Vec<u8>,
        options: &ReadOptions,
    ) -> Result<Option<Chunk>> {
        match reader.next_chunk(buffer) {
            Err(Error::LongCborItem { .. }) => {
                if self.next() == Some(true) {
                    self.excerpt.rows.push(ExcerptRow {
                        fault: Some(too_long(options.max_document_bytes)),
                        ..ExcerptRow::default()
                    });
                }
                Ok(None)
            }
            chunk => chunk,
        }
    }

    /// A line or text as a row.
    fn row_of(
        &mut self,
        record: &Record<'_>,
        source: &Source,
        options: &ReadOptions,
    ) -> Result<ExcerptRow> {
        let max_bytes = self.shown.bytes;
        let mut row = ExcerptRow::default();
        match record.body {
            Body::JsonLine(line) => match serde_json::from_slice::<Object<'_>>(line) {
                Ok(object) => {
                    for (name, value) in object.0 {
                        self.put(&mut row, name, cell_of_json(value, max_bytes));
                    }
                }
                Err(error) => {
                    let fault = check_object(line).err().map(|fault| fault.to_string());
                    row.fault = Some(fault.unwrap_or_else(|| error.to_string()));
                    row.text = Some(Cell::text(line, max_bytes));
                }
            },
            Body::Text(text) => row.text = Some(Cell::text(text, max_bytes)),
            Body::NoText(reason) => row.fault = Some(BadDocument::NoText(reason).to_string()),
            Body::Oversize if source.format == Format::Text => {
                let separator = options.text_separator.as_deref().unwrap_or_default();
                let cell = text_at(source, options, record.offset, separator, max_bytes)?;
                row.text = cell.map(|cell| Cell {
                    bytes: Some(record.len_bytes),
                    ..cell
                });
            }
            Body::Oversize => row.fault = Some(too_long(options.max_document_bytes)),
        }
        Ok(row)
    }

    /// Puts a value into the column `name`, which is added if it is new.
    fn put(&mut self, row: &mut ExcerptRow, name: String, cell: Cell) {
        let new = self.column_of.len();
        let column = *self.column_of.entry(name).or_insert_with_key(|name| {
            if new < self.shown.columns {
                self.excerpt.columns.push(name.clone());
            }
            new
        });
        self.excerpt.num_columns = self.column_of.len();
        if column < self.shown.columns {
            let len = row.cells.len().max(column + 1);
            row.cells.resize_with(len, Cell::default);
            row.cells[column] = cell;
        }
    }
}

/// A value of an object as a cell.
fn cell_of_json(value: &RawValue, max_bytes: usize) -> Cell {
    let json = value.get();
    match serde_json::from_str::<String>(json) {
        Ok(text) => Cell::text(text.as_bytes(), max_bytes),
        Err(_) => Cell::text(json.as_bytes(), max_bytes),
    }
}

/// The keys and values of an object, in order.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Whether an error is that of a deadline.
pub fn is_late(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::TimedOut)
}
