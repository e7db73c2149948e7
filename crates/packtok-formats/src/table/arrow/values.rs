//! The values of one record batch.

use arrow_ipc::{CompressionType, Message as Parsed, MetadataVersion, RecordBatch};

use super::super::fault::Fault;
use super::super::values::{Value, Values};
use super::super::window::Window;
use super::buffer::{BufferReader, Span};
use super::column::{Column, Position, Storage};
use super::message::{Message, parse};

/// Up to this length, memory for a value is reserved without comparing the length with the rest of
/// its buffer.
const MAX_RESERVED_BYTES: u64 = 1 << 20;

/// The values of the record batch at `message`.
pub(super) fn open(
    message: &Message,
    column: &Column,
    window: &Window,
) -> Result<Box<dyn Values>, Fault> {
    let description = message.description(window)?;
    let batch = batch_of(message, &description)?;
    let buffers = Buffers::of(&batch, message, window)?;
    let validity = column.path.iter();
    let validity = validity.map(|position| buffers.validity(&batch, *position));
    let validity = validity
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let last = column.path[column.path.len() - 1];
    let first = buffers.first_of(last);
    let mut rows = Rows {
        rows: message.rows,
        validity,
    };
    Ok(match column.storage {
        Storage::Offsets32
        | Storage::Offsets64
        | Storage::Lists32(_)
        | Storage::Lists64(_)
        | Storage::BitLists32
        | Storage::BitLists64 => {
            let (width, unit, data) = match column.storage {
                Storage::Offsets64 => (8, 1, first + 2),
                // The numbers are a field of their own, whose first buffer is a validity bitmap.
                Storage::Lists32(bytes) => (4, bytes, first + 3),
                Storage::Lists64(bytes) => (8, bytes, first + 3),
                Storage::BitLists32 => (4, 1, first + 3),
                Storage::BitLists64 => (8, 1, first + 3),
                _ => (4, 1, first + 2),
            };
            let is_bits = matches!(column.storage, Storage::BitLists32 | Storage::BitLists64);
            if data > first + 2 {
                check_no_null_element(&batch, column)?;
            }
            if rows.rows == 0 {
                rows.validity.clear();
            }
            Box::new(ContiguousValues {
                rows,
                width,
                unit,
                offsets: buffers.reader(first + 1)?,
                data: if is_bits {
                    ContiguousData::Bits(Bits::of(buffers.reader(data)?))
                } else {
                    ContiguousData::Bytes(buffers.reader(data)?)
                },
                position: 0,
                end: None,
                value: Vec::new(),
            })
        }
        Storage::Fixed(width) => Box::new(FixedValues {
            rows,
            width,
            data: buffers.reader(first + 1)?,
            value: Vec::new(),
        }),
        Storage::Views => Box::new(ViewValues {
            rows,
            views: buffers.reader(first + 1)?,
            window: window.clone(),
            data: buffers.view_buffers(&batch, last)?,
            value: Vec::new(),
        }),
    })
}

/// The record batch that a message describes.
pub(super) fn batch_of<'a>(
    message: &Message,
    description: &'a [u8],
) -> Result<RecordBatch<'a>, Fault> {
    let batch = checked(message, description)?.header_as_record_batch();
    batch.ok_or_else(|| Fault::Damaged(format!("no record batch at byte {}", message.start)))
}

/// A message, whose buffers have the layout of today's versions of Arrow.
pub(super) fn checked<'a>(message: &Message, description: &'a [u8]) -> Result<Parsed<'a>, Fault> {
    let parsed = parse(description, message.start)?;
    if parsed.version() < MetadataVersion::V5 {
        return Err(Fault::Unsupported(
            "it was written by Arrow before 1.0; write it again with a later version".to_owned(),
        ));
    }
    Ok(parsed)
}

/// Checks that no element of the lists of a column is null.
fn check_no_null_element(batch: &RecordBatch<'_>, column: &Column) -> Result<(), Fault> {
    let element = column.path.last().map_or(0, |position| position.node + 1);
    let nodes = batch.nodes().filter(|nodes| element < nodes.len());
    match nodes.map(|nodes| nodes.get(element).null_count()) {
        Some(0) => Ok(()),
        Some(_) => Err(Fault::Damaged(
            "a list has a null instead of a number".to_owned(),
        )),
        None => Err(Fault::Damaged(
            "a record batch has fewer nodes than its schema".to_owned(),
        )),
    }
}

/// The buffers of a record batch.
pub(super) struct Buffers<'a> {
    window: &'a Window,
    places: Vec<Span>,
    codec: Option<CompressionType>,
    /// Number of buffers of each column that is stored as views.
    num_view_buffers: Vec<usize>,
}

