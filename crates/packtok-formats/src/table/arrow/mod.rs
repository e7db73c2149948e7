//! Decodes a column of bytes of Arrow files and streams, value by value.
//!
//! A record batch is a message: a description, and a body with the buffers of all columns. Only the
//! buffers of the column are read, in parallel, so a record batch with any number of bytes needs
//! little memory. Format: <https://arrow.apache.org/docs/format/Columnar.html>, the
//! sections on IPC.

mod buffer;
mod column;
mod id_lists;
mod message;
mod records;
mod values;

use std::io;

use arrow_ipc::{MessageHeader, Schema, root_as_footer};
pub use id_lists::ArrowIdLists;

use column::{Column, find_column, text_columns};
use message::{CONTINUATION, Message, message_at};
use records::{Node, nodes_of};

use super::cells::Cell;
use super::fault::Fault;
use super::group::Group;
use super::values::{OtherValues, Values};
use super::window::Window;

/// A file starts and ends with these bytes; a stream does not.
const MAGIC: &[u8] = b"ARROW1";

/// The properties of a file that decoding its record batches requires.
pub(super) struct Layout {
    /// The message of each record batch.
    batches: Vec<Message>,
    /// The column to read, or the name of its type if it does not contain bytes; `None` if no
    /// column is read.
    column: Option<Result<Column, &'static str>>,
    /// The names of all columns that contain texts.
    text_columns: Vec<String>,
    /// All columns.
    nodes: Vec<Node>,
    dictionaries: Vec<u64>,
    is_stream: bool,
}

/// What a file or stream has, without the values.
struct Described<T> {
    /// The message of each record batch.
    batches: Vec<Message>,
    /// Where the messages of dictionaries start.
    dictionaries: Vec<u64>,
    is_stream: bool,
    /// What the caller takes from the schema.
    schema: T,
    /// The checksum of the footer of a file.
    crc32c: u32,
}

impl Layout {
    /// The names of the columns that contain texts.
    pub(super) fn text_columns(&self) -> Vec<String> {
        self.text_columns.clone()
    }

