//! Reads tables of comma- or tab-separated values.
//!
//! The first row names the columns. Fields may be quoted as in RFC 4180, so a row may span several
//! lines. A row that does not have as many fields as the header is a bad document.

use std::time::Instant;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::bytes::counted::{BytesReader, CountedBytes};
use crate::detect::recognize;
use crate::error::{Error, Result};
use crate::field::NoText;
use crate::formats::source_reader::SKIP_TURN_BYTES;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{BOM, Format, ReadOptions, Source};

/// Reads the rows of one table.
pub(crate) struct Csv {
    options: ReadOptions,
    rows: Rows,
    header: Header,
}

/// The header of a table.
struct Header {
    num_fields: usize,
    /// The field that contains the text.
    text: usize,
}

impl Csv {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        Ok(Self {
            header: Header::read(source, options)?,
            rows: Rows::open(source, options)?,
            options: options.clone(),
        })
    }
}

impl Header {
    /// Reads the header of `source`, apart from its rows, which may be read from another place.
    fn read(source: &Source, options: &ReadOptions) -> Result<Self> {
        let columns = columns(source, options.deadline)?;
        let names = options.columns.names(source)?;
        let is_text = |column: &String| matches!(names, [name] if name == column);
        let mut texts = (0..columns.len()).filter(|&i| is_text(&columns[i]));
        match (texts.next(), texts.next()) {
            (Some(first), Some(second)) => Err(Error::ColumnTwice {
                path: source.path.clone(),
                column: names.join("."),
                first: first + 1,
                second: second + 1,
            }),
            (Some(text), None) => Ok(Self {
                num_fields: columns.len(),
                text,
            }),
            (None, _) => Err(Error::ColumnMissing {
                path: source.path.clone(),
                column: names.join("."),
                columns,
            }),
        }
    }
}

/// The columns of a table.
pub(crate) fn columns(source: &Source, deadline: Option<Instant>) -> Result<Vec<String>> {
    let options = ReadOptions {
        deadline,
        ..ReadOptions::for_json_lines(0)
    };
    let mut rows = Rows::open(source, &options)?;
    rows.max_row_bytes = MAX_HEADER_BYTES;
    Ok(match rows.next_row()? {
        Some(Row::Fields) => rows.columns(),
        _ => Vec::new(),
    })
}