impl<'a> Buffers<'a> {
    pub(super) fn of(
        batch: &RecordBatch<'_>,
        message: &Message,
        window: &'a Window,
    ) -> Result<Self, Fault> {
        let end = message.end();
        let place = |buffer: &arrow_ipc::Buffer| {
            let start = u64::try_from(buffer.offset())
                .ok()?
                .checked_add(message.body_start())?;
            let bytes = u64::try_from(buffer.length()).ok()?;
            (start.checked_add(bytes)? <= end).then_some(Span { start, bytes })
        };
        let buffers = batch.buffers();
        let places = buffers.iter().flatten().map(|buffer| {
            place(buffer)
                .ok_or_else(|| Fault::Damaged("a buffer exceeds its record batch".to_owned()))
        });
        let counts = batch.variadicBufferCounts();
        let counts = counts.iter().flatten();
        Ok(Self {
            window,
            places: places.collect::<Result<_, _>>()?,
            codec: batch.compression().map(|compression| compression.codec()),
            num_view_buffers: counts
                .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
                .collect(),
        })
    }

    /// The number of the first buffer of the field at `position`.
    pub(super) fn first_of(&self, position: Position) -> usize {
        let of_views = self.num_view_buffers.iter().take(position.views);
        of_views.fold(position.buffer, |first, count| first.saturating_add(*count))
    }

    fn place(&self, i: usize) -> Result<Span, Fault> {
        let place = self.places.get(i).copied();
        place.ok_or_else(|| {
            Fault::Damaged("a record batch has fewer buffers than its schema".to_owned())
        })
    }

    pub(super) fn reader(&self, i: usize) -> Result<BufferReader, Fault> {
        BufferReader::open(self.window, self.place(i)?, self.codec)
    }

    /// The validity bitmap of a field: which rows are not null. `None` if no row is null.
    pub(super) fn validity(
        &self,
        batch: &RecordBatch<'_>,
        position: Position,
    ) -> Result<Option<Bits>, Fault> {
        let node = batch
            .nodes()
            .filter(|nodes| position.node < nodes.len())
            .map(|nodes| *nodes.get(position.node));
        let node = node.ok_or_else(|| {
            Fault::Damaged("a record batch has fewer nodes than its schema".to_owned())
        })?;
        let first = self.first_of(position);
        if node.null_count() == 0 || self.place(first)?.bytes == 0 {
            return Ok(None);
        }
        Ok(Some(Bits::of(self.reader(first)?)))
    }

    /// The buffers of the field at `position`, which is stored as views.
    pub(super) fn view_buffers(
        &self,
        batch: &RecordBatch<'_>,
        position: Position,
    ) -> Result<Vec<Data>, Fault> {
        let first = self.first_of(position) + 2;
        let count = self.num_view_buffers.get(position.views).copied();
        let count = count.unwrap_or(0);
        if count > batch.buffers().map_or(0, |buffers| buffers.len()) {
            return Err(Fault::Damaged(
                "a record batch has fewer buffers than it says".to_owned(),
            ));
        }
        let data = |i| match self.codec {
            None => self.place(i).map(Data::InFile),
            // Views point to any offset, so the whole buffer must be decompressed. Offsets are
            // 32-bit signed integers, which bounds its length.
            Some(_) => {
                let most = self.window.max_bytes().min(i32::MAX as u64);
                Ok(Data::InMemory(self.reader(i)?.rest(most)?))
            }
        };
        (first..first + count).map(data).collect()
    }
}

/// The remaining rows, and their validity.
struct Rows {
    rows: u64,
    /// The validity bitmaps of the column and of the structures around it, where they contain
    /// nulls.
    validity: Vec<Bits>,
}

impl Rows {
    /// Whether the next row is valid (not null); `None` after the last row.
    fn next(&mut self) -> Result<Option<bool>, Fault> {
        if self.rows == 0 {
            return Ok(None);
        }
        self.rows -= 1;
        let mut is_valid = true;
        for bits in &mut self.validity {
            is_valid &= bits.next()?;
        }
        Ok(Some(is_valid))
    }
}

/// A bit for each row or value, the lowest of a byte first.
pub(super) struct Bits {
    reader: BufferReader,
    byte: u8,
    used: u8,
}

impl Bits {
    pub(super) fn of(reader: BufferReader) -> Self {
        Self {
            reader,
            byte: 0,
            used: 8,
        }
    }