    /// The names of all columns, without the fields of structures.
    pub(super) fn columns(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Calls `each` with the cells of a column in some rows of record batch `index`: from a row on, so
    /// many.
    pub(super) fn cells(
        &self,
        (index, column): (usize, usize),
        rows: (u64, usize),
        window: &Window,
        max_bytes: usize,
        each: &mut dyn FnMut(Cell),
    ) -> Result<(), Fault> {
        let (message, node) = (&self.batches[index], &self.nodes[column]);
        // In a stream, later dictionaries replace those of earlier record batches.
        let is_own = |start: &&u64| !self.is_stream || **start < message.start;
        let dictionaries: Vec<u64> = self.dictionaries.iter().filter(is_own).copied().collect();
        let source = records::Source {
            window,
            dictionaries: &dictionaries,
        };
        records::cells(message, node, rows, source, max_bytes, each)
    }

    /// The values of record batch `index`.
    pub(super) fn values(&self, index: usize, window: &Window) -> Result<Box<dyn Values>, Fault> {
        let message = &self.batches[index];
        match &self.column {
            Some(Ok(column)) => values::open(message, column, window),
            Some(Err(name)) => Ok(Box::new(OtherValues::new(message.rows, name))),
            None => Ok(Box::new(OtherValues::new(message.rows, "nothing"))),
        }
    }
}

/// The record batches of a file or stream, and the checksum of their descriptions. `names` is the
/// column to read, if any.
pub(super) fn open(
    window: &Window,
    names: Option<&[String]>,
) -> Result<(Vec<Group>, u32, Layout), Fault> {
    let described = read(window, |schema| {
        let column = names.map(|names| find_column(schema, names)).transpose()?;
        Ok((column, text_columns(schema), nodes_of(schema)))
    })?;
    let (column, text_columns, nodes) = described.schema;
    let layout = Layout {
        batches: described.batches,
        column,
        text_columns,
        nodes,
        dictionaries: described.dictionaries,
        is_stream: described.is_stream,
    };
    let mut first_row = 0;
    let group = |(index, message): (usize, &Message)| {
        let group = Group {
            index,
            start: message.start,
            first_row,
            rows: message.rows,
        };
        first_row += message.rows;
        group
    };
    let list = layout.batches.iter().enumerate().map(group).collect();
    Ok((list, described.crc32c, layout))
}

/// The record batches of a file or stream, and what `of_schema` returns.
fn read<T>(
    window: &Window,
    of_schema: impl FnOnce(&Schema<'_>) -> Result<T, Fault>,
) -> Result<Described<T>, Fault> {
    let head_bytes = window.len_bytes().min(MAGIC.len() as u64) as usize;
    if window.bytes(0, head_bytes)? == MAGIC {
        read_file(window, of_schema)
    } else {
        read_stream(window, of_schema)
    }
}

/// A file, by its footer.
fn read_file<T>(
    window: &Window,
    of_schema: impl FnOnce(&Schema<'_>) -> Result<T, Fault>,
) -> Result<Described<T>, Fault> {
    let tail_bytes = 4 + MAGIC.len();
    let tail_start = window.len_bytes().saturating_sub(tail_bytes as u64);
    let tail = window.bytes(tail_start, tail_bytes)?;
    let len = i32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = u64::try_from(len)
        .ok()
        .and_then(|len| tail_start.checked_sub(len));
    let (Some(start), true) = (start, tail.ends_with(MAGIC)) else {
        return Err(Fault::Damaged(
            "the file does not end with a footer".to_owned(),
        ));
    };
    let bytes = window.bytes(start, (tail_start - start) as usize)?;
    let footer = root_as_footer(&bytes)
        .map_err(|cause| Fault::Damaged(format!("the footer is invalid: {cause}")))?;
    let schema = of_schema(&footer.schema().ok_or_else(no_schema)?)?;
    let blocks = footer.recordBatches();
    let batch = |offset: i64| {
        let start = u64::try_from(offset)
            .map_err(|_| Fault::Damaged("a record batch has a negative offset".to_owned()))?;
        match message_at(window, start)? {
            Some(message) if message.header == MessageHeader::RecordBatch => Ok(message),
            _ => Err(Fault::Damaged(format!("no record batch at byte {start}"))),
        }
    };
    let batches = blocks.iter().flatten().map(|block| batch(block.offset()));
    let batches = batches.collect::<Result<_, _>>()?;
    let dictionaries = footer.dictionaries();
    let starts = dictionaries.iter().flatten().map(|block| block.offset());
    Ok(Described {
        batches,
        // A negative one becomes larger than any file.
        dictionaries: starts.map(|start| start as u64).collect(),
        is_stream: false,
        schema,
        crc32c: crc32c::crc32c(&bytes),
    })
}

/// A stream, by all of its messages.
fn read_stream<T>(
    window: &Window,
    of_schema: impl FnOnce(&Schema<'_>) -> Result<T, Fault>,
) -> Result<Described<T>, Fault> {
    // Streams of Arrow before 0.15 start with the length of the schema instead.
    let head_bytes = window.len_bytes().min(CONTINUATION.len() as u64) as usize;
    let head = window.bytes(0, head_bytes)?;
    if head != CONTINUATION[..] && head.get(2..4) != Some(&[0, 0]) {
        return Err(Fault::OtherFormat);
    }
    let first = message_at(window, 0)?.ok_or_else(no_schema)?;
    let bytes = first.description(window)?;
    let parsed = message::parse(&bytes, 0)?;
    let schema = of_schema(&parsed.header_as_schema().ok_or_else(no_schema)?)?;
    let (mut batches, mut dictionaries) = (Vec::new(), Vec::new());
    let mut start = first.end();
    while start < window.len_bytes() {
        let Some(message) = message_at(window, start)? else {
            break;
        };
        start = message.end();
        if start > window.len_bytes() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match message.header {
            MessageHeader::RecordBatch => batches.push(message),
            MessageHeader::DictionaryBatch => dictionaries.push(message.start),
            _ => {}
        }
    }
    Ok(Described {
        batches,
        dictionaries,
        is_stream: true,
        schema,
        crc32c: 0,
    })
}

fn no_schema() -> Fault {
    Fault::Damaged(
        "it is neither an Arrow file nor a stream: there is no schema at its start".to_owned(),
    )
}
