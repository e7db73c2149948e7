//! Reads the texts of tables whose rows are in groups: row groups of Parquet, record batches of Arrow.
//!
//! A group is a range of bytes of the file, so a shard is a list of groups and reading can resume
//! between two groups. [`Table`] iterates over the groups and computes the checksum of all bytes,
//! including those of other columns. [`packtok_formats::table`] opens the files and decodes their
//! columns.

use packtok_formats::table::{
    Fault, Group, Groups, Rows, TableFormat, Value, Values, Window, WorkLimits, contained,
};

use crate::bytes::frames::Frame;
use crate::error::Error;
use crate::field::NoText;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{CorpusFile, Format, ReadOptions, ResumePoint, Source};

/// The longest group that is read into memory as a whole. A longer group is read twice in pieces:
/// for the checksum and for the texts.
const KEPT_BYTES: u64 = 32 << 20;

/// Bytes read at a time for the checksum of a longer group.
const READ_BYTES: usize = 1 << 20;

/// Maximum number of rows per chunk, for tables whose texts are short or missing.
const MAX_ROWS: usize = 1 << 14;

/// Reads the texts of one table file, or of the groups in a range of the file.
pub(crate) struct Table {
    source: Source,
    options: ReadOptions,
    window: Window,
    groups: Groups,
    /// Index of the next group to read.
    next: usize,
    /// The values of the group before that, unless all are read.
    open: Option<Box<dyn Values>>,
    /// The next row.
    row: u64,
    /// End of the bytes that are in the checksum.
    read_to: u64,
    crc: u32,
}

impl Table {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        let names = options.columns.names(source)?;
        let window = window_of(source)?;
        if window.len_bytes() != source.bytes {
            return Err(Error::SourceChanged {
                path: source.path.clone(),
                expected_bytes: source.bytes,
                found_bytes: window.len_bytes(),
            });
        }
        let groups = open_groups(source, &window, Some(names))?;
        let span = source.span();
        let next = groups
            .list
            .partition_point(|group| group.start < span.start);
        Ok(Self {
            row: groups.list.get(next).map_or(0, |group| group.first_row),
            read_to: span.start,
            crc: 0,
            source: source.clone(),
            options: options.clone(),
            window,
            groups,
            next,
            open: None,
        })
    }

    /// The next group of the range; `None` after the last one.
    fn next_group(&self) -> Option<&Group> {
        let stop = self.source.span().end;
        self.groups
            .list
            .get(self.next)
            .filter(|group| group.start < stop)
    }

    /// Reads all bytes up to the end of the next group, for the checksum.
    fn read_group_bytes(&mut self) -> Result<(), Error> {
        let stop = match self.groups.list.get(self.next + 1) {
            Some(group) => group.start.min(self.source.span().end),
            None => self.source.span().end,
        };
        self.read_bytes(stop)
    }

    /// Reads all bytes up to `stop`, for the checksum, and keeps them in memory if they are few.
    fn read_bytes(&mut self, stop: u64) -> Result<(), Error> {
        if stop <= self.read_to {
            return Ok(());
        }
        let io = |cause| Error::io(&self.source.path, cause);
        if stop - self.read_to <= KEPT_BYTES {
            let bytes = self.window.keep(self.read_to..stop).map_err(io)?;
            self.crc = crc32c::crc32c_append(self.crc, &bytes);
        } else {
            while self.read_to < stop {
                let len = (stop - self.read_to).min(READ_BYTES as u64) as usize;
                let bytes = self.window.bytes(self.read_to, len).map_err(io)?;
                self.crc = crc32c::crc32c_append(self.crc, &bytes);
                self.read_to += len as u64;
            }
        }
        self.read_to = stop;
        Ok(())
    }

    fn fault(&self, fault: Fault) -> Error {
        let column = self.options.columns.names(&self.source);
        error_of(
            fault,
            &self.source,
            &column.map_or_else(|_| String::new(), |names| names.join(".")),
        )
    }

    /// Appends the next rows of the open group to `buffer` and `spans`.
    fn read_rows(&mut self, buffer: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), Fault> {
        let Some(values) = &mut self.open else {
            return Ok(());
        };
        let group = &self.groups.list[self.next - 1];
        let stop = group.first_row + group.rows;
        while buffer.len() < self.options.chunk_bytes && spans.len() < MAX_ROWS {
            let (content, len_bytes) = match values.next_value(self.options.max_document_bytes)? {
                // Checked per row, not only at the end of the group: a damaged page may declare
                // 2^31 rows.
                Some(_) if self.row == stop => {
                    return Err(Fault::Damaged(format!(
                        "{} {} has more than the {} rows that it should have",
                        self.groups.name, group.index, group.rows
                    )));
                }
                Some(Value::Oversize(len_bytes)) => (SpanContent::Oversize, len_bytes),
                Some(Value::Bytes(text)) => {
                    let start = buffer.len();
                    buffer.extend_from_slice(text);
                    (SpanContent::Text(start), text.len() as u64)
                }
                Some(Value::Null) => (SpanContent::NoText(NoText::Null), 0),
                Some(Value::OtherType(name)) => (SpanContent::NoText(NoText::NotText(name)), 0),
                None => {
                    self.open = None;
                    return Ok(());
                }
            };
            spans.push(Span {
                offset: self.row,
                len_bytes,
                content,
            });
            self.row += 1;
        }
        Ok(())
    }

    /// Checks that the group that was just read had the number of rows that the file declares.
    fn check_rows(&self) -> Result<(), Error> {
        let group = &self.groups.list[self.next - 1];
        let expected = group.first_row + group.rows;
        if self.row == expected {
            Ok(())
        } else {
            Err(self.fault(Fault::Damaged(format!(
                "{} {} has {} rows, expected {}",
                self.groups.name,
                group.index,
                self.row - group.first_row,
                group.rows
            ))))
        }
    }
}