    /// Moves on by this many bits.
    pub(super) fn skip(&mut self, mut count: u64) -> Result<(), Fault> {
        let rest = u64::from(8 - self.used).min(count);
        self.used += rest as u8;
        count -= rest;
        self.reader.skip(count / 8)?;
        for _ in 0..count % 8 {
            self.next()?;
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<bool, Fault> {
        if self.used == 8 {
            let mut byte = [0];
            self.reader.fill(&mut byte)?;
            (self.byte, self.used) = (byte[0], 0);
        }
        self.used += 1;
        Ok(self.byte >> (self.used - 1) & 1 == 1)
    }
}

/// What offsets point into.
enum ContiguousData {
    Bytes(BufferReader),
    /// Each bit is read as a byte.
    Bits(Bits),
}

/// Contiguous values, and the end offset of each.
struct ContiguousValues {
    rows: Rows,
    /// Bytes of an offset.
    width: usize,
    /// Bytes that an offset counts.
    unit: u64,
    offsets: BufferReader,
    data: ContiguousData,
    /// Bytes of `data` that were read, or bits.
    position: u64,
    /// End of the previous value; `None` before the first one.
    end: Option<u64>,
    value: Vec<u8>,
}

impl ContiguousValues {
    fn next_offset(&mut self) -> Result<u64, Fault> {
        let mut offset = [0; 8];
        self.offsets.fill(&mut offset[..self.width])?;
        let offset = match self.width {
            4 => i64::from(i32::from_le_bytes([
                offset[0], offset[1], offset[2], offset[3],
            ])),
            _ => i64::from_le_bytes(offset),
        };
        let offset = u64::try_from(offset).ok();
        let offset = offset.and_then(|offset| offset.checked_mul(self.unit));
        offset.ok_or_else(|| Fault::Damaged("an offset is negative or too large".to_owned()))
    }

    fn move_to(&mut self, position: u64) -> Result<(), Fault> {
        let count = position - self.position;
        match &mut self.data {
            ContiguousData::Bytes(data) => data.skip(count)?,
            ContiguousData::Bits(bits) => bits.skip(count)?,
        }
        self.position = position;
        Ok(())
    }
}

impl Values for ContiguousValues {
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault> {
        let Some(is_valid) = self.rows.next()? else {
            return Ok(None);
        };
        let start = match self.end {
            Some(end) => end,
            None => self.next_offset()?,
        };
        let end = self.next_offset()?;
        if end < start {
            return Err(Fault::Damaged(
                "an offset is less than the one before it".to_owned(),
            ));
        }
        self.end = Some(end);
        if !is_valid {
            return Ok(Some(Value::Null));
        }
        if end - start > max_bytes {
            return Ok(Some(Value::Oversize(end - start)));
        }
        self.move_to(start)?;
        match &mut self.data {
            ContiguousData::Bytes(data) => read_value(data, end - start, &mut self.value)?,
            ContiguousData::Bits(bits) => {
                self.value.clear();
                for _ in start..end {
                    self.value.push(bits.next()?.into());
                }
            }
        }
        self.position = end;
        Ok(Some(Value::Bytes(&self.value)))
    }
}

/// Contiguous values of equal length.
struct FixedValues {
    rows: Rows,
    width: u64,
    data: BufferReader,
    value: Vec<u8>,
}

impl Values for FixedValues {
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault> {
        let Some(is_valid) = self.rows.next()? else {
            return Ok(None);
        };
        if !is_valid || self.width > max_bytes {
            self.data.skip(self.width)?;
            return Ok(Some(if is_valid {
                Value::Oversize(self.width)
            } else {
                Value::Null
            }));
        }
        read_value(&mut self.data, self.width, &mut self.value)?;
        Ok(Some(Value::Bytes(&self.value)))
    }
}

/// Replaces `value` by the next `len` bytes of `data`. Memory is reserved while the bytes are read,
/// because a damaged file may declare a wrong `len`.
pub(super) fn read_value(
    data: &mut BufferReader,
    len: u64,
    value: &mut Vec<u8>,
) -> Result<(), Fault> {
    value.clear();
    let mut rest = len;
    while rest > 0 {
        let start = value.len();
        let step = rest.min(MAX_RESERVED_BYTES.max(start as u64)) as usize;
        value.resize(start + step, 0);
        data.fill(&mut value[start..])?;
        rest -= step as u64;
    }
    Ok(())
}

/// Values in several buffers.
struct ViewValues {
    rows: Rows,
    views: BufferReader,
    window: Window,
    data: Vec<Data>,
    value: Vec<u8>,
}

/// A buffer that views point into.
pub(super) enum Data {
    InFile(Span),
    InMemory(Vec<u8>),
}

impl Values for ViewValues {
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault> {
        let Some(is_valid) = self.rows.next()? else {
            return Ok(None);
        };
        let mut view = [0; 16];
        self.views.fill(&mut view)?;
        if !is_valid {
            return Ok(Some(Value::Null));
        }
        let number = |i: usize| {
            let bytes = [view[i], view[i + 1], view[i + 2], view[i + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let len = number(0);
        self.value.clear();
        if len <= 12 {
            self.value.extend_from_slice(&view[4..4 + len]);
            return Ok(Some(Value::Bytes(&self.value)));
        }
        if len as u64 > max_bytes {
            return Ok(Some(Value::Oversize(len as u64)));
        }
        let (buffer, offset) = (number(8), number(12));
        let outside = || Fault::Damaged("a view points outside its buffer".to_owned());
        match self.data.get(buffer).ok_or_else(outside)? {
            Data::InMemory(bytes) => {
                let value = bytes.get(offset..offset + len).ok_or_else(outside)?;
                self.value.extend_from_slice(value);
            }
            Data::InFile(place) => {
                if (offset + len) as u64 > place.bytes {
                    return Err(outside());
                }
                let value = self.window.bytes(place.start + offset as u64, len)?;
                self.value.extend_from_slice(&value);
            }
        }
        Ok(Some(Value::Bytes(&self.value)))
    }
}