impl BytesReader for Csv {
    fn next_records(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>> {
        buffer.clear();
        if self.rows.bytes.offset_bytes() == 0 {
            // The header.
            while let Some(Row::Unfinished) = self.rows.next_row()? {}
        }
        let mut spans = Vec::new();
        while buffer.len() < self.options.chunk_bytes && spans.len() < MAX_ROWS {
            let Some(row) = self.rows.next_row()? else {
                break;
            };
            let content = match row {
                Row::Fields if self.rows.ends.len() == self.header.num_fields => {
                    let start = buffer.len();
                    buffer.extend_from_slice(self.rows.field(self.header.text));
                    SpanContent::Text(start)
                }
                Row::Fields => SpanContent::NoText(NoText::FieldCount {
                    found: self.rows.ends.len(),
                    expected: self.header.num_fields,
                }),
                Row::ManyFields(found) => SpanContent::NoText(NoText::FieldCount {
                    found,
                    expected: self.header.num_fields,
                }),
                Row::OpenQuote => SpanContent::NoText(NoText::OpenQuote),
                Row::Oversize => SpanContent::Oversize,
                Row::Unfinished => return Ok(Some(Content::Spans(spans))),
            };
            spans.push(Span {
                offset: self.rows.start_bytes,
                len_bytes: match content {
                    SpanContent::Text(start) => (buffer.len() - start) as u64,
                    _ => self.rows.bytes.offset_bytes() - self.rows.start_bytes,
                },
                content,
            });
        }
        Ok((!spans.is_empty()).then_some(Content::Spans(spans)))
    }

    fn is_at_end(&self) -> bool {
        self.rows.is_at_end
    }

    fn bytes(&self) -> &CountedBytes {
        &self.rows.bytes
    }

    fn bytes_mut(&mut self) -> &mut CountedBytes {
        &mut self.rows.bytes
    }

    fn is_inside_record(&self) -> bool {
        self.rows.is_discarding
    }
}

/// Maximum length of the header. The limit on document length does not apply to it.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Maximum number of fields of a row. The limit on document length does not count fields: a row of commas has
/// no bytes in its fields.
const MAX_FIELDS: usize = 1 << 20;

/// Maximum number of rows per chunk, for tables whose texts are short or missing.
const MAX_ROWS: usize = 1 << 14;

/// Divides a file into rows, and a row into fields.
pub(crate) struct Rows {
    bytes: CountedBytes,
    parser: Reader,
    /// Bytes that were read; the bytes before `used` are parsed.
    input: Vec<u8>,
    used: usize,
    /// Offset of the current row.
    start_bytes: u64,
    /// The unquoted fields of the current row, one after the other, and the end of each.
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// Whether the current row is too long to keep.
    is_discarding: bool,
    /// Number of fields of the current row, if they are too many to keep.
    many_fields: Option<usize>,
    /// Bytes read at a time.
    read_bytes: usize,
    max_row_bytes: usize,
    is_input_over: bool,
    is_at_end: bool,
}

/// The outcome of reading a row.
pub(crate) enum Row {
    /// The buffers contain the fields of the row.
    Fields,
    /// The file ends inside a quoted field.
    OpenQuote,
    /// The row is too long to keep.
    Oversize,
    /// The row has so many fields, too many to keep and more than any header.
    ManyFields(usize),
    /// The row is too long to keep, and its end was not read yet.
    Unfinished,
}

impl Rows {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self> {
        let delimiter = match source.format {
            Format::Tsv => b'\t',
            _ => b',',
        };
        Ok(Self {
            bytes: CountedBytes::open(source, options)?,
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            input: Vec::new(),
            used: 0,
            start_bytes: 0,
            fields: Vec::new(),
            ends: Vec::new(),
            is_discarding: false,
            many_fields: None,
            read_bytes: options.chunk_bytes,
            max_row_bytes: usize::try_from(options.max_document_bytes).unwrap_or(usize::MAX),
            is_input_over: false,
            is_at_end: false,
        })
    }

