//! Reads tables whose rows are in groups: row groups of Parquet, record batches of Arrow.
//!
//! A group is a range of bytes of the file, so a shard is a list of groups and reading can resume
//! between two groups. [`Table`] iterates over the groups and computes the checksum of all bytes,
//! including those of other columns. `parquet` and `arrow` decode the texts of one group.

mod arrow;
mod fault;
mod group;
mod groups;
mod parquet;
mod texts;
mod window;

use crate::bytes::frames::Frame;
use crate::error::Error;
use crate::formats::source_reader::SourceReader;
use crate::reader::chunk::{Content, Span, SpanContent};
use crate::{CorpusFile, ReadOptions, ResumePoint, Source};
pub use fault::is_panic_contained;
use fault::{Fault, contained};
use group::Group;
use groups::Groups;
pub(crate) use groups::{group_starts, text_columns};
use texts::{Text, Texts};
use window::Window;

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
    /// The texts of the group before that, unless all are read.
    open: Option<Box<dyn Texts>>,
    /// The next row.
    row: u64,
    /// End of the bytes that are in the checksum.
    read_to: u64,
    crc: u32,
}

impl Table {
    pub(crate) fn open(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        let names = options.columns.names(source)?;
        let file = CorpusFile::of(source)?;
        let window = Window::new(file).map_err(|cause| Error::io(&source.path, cause))?;
        if window.len_bytes() != source.bytes {
            return Err(Error::SourceChanged {
                path: source.path.clone(),
                expected_bytes: source.bytes,
                found_bytes: window.len_bytes(),
            });
        }
        let groups = groups::open(source, &window, Some(names))?;
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
        fault.of(
            &self.source,
            &column.map_or_else(|_| String::new(), |names| names.join(".")),
        )
    }

    /// Appends the next rows of the open group to `buffer` and `spans`.
    fn read_rows(&mut self, buffer: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), Fault> {
        let Some(texts) = &mut self.open else {
            return Ok(());
        };
        let group = &self.groups.list[self.next - 1];
        let stop = group.first_row + group.rows;
        while buffer.len() < self.options.chunk_bytes && spans.len() < MAX_ROWS {
            let (content, len_bytes) = match texts.next_text(self.options.max_document_bytes)? {
                // Checked per row, not only at the end of the group: a damaged page may declare
                // 2^31 rows.
                Some(_) if self.row == stop => {
                    return Err(Fault::Damaged(format!(
                        "{} {} has more than the {} rows that it should have",
                        self.groups.name, group.index, group.rows
                    )));
                }
                Some(Text::Oversize(len_bytes)) => (SpanContent::Oversize, len_bytes),
                Some(Text::Bytes(text)) => {
                    let start = buffer.len();
                    buffer.extend_from_slice(text);
                    (SpanContent::Text(start), text.len() as u64)
                }
                Some(Text::NoText(reason)) => (SpanContent::NoText(reason), 0),
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
                let opened = contained(|| self.groups.texts(self.next, &self.window));
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
