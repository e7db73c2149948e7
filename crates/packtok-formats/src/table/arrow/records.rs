//! The records of an Arrow file: the values of all columns in some rows of a record batch.
//!
//! The buffers of a column are read in parallel and in order, as those of a text column. A value
//! that is not shown is skipped in its buffer, which costs nothing without compression.

use arrow_ipc::{DateUnit, Endianness, Field, Precision, RecordBatch, Schema, TimeUnit, Type};
use bytes::Bytes;

use super::buffer::BufferReader;
use super::column::{Position, skip, skip_without_children};
use super::message::{Message, message_at};
use super::values::{Bits, Buffers, Data, batch_of, checked, read_value};
use crate::table::cells::{Cell, CellWriter, MAX_DEPTH, Scalar, Unit, half, single};
use crate::table::fault::Fault;
use crate::table::window::Window;

/// A field of the schema, and where its buffers are.
pub(super) struct Node {
    pub(super) name: String,
    position: Position,
    kind: Kind,
}

/// The layout of a field.
enum Kind {
    Null,
    Bool,
    /// Values of this many bytes.
    Fixed(u64, Number),
    /// Texts or bytes, with offsets of this many bytes.
    Bytes(usize),
    Views,
    /// Lists, with offsets of this many bytes.
    List(usize, Box<Node>),
    /// Lists of this many elements.
    FixedList(u64, Box<Node>),
    Structure(Vec<Node>),
    /// Numbers of values in a dictionary: its id, the bytes of a number, and the value in a batch of
    /// the dictionary.
    Dictionary(i64, u64, Box<Node>),
    /// A type that is not shown.
    Other(&'static str),
}

/// The meaning of a value of a fixed number of bytes.
#[derive(Debug, Clone, Copy)]
enum Number {
    Signed,
    Unsigned,
    Float,
    Decimal(i32),
    Date(DateUnit),
    Time(Unit),
    Timestamp(Unit, bool),
    Bytes,
}

/// The fields of the schema.
pub(super) fn nodes_of(schema: &Schema<'_>) -> Vec<Node> {
    let mut position = Position::default();
    let is_big = schema.endianness() != Endianness::Little;
    let fields = schema.fields().into_iter().flatten();
    fields
        .map(|field| {
            let mut node = node_of(&field, &mut position, 0);
            if is_big {
                node.kind = Kind::Other("a number with its highest byte first");
            }
            node
        })
        .collect()
}

fn node_of(field: &Field<'_>, position: &mut Position, depth: usize) -> Node {
    let own = *position;
    // Fields after one without a type are read from wrong buffers, which the checks of values notice
    // or which are shown as they are.
    let _ = skip(field, position);
    let kind = match field.dictionary() {
        _ if depth > MAX_DEPTH => Kind::Other("deeper nesting"),
        None => kind_of(field, own, depth),
        Some(dictionary) => {
            // Without a type, the numbers have 32 bits.
            let bits = dictionary.indexType().map_or(32, |index| index.bitWidth());
            let bytes = u64::try_from(bits / 8).unwrap_or(0);
            let value = Node {
                name: String::new(),
                position: Position::default(),
                kind: kind_of(field, Position::default(), depth),
            };
            Kind::Dictionary(dictionary.id(), bytes, Box::new(value))
        }
    };
    Node {
        name: field.name().unwrap_or_default().to_owned(),
        position: own,
        kind,
    }
}

/// The layout of a field at `position`, apart from its dictionary.
fn kind_of(field: &Field<'_>, mut position: Position, depth: usize) -> Kind {
    let _ = skip_without_children(field, &mut position);
    let fields = field.children().into_iter().flatten();
    let children = fields.map(|child| node_of(&child, &mut position, depth + 1));
    kind_with(field, children.collect())
}

/// The layout of a field with these children.
fn kind_with(field: &Field<'_>, mut children: Vec<Node>) -> Kind {
    let only = |children: &mut Vec<Node>| children.pop().map(Box::new);
    let other = Kind::Other("a value of this type");
    match field.type_type() {
        Type::Null => Kind::Null,
        Type::Bool => Kind::Bool,
        Type::Utf8 | Type::Binary => Kind::Bytes(4),
        Type::LargeUtf8 | Type::LargeBinary => Kind::Bytes(8),
        Type::Utf8View | Type::BinaryView => Kind::Views,
        Type::Struct_ => Kind::Structure(children),
        Type::List | Type::Map => only(&mut children).map_or(other, |child| Kind::List(4, child)),
        Type::LargeList => only(&mut children).map_or(other, |child| Kind::List(8, child)),
        Type::FixedSizeList => {
            let len = field.type_as_fixed_size_list().map(|list| list.listSize());
            let len = len.and_then(|len| u64::try_from(len).ok());
            match (len, only(&mut children)) {
                (Some(len), Some(child)) => Kind::FixedList(len, child),
                _ => other,
            }
        }
        _ => match number_of(field) {
            Some((bytes, number)) => Kind::Fixed(bytes, number),
            None => other,
        },
    }
}

/// The length in bytes and the meaning of the values of a field that has them.
fn number_of(field: &Field<'_>) -> Option<(u64, Number)> {
    if let Some(integer) = field.type_as_int() {
        let signs = [Number::Unsigned, Number::Signed];
        let bytes = u64::try_from(integer.bitWidth() / 8).ok()?;
        return Some((bytes, signs[usize::from(integer.is_signed())]));
    }
    if let Some(float) = field.type_as_floating_point() {
        let bytes = match float.precision() {
            Precision::HALF => 2,
            Precision::SINGLE => 4,
            _ => 8,
        };
        return Some((bytes, Number::Float));
    }
    if let Some(decimal) = field.type_as_decimal() {
        let bytes = u64::try_from(decimal.bitWidth() / 8).ok()?;
        return (bytes <= 16).then_some((bytes, Number::Decimal(decimal.scale())));
    }
    if let Some(date) = field.type_as_date() {
        let unit = date.unit();
        return Some((
            if unit == DateUnit::DAY { 4 } else { 8 },
            Number::Date(unit),
        ));
    }
    if let Some(time) = field.type_as_time() {
        let bytes = u64::try_from(time.bitWidth() / 8).ok()?;
        return Some((bytes, Number::Time(unit_of(time.unit()))));
    }
    if let Some(timestamp) = field.type_as_timestamp() {
        let unit = unit_of(timestamp.unit());
        return Some((8, Number::Timestamp(unit, timestamp.timezone().is_some())));
    }
    if field.type_as_duration().is_some() {
        return Some((8, Number::Signed));
    }
    let bytes = field.type_as_fixed_size_binary()?.byteWidth();
    Some((u64::try_from(bytes).ok()?, Number::Bytes))
}

fn unit_of(unit: TimeUnit) -> Unit {
    match unit {
        TimeUnit::SECOND => Unit::Seconds,
        TimeUnit::MILLISECOND => Unit::Milliseconds,
        TimeUnit::MICROSECOND => Unit::Microseconds,
        _ => Unit::Nanoseconds,
    }
}

/// A file, and where its dictionaries are.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) window: &'a Window,
    pub(super) dictionaries: &'a [u64],
}