impl SourceReader for Table {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Content>, Error> {
        buffer.clear();
        let mut spans = Vec::new();
        // A chunk ends with its group, because reading can resume there.
        while spans.is_empty() {
            if self.open.is_none() {
                if self.next_group().is_none() {
                    self.read_bytes(self.source.span().end)?;
                    return Ok(None);
                }
                self.read_group_bytes()?;
                let opened = contained(|| self.groups.values(self.next, &self.window));
                self.open = Some(opened.map_err(|fault| self.fault(fault))?);
                self.next += 1;
            }
            let read = contained(|| self.read_rows(buffer, &mut spans));
            read.map_err(|fault| self.fault(fault))?;
            if self.open.is_none() {
                self.check_rows()?;
            }
        }
        Ok(Some(Content::Spans(spans)))
    }

    fn is_at_end(&self) -> bool {
        self.open.is_none() && self.next_group().is_none() && self.read_to == self.source.span().end
    }

    fn resume_point(&self, source: usize) -> Option<ResumePoint> {
        (self.open.is_none() && self.groups.are_in_order).then_some(ResumePoint {
            source,
            offset: self.row,
            crc32c: self.crc ^ self.groups.crc32c,
        })
    }

    fn skip(&mut self, place: ResumePoint, _: Option<Frame>) -> Result<bool, Error> {
        let is_next = |group: &Group| group.first_row + group.rows == place.offset;
        let Some(last) = self.groups.list.iter().rposition(is_next) else {
            return Ok(false);
        };
        self.next = last + 1;
        self.row = place.offset;
        self.crc = place.crc32c ^ self.groups.crc32c;
        self.read_to = match self.groups.list.get(self.next) {
            Some(group) => group.start.min(self.source.span().end),
            None => self.source.span().end,
        };
        Ok(true)
    }

    fn pass_to(
        &mut self,
        offset: u64,
        tick: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        while self.row < offset {
            let Some(group) = self.next_group() else {
                self.read_bytes(self.source.span().end)?;
                return Ok(false);
            };
            let rows = group.rows;
            self.read_group_bytes()?;
            self.next += 1;
            self.row += rows;
            tick(self.raw_bytes())?;
        }
        Ok(true)
    }

    fn raw_bytes(&self) -> u64 {
        self.read_to - self.source.span().start
    }

    fn digest(&self) -> u32 {
        self.crc
    }
}

/// For each of two offsets, the start of the first group that starts at or after it; the end of
/// the file if no group does. The first group counts as starting at 0, whatever precedes it in the
/// file.
pub(crate) fn group_starts(source: &Source, first: u64, second: u64) -> Result<(u64, u64), Error> {
    let groups = open_groups(source, &window_of(source)?, None)?;
    let start = |offset: u64| match offset {
        0 => 0,
        _ => {
            let mut starts = groups.list.iter().skip(1).map(|group| group.start);
            starts
                .find(|start| *start >= offset)
                .unwrap_or(source.bytes)
        }
    };
    Ok((start(first), start(second)))
}

/// Names of the columns of `source` that contain texts; fields of structures by their path.
pub(crate) fn text_columns(source: &Source) -> Result<Vec<String>, Error> {
    Ok(open_groups(source, &window_of(source)?, None)?.text_columns())
}

/// The records of up to `num_rows` rows from row `first` on, of all columns up to `max_columns`.
pub(crate) fn rows(
    source: &Source,
    limits: WorkLimits,
    (first, num_rows): (u64, usize),
    (max_columns, max_bytes): (usize, usize),
) -> Result<Rows, Error> {
    let file = CorpusFile::of(source)?;
    let window = Window::limited(file, limits).map_err(|cause| Error::io(&source.path, cause))?;
    let groups = open_groups(source, &window, None)?;
    Ok(groups.rows(first, num_rows, max_columns, max_bytes, &window))
}

fn window_of(source: &Source) -> Result<Window, Error> {
    let file = CorpusFile::of(source)?;
    Window::new(file).map_err(|cause| Error::io(&source.path, cause))
}

/// The groups of `source`, for reading the column `names`. Without `names`, the result only
/// provides the starts of the groups.
fn open_groups(
    source: &Source,
    window: &Window,
    names: Option<&[String]>,
) -> Result<Groups, Error> {
    let format = match source.format {
        Format::Arrow => TableFormat::Arrow,
        _ => TableFormat::Parquet,
    };
    let column = names.map_or_else(String::new, |names| names.join("."));
    Groups::open(format, window, names).map_err(|fault| error_of(fault, source, &column))
}

/// The error for a fault of `source`, whose text column is `column`.
fn error_of(fault: Fault, source: &Source, column: &str) -> Error {
    let (path, format) = (source.path.clone(), source.format);
    match fault {
        Fault::Io(cause) => Error::io(&path, cause),
        Fault::Temporary(source) => Error::Temporary {
            path,
            folder: std::env::temp_dir(),
            source,
        },
        Fault::OtherFormat => Error::NotThisFormat { path, format },
        Fault::Damaged(reason) => Error::DamagedTable {
            path,
            format,
            reason,
        },
        Fault::Unsupported(reason) => Error::UnsupportedTable {
            path,
            format,
            reason,
        },
        Fault::ColumnMissing(columns) => Error::ColumnMissing {
            path,
            column: column.to_owned(),
            columns,
        },
        Fault::ColumnTwice(first, second) => Error::ColumnTwice {
            path,
            column: column.to_owned(),
            first,
            second,
        },
    }
}
