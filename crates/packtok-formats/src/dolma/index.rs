//! The documents in `NAME.csv.gz`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use csv_core::{ReadRecordResult, Reader, Writer};
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::ends::Ends;
use crate::error::{Error, Fault, Result};

/// Columns of a row: those of dolma, and those that OLMo-core reads, which are all that open-instruct writes.
const NUM_COLUMNS: usize = 5;
const LEAST_COLUMNS: usize = 2;
/// The longest row that is read. IDs and paths are short.
const MAX_ROW_BYTES: usize = 1 << 16;
/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// The ends of the documents in the file at `path`; the documents must follow each other.
pub(super) fn read(path: &Path) -> Result<Ends> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let input = MultiGzDecoder::new(BufReader::new(file));
    let rows = Rows {
        path,
        input: BufReader::with_capacity(BUFFER_BYTES, input),
        reader: Reader::new(),
        row: vec![0; MAX_ROW_BYTES],
        position: 0,
        end: 0,
        has_ended: false,
    };
    Ends::keep(rows, path, file_bytes)
}

/// The ends of the documents of the rows, in order.
struct Rows<'a, R> {
    path: &'a Path,
    input: R,
    reader: Reader,
    row: Vec<u8>,
    /// Bytes of the CSV text that were read.
    position: u64,
    /// The end of the last document.
    end: u64,
    has_ended: bool,
}

impl<R: BufRead> Rows<'_, R> {
    /// The next end; `None` after the last row.
    fn next_end(&mut self) -> Result<Option<u64>> {
        let mut columns = [0; NUM_COLUMNS + 1];
        let (mut row_bytes, mut num_columns) = (0, 0);
        let start = self.position;
        loop {
            let input = self.input.fill_buf().map_err(Error::io(self.path))?;
            let (result, read, written, ended) = self.reader.read_record(
                input,
                &mut self.row[row_bytes..],
                &mut columns[num_columns..],
            );
            self.input.consume(read);
            self.position += read as u64;
            row_bytes += written;
            num_columns += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    let num_bytes = format!("more than {MAX_ROW_BYTES}");
                    let expected = format!("at most {MAX_ROW_BYTES}");
                    let what = "the number of bytes of a row";
                    return Err(self.fault(start, what, num_bytes, expected));
                }
                ReadRecordResult::OutputEndsFull => {
                    let count = format!("more than {NUM_COLUMNS}");
                    return Err(self.wrong_columns(start, count));
                }
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::Record
                    if (LEAST_COLUMNS..=NUM_COLUMNS).contains(&num_columns) =>
                {
                    break;
                }
                ReadRecordResult::Record => {
                    return Err(self.wrong_columns(start, num_columns.to_string()));
                }
            }
        }
        let number = |range: std::ops::Range<usize>| {
            let text = str::from_utf8(&self.row[range]).unwrap_or_default();
            text.parse::<u64>().map_err(|_| text.to_owned())
        };
        let (first, end) = (number(0..columns[0]), number(columns[0]..columns[1]));
        let show = |number: Result<u64, String>| match number {
            Ok(number) => number.to_string(),
            Err(text) => format!("{text:?}"),
        };
        if first != Ok(self.end) {
            let expected = format!("{}, the end of the document before it", self.end);
            return Err(self.fault(start, "the start of a document", show(first), expected));
        }
        match end {
            Ok(end) if end >= self.end => {
                self.end = end;
                Ok(Some(end))
            }
            end => {
                let expected = format!("at least {}, its start", self.end);
                Err(self.fault(start, "the end of a document", show(end), expected))
            }
        }
    }

    fn wrong_columns(&self, offset: u64, found: String) -> Error {
        let what = "the number of columns of a row";
        self.fault(
            offset,
            what,
            found,
            format!("{LEAST_COLUMNS} to {NUM_COLUMNS}"),
        )
    }

    /// A fault at a position of the CSV text.
    fn fault(&self, offset: u64, what: &'static str, found: String, expected: String) -> Error {
        Error::fault(Fault {
            path: self.path.into(),
            offset,
            what,
            found,
            expected,
            remedy: "the index is damaged, write it again",
        })
    }
}

impl<R: BufRead> Iterator for Rows<'_, R> {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let end = self.next_end().transpose();
        self.has_ended = !matches!(end, Some(Ok(_)));
        end
    }
}

/// A document in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DolmaRow {
    /// Number of tokens.
    pub length: u64,
    /// The ID of the document.
    pub id: u64,
    /// The path of its text.
    pub source: String,
    /// The line of its text, counted from one.
    pub line: u64,
}

/// Writes the index of `rows` to `out`, compressed, and returns `out`. The same rows give the same
/// bytes. `path` is for messages.
///
/// # Errors
/// A row is an error; `out` cannot be written.
pub fn write_index<W: Write>(
    out: W,
    path: &Path,
    rows: impl Iterator<Item = Result<DolmaRow>>,
) -> Result<W> {
    let io = |source: io::Error| Error::Io {
        path: path.into(),
        source,
    };
    // The header of gzip has no time, so that it does not depend on the day.
    let mut out = GzEncoder::new(out, flate2::Compression::default());
    let mut start = 0u64;
    for row in rows {
        let row = row?;
        let end = start + row.length;
        let (id, line, source) = (row.id, row.line, quoted(&row.source));
        writeln!(out, "{start},{end},{id},{source},{line}").map_err(io)?;
        start = end;
    }
    out.finish().map_err(io)
}

/// A field of a CSV file, in quotes if it needs them.
fn quoted(field: &str) -> String {
    // Every byte may be a quote, which is doubled, and there are two around the field.
    let mut out = vec![0; 2 * field.len() + 2];
    let mut writer = Writer::new();
    let (_, _, written) = writer.field(field.as_bytes(), &mut out);
    let (_, at_end) = writer.finish(&mut out[written..]);
    out.truncate(written + at_end);
    String::from_utf8_lossy(&out).into_owned()
}