/// Calls `each` with the cells of a field in `num_rows` rows of the record batch at `message`, from
/// its row `first` on.
pub(super) fn cells(
    message: &Message,
    node: &Node,
    (first, num_rows): (u64, usize),
    source: Source<'_>,
    max_bytes: usize,
    each: &mut dyn FnMut(Cell),
) -> Result<(), Fault> {
    let window = source.window;
    let description = message.description(window)?;
    let batch = batch_of(message, &description)?;
    let buffers = Buffers::of(&batch, message, window)?;
    let mut reader = Reader::open(node, &batch, &buffers)?;
    reader.skip(first)?;
    for _ in 0..num_rows {
        window.check_time()?;
        let mut cell = CellWriter::new(max_bytes);
        let is_valid = reader.next(&mut cell, source, false)?;
        each(if is_valid {
            cell.finish()
        } else {
            Cell::default()
        });
    }
    Ok(())
}

/// Reads the values of a field.
struct Reader<'a> {
    /// `None` if no value is null.
    validity: Option<Bits>,
    content: Content<'a>,
}

enum Content<'a> {
    Null,
    Bool(Bits),
    Fixed(u64, Number, BufferReader),
    Bytes {
        offsets: Offsets,
        data: BufferReader,
        /// Bytes of `data` that were read.
        position: u64,
    },
    Views(BufferReader, Vec<Data>),
    List {
        offsets: Offsets,
        child: Box<Reader<'a>>,
        /// Elements of `child` that were read.
        position: u64,
    },
    FixedList(u64, Box<Reader<'a>>),
    Structure(Vec<(&'a str, Reader<'a>)>),
    Dictionary {
        id: i64,
        width: u64,
        value: &'a Node,
        numbers: BufferReader,
        /// Its batches, which are looked up for the first value.
        batches: Option<Vec<DictionaryBatch>>,
    },
    Other(&'static str),
}

impl<'a> Reader<'a> {
    fn open(node: &'a Node, batch: &RecordBatch<'_>, buffers: &Buffers<'_>) -> Result<Self, Fault> {
        let first = buffers.first_of(node.position);
        let child = |node: &'a Node| Self::open(node, batch, buffers).map(Box::new);
        let content = match &node.kind {
            Kind::Null => Content::Null,
            Kind::Bool => Content::Bool(Bits::of(buffers.reader(first + 1)?)),
            Kind::Fixed(bytes, number) => {
                Content::Fixed(*bytes, *number, buffers.reader(first + 1)?)
            }
            Kind::Bytes(width) => Content::Bytes {
                offsets: Offsets::of(buffers.reader(first + 1)?, *width),
                data: buffers.reader(first + 2)?,
                position: 0,
            },
            Kind::Views => Content::Views(
                buffers.reader(first + 1)?,
                buffers.view_buffers(batch, node.position)?,
            ),
            Kind::List(width, element) => Content::List {
                offsets: Offsets::of(buffers.reader(first + 1)?, *width),
                child: child(element)?,
                position: 0,
            },
            Kind::FixedList(len, element) => Content::FixedList(*len, child(element)?),
            Kind::Structure(fields) => {
                let fields = fields.iter().map(|field| {
                    let reader = Self::open(field, batch, buffers)?;
                    Ok((field.name.as_str(), reader))
                });
                Content::Structure(fields.collect::<Result<_, Fault>>()?)
            }
            Kind::Dictionary(id, width, value) => Content::Dictionary {
                id: *id,
                width: *width,
                value,
                numbers: buffers.reader(first + 1)?,
                batches: None,
            },
            Kind::Other(type_name) => Content::Other(type_name),
        };
        let validity = match content {
            Content::Null | Content::Other(_) => None,
            _ => buffers.validity(batch, node.position)?,
        };
        Ok(Self { validity, content })
    }

    fn skip(&mut self, rows: u64) -> Result<(), Fault> {
        if let Some(bits) = &mut self.validity {
            bits.skip(rows)?;
        }
        self.content.skip(rows)
    }

    /// Writes the next value; returns false if it is null, and nothing is written.
    fn next(
        &mut self,
        cell: &mut CellWriter,
        source: Source<'_>,
        is_inner: bool,
    ) -> Result<bool, Fault> {
        if let Some(bits) = &mut self.validity
            && !bits.next()?
        {
            self.content.skip(1)?;
            return Ok(false);
        }
        self.content.next(cell, source, is_inner)
    }

    /// As [`Reader::next`] in a list or structure, where a null is written.
    fn next_inner(&mut self, cell: &mut CellWriter, source: Source<'_>) -> Result<(), Fault> {
        if !self.next(cell, source, true)? {
            cell.json("null");
        }
        Ok(())
    }

    /// Writes the next `count` values as a list; returns how many were read.
    fn next_list(
        &mut self,
        count: u64,
        cell: &mut CellWriter,
        source: Source<'_>,
    ) -> Result<u64, Fault> {
        cell.json("[");
        let mut num_read = 0;
        while num_read < count && !cell.is_full() {
            if num_read > 0 {
                cell.json(",");
            }
            self.next_inner(cell, source)?;
            num_read += 1;
        }
        cell.json("]");
        Ok(num_read)
    }
}

impl Content<'_> {
    fn skip(&mut self, rows: u64) -> Result<(), Fault> {
        match self {
            Self::Null | Self::Other(_) => Ok(()),
            Self::Bool(bits) => bits.skip(rows),
            Self::Fixed(bytes, _, data)
            | Self::Dictionary {
                width: bytes,
                numbers: data,
                ..
            } => data.skip(product(rows, *bytes)?),
            Self::Bytes { offsets, .. } | Self::List { offsets, .. } => offsets.skip(rows),
            Self::Views(views, _) => views.skip(product(rows, VIEW_BYTES as u64)?),
            Self::FixedList(len, child) => child.skip(product(rows, *len)?),
            Self::Structure(fields) => {
                let mut fields = fields.iter_mut();
                fields.try_for_each(|(_, field)| field.skip(rows))
            }
        }
    }

    fn next(
        &mut self,
        cell: &mut CellWriter,
        source: Source<'_>,
        is_inner: bool,
    ) -> Result<bool, Fault> {
        match self {
            Self::Null => return Ok(false),
            Self::Other(type_name) => cell.scalar(&Scalar::Other(type_name), is_inner),
            Self::Bool(bits) => cell.scalar(&Scalar::Bool(bits.next()?), is_inner),
            Self::Fixed(bytes, number, data) => {
                let mut value = Vec::new();
                let kept = (*bytes).min(cell.room().max(LONGEST_NUMBER));
                read_value(data, kept, &mut value)?;
                data.skip(*bytes - kept)?;
                cell.scalar(&scalar_of(&value, *bytes, *number), is_inner);
            }
            Self::Bytes {
                offsets,
                data,
                position,
            } => {
                let (start, end) = offsets.next()?;
                let mut value = Vec::new();
                let kept = (end - start).min(cell.room());
                if kept > 0 {
                    data.skip(forward(*position, start)?)?;
                    read_value(data, kept, &mut value)?;
                    *position = start + kept;
                }
                cell.scalar(&Scalar::Bytes(&value, end - start), is_inner);
            }
            Self::Views(views, data) => {
                let mut view = [0; VIEW_BYTES];
                views.fill(&mut view)?;
                let (value, len) = viewed(&view, data, source.window, cell.room())?;
                cell.scalar(&Scalar::Bytes(&value, len), is_inner);
            }
            Self::List {
                offsets,
                child,
                position,
            } => {
                let (start, end) = offsets.next()?;
                child.skip(forward(*position, start)?)?;
                *position = start + child.next_list(end - start, cell, source)?;
            }
            Self::FixedList(len, child) => {
                let num_read = child.next_list(*len, cell, source)?;
                child.skip(*len - num_read)?;
            }
            Self::Dictionary {
                id,
                width,
                value,
                numbers,
                batches,
            } => {
                let mut number = [0; 8];
                let bytes = number.get_mut(..*width as usize).ok_or_else(too_large)?;
                numbers.fill(bytes)?;
                let number = u64::from_le_bytes(number);
                let batches = match batches {
                    Some(batches) => batches,
                    None => batches.insert(dictionary_batches(*id, source)?),
                };
                return next_of_dictionary(batches, number, value, cell, source, is_inner);
            }
            Self::Structure(fields) => {
                cell.json("{");
                for (i, (name, field)) in fields.iter_mut().enumerate() {
                    if cell.is_full() {
                        field.skip(1)?;
                        continue;
                    }
                    cell.json(if i > 0 { "," } else { "" });
                    cell.name(name);
                    field.next_inner(cell, source)?;
                }
                cell.json("}");
            }
        }
        Ok(true)
    }
}