    /// Reads the next row; `None` at the end.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row>> {
        if !self.is_discarding {
            if self.bytes.offset_bytes() == 0 {
                self.begin()?;
            }
            self.skip_line_ends()?;
            self.start_bytes = self.bytes.offset_bytes();
            self.is_at_end = self.used == self.input.len();
            if self.is_at_end {
                return Ok(None);
            }
        }
        let turn_stop = self.bytes.offset_bytes() + SKIP_TURN_BYTES;
        let (mut len, mut num_ends) = (0, 0);
        loop {
            if self.used == self.input.len() {
                self.read_more()?;
            }
            if self.used == self.input.len() {
                return Ok(Some(self.end_row_at_end(len, num_ends)));
            }
            self.make_room(len, num_ends);
            let input = &self.input[self.used..];
            let (result, used, written, ended) =
                self.parser
                    .read_record(input, &mut self.fields[len..], &mut self.ends[num_ends..]);
            self.advance(used);
            (len, num_ends) = (len + written, num_ends + ended);
            if let Some(num_fields) = &mut self.many_fields {
                *num_fields += ended;
            } else if num_ends > MAX_FIELDS {
                self.many_fields = Some(num_ends);
            }
            self.is_discarding |= self.many_fields.is_some() || len > self.max_row_bytes;
            if self.is_discarding {
                (len, num_ends) = (0, 0);
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(self.end_row(len, num_ends))),
                ReadRecordResult::End => unreachable!("the parser sees no empty input"),
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
            }
            if self.is_discarding && self.bytes.offset_bytes() >= turn_stop {
                return Ok(Some(Row::Unfinished));
            }
        }
    }

    /// The columns that the current row names.
    fn columns(&self) -> Vec<String> {
        let name = |i| String::from_utf8_lossy(self.field(i)).into_owned();
        (0..self.ends.len()).map(name).collect()
    }

    /// Moves to the row at `offset`; returns false if the source ends before it.
    #[cfg(feature = "tables")]
    pub(crate) fn move_to(&mut self, offset: u64) -> Result<bool> {
        self.bytes.move_to(offset)
    }

    /// Number of fields of the current row.
    #[cfg(feature = "tables")]
    pub(crate) fn num_fields(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn field(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.fields[start..self.ends[i]]
    }

    /// Ends the current row, which has `len` bytes of fields.
    fn end_row(&mut self, len: usize, num_ends: usize) -> Row {
        self.ends.truncate(num_ends);
        self.fields.truncate(len);
        match (
            std::mem::take(&mut self.is_discarding),
            self.many_fields.take(),
        ) {
            (_, Some(num_fields)) => Row::ManyFields(num_fields),
            (true, None) => Row::Oversize,
            (false, None) => Row::Fields,
        }
    }

    /// Ends the last row of a file that does not end with a line end.
    fn end_row_at_end(&mut self, len: usize, num_ends: usize) -> Row {
        self.make_room(len, num_ends);
        // The parser receives a line end that is not in the file. It ends the row unless a quoted
        // field is open.
        let (result, _, written, ended) =
            self.parser
                .read_record(b"\n", &mut self.fields[len..], &mut self.ends[num_ends..]);
        if let Some(num_fields) = &mut self.many_fields {
            *num_fields += ended;
        }
        match (result, self.end_row(len + written, num_ends + ended)) {
            (ReadRecordResult::Record, row) => row,
            _ => Row::OpenQuote,
        }
    }

    /// Makes room for a part of the row after the `len` bytes and `num_ends` fields it has.
    fn make_room(&mut self, len: usize, num_ends: usize) {
        // At least two of each: an unquoted line end and the end of its field.
        if self.fields.len() < len + 2 {
            self.fields.resize((len + len / 2).max(self.read_bytes), 0);
        }
        if self.ends.len() < num_ends + 2 {
            self.ends.resize((2 * num_ends).max(64), 0);
        }
    }

    /// Reads the start of the file, checks it and drops a byte order mark.
    fn begin(&mut self) -> Result<()> {
        while !self.is_input_over && self.input.len() < recognize::HEAD_BYTES {
            self.append_input()?;
        }
        self.bytes.check_head(&self.input)?;
        if self.input.starts_with(BOM) {
            self.advance(BOM.len());
        }
        Ok(())
    }

    /// Skips the line ends between rows; blank lines are no rows.
    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            if self.used == self.input.len() {
                self.read_more()?;
                if self.input.is_empty() {
                    return Ok(());
                }
            }
            let rest = &self.input[self.used..];
            let num = rest
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                .count();
            let is_over = num < rest.len();
            self.advance(num);
            if is_over {
                return Ok(());
            }
        }
    }

    /// Replaces the parsed input by the next part of the file.
    fn read_more(&mut self) -> Result<()> {
        self.input.clear();
        self.used = 0;
        self.append_input()
    }

    fn append_input(&mut self) -> Result<()> {
        let len = self.input.len();
        self.input.resize(len + self.read_bytes, 0);
        let n = self.bytes.read(&mut self.input[len..])?;
        self.input.truncate(len + n);
        self.is_input_over = n == 0;
        Ok(())
    }

    /// Counts `num_bytes` of the input as parsed.
    fn advance(&mut self, num_bytes: usize) {
        let passed = &self.input[self.used..self.used + num_bytes];
        self.bytes.advance(passed);
        self.used += num_bytes;
    }
}