/// A batch of a dictionary: its message, the description in it, and its number of values.
type DictionaryBatch = (Message, Bytes, u64);

/// The batches of the dictionary `id`, in order.
fn dictionary_batches(id: i64, source: Source<'_>) -> Result<Vec<DictionaryBatch>, Fault> {
    let mut batches = Vec::new();
    for &start in source.dictionaries {
        let message = message_at(source.window, start)?;
        let no_dictionary = || Fault::Damaged(format!("no dictionary at byte {start}"));
        let message = message.ok_or_else(no_dictionary)?;
        let description = message.description(source.window)?;
        let parsed = checked(&message, &description)?.header_as_dictionary_batch();
        let dictionary = parsed.ok_or_else(no_dictionary)?;
        if dictionary.id() == id {
            // Another dictionary of the same id replaces the one before.
            if !dictionary.isDelta() {
                batches.clear();
            }
            let rows = dictionary.data().map_or(0, |batch| batch.length());
            batches.push((message, description, u64::try_from(rows).unwrap_or(0)));
        }
    }
    Ok(batches)
}

/// Writes value `number` of a dictionary, as [`Reader::next`].
fn next_of_dictionary(
    batches: &[DictionaryBatch],
    number: u64,
    value: &Node,
    cell: &mut CellWriter,
    source: Source<'_>,
    is_inner: bool,
) -> Result<bool, Fault> {
    let mut left = number;
    for (message, description, rows) in batches {
        if left >= *rows {
            left -= rows;
            continue;
        }
        let parsed = checked(message, description)?.header_as_dictionary_batch();
        if let Some(batch) = parsed.and_then(|dictionary| dictionary.data()) {
            let buffers = Buffers::of(&batch, message, source.window)?;
            let mut reader = Reader::open(value, &batch, &buffers)?;
            reader.skip(left)?;
            return reader.next(cell, source, is_inner);
        }
    }
    Err(Fault::Damaged(format!(
        "a value has number {number}, which its dictionary does not have"
    )))
}

const VIEW_BYTES: usize = 16;
/// The longest value that is no text, in bytes.
const LONGEST_NUMBER: u64 = 16;

fn product(rows: u64, bytes: u64) -> Result<u64, Fault> {
    rows.checked_mul(bytes).ok_or_else(too_large)
}

/// How far `start` is from `position`. Values are in order, so it is not before.
fn forward(position: u64, start: u64) -> Result<u64, Fault> {
    start.checked_sub(position).ok_or_else(too_large)
}

fn too_large() -> Fault {
    Fault::Damaged("an offset is negative or too large".to_owned())
}

/// The offsets of texts or lists.
struct Offsets {
    reader: BufferReader,
    width: usize,
    /// The offset that was read last.
    last: Option<u64>,
}

impl Offsets {
    fn of(reader: BufferReader, width: usize) -> Self {
        Self {
            reader,
            width,
            last: None,
        }
    }

    fn read(&mut self) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.reader.fill(&mut bytes[..self.width])?;
        // A negative offset of 32 bits becomes larger than any buffer, too.
        Ok(u64::from_le_bytes(bytes))
    }

    fn skip(&mut self, rows: u64) -> Result<(), Fault> {
        let width = self.width as u64;
        match (self.last, rows.checked_sub(1)) {
            (_, None) => {}
            (None, _) => self.reader.skip(product(rows, width)?)?,
            (Some(_), Some(between)) => {
                self.reader.skip(product(between, width)?)?;
                self.last = Some(self.read()?);
            }
        }
        Ok(())
    }

    /// The start and the end of the next value.
    fn next(&mut self) -> Result<(u64, u64), Fault> {
        let start = match self.last {
            Some(start) => start,
            None => self.read()?,
        };
        let end = self.read()?;
        self.last = Some(end);
        if end < start {
            return Err(Fault::Damaged(
                "an offset is less than the one before it".to_owned(),
            ));
        }
        Ok((start, end))
    }
}

/// The start of the value of a view, and the length of the whole value.
fn viewed(
    view: &[u8; VIEW_BYTES],
    data: &[Data],
    window: &Window,
    max_bytes: u64,
) -> Result<(Vec<u8>, u64), Fault> {
    let number = |i: usize| {
        let bytes = [view[i], view[i + 1], view[i + 2], view[i + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let len = number(0);
    let kept = len.min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
    if len <= 12 {
        return Ok((view[4..4 + kept].to_vec(), len as u64));
    }
    let (buffer, offset) = (number(8), number(12));
    let outside = || Fault::Damaged("a view points outside its buffer".to_owned());
    let value = match data.get(buffer).ok_or_else(outside)? {
        Data::InMemory(bytes) => bytes
            .get(offset..offset + kept)
            .ok_or_else(outside)?
            .to_vec(),
        Data::InFile(place) if (offset + kept) as u64 > place.bytes => return Err(outside()),
        Data::InFile(place) => window.bytes(place.start + offset as u64, kept)?.to_vec(),
    };
    Ok((value, len as u64))
}

/// A value from its bytes, of which long ones have only their start.
fn scalar_of(value: &[u8], len_bytes: u64, number: Number) -> Scalar<'_> {
    let all = Scalar::Bytes(value, len_bytes);
    let is_negative = value.last().is_some_and(|byte| *byte >= 0x80);
    let is_signed = !matches!(number, Number::Unsigned);
    let mut wide = [if is_negative && is_signed { 0xff } else { 0 }; 16];
    let Some(start) = wide.get_mut(..value.len()) else {
        return all;
    };
    start.copy_from_slice(value);
    let integer = i128::from_le_bytes(wide);
    // All other numbers have at most 64 bits.
    let short = integer as i64;
    match number {
        Number::Bytes => all,
        Number::Signed | Number::Unsigned => Scalar::Integer(integer),
        Number::Decimal(scale) => Scalar::Decimal(integer, scale),
        Number::Float => Scalar::Float(match value.len() {
            2 => half(short as u16),
            4 => single(f32::from_bits(short as u32)),
            _ => f64::from_bits(short as u64),
        }),
        Number::Date(DateUnit::DAY) => Scalar::Date(short),
        Number::Date(_) => Scalar::Date(short.div_euclid(86_400_000)),
        Number::Time(unit) => Scalar::Time(short, unit),
        Number::Timestamp(unit, is_utc) => Scalar::Timestamp(short, unit, is_utc),
    }
}
