//! The records of a Parquet file: the values of all columns in some rows.
//!
//! A column is read after the other, and its values become cells at once, so that one page is in
//! memory. Lists and structures are put together from the levels of their leaves, by
//! <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#nested-types>.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::basic::{
    ConvertedType, DecimalType, LogicalType, Repetition, TimeType, TimeUnit, TimestampType,
    Type as PhysicalType,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::{ColumnDescriptor, Type};

use super::checked_pages::CheckedPages;
use super::large_pages::{LARGE_BYTES, LargePages};
use crate::table::cells::{Cell, CellWriter, MAX_DEPTH, Scalar, Unit, half, single};
use crate::table::fault::Fault;
use crate::table::values::{Value, Values};
use crate::table::window::Window;

/// The most values of a column in one record: they are in memory.
const MAX_VALUES: u64 = 1 << 20;
/// The most leaves of a column.
const MAX_LEAVES: usize = 256;
/// Rows that are skipped at a time, before the time is checked.
const SKIP_ROWS: u64 = 1 << 16;

/// The names of all columns, without the fields of structures.
pub(super) fn columns(metadata: &ParquetMetaData) -> Vec<String> {
    let fields = metadata.file_metadata().schema().get_fields().iter();
    fields.map(|field| field.name().to_owned()).collect()
}

/// Calls `each` with the cells of column `column` in `num_rows` rows of row group `index`, from its row
/// `first` on.
pub(super) fn cells(
    metadata: &ParquetMetaData,
    (index, column): (usize, usize),
    (first, num_rows): (u64, usize),
    window: &Window,
    max_bytes: usize,
    each: &mut dyn FnMut(Cell),
) -> Result<(), Fault> {
    let row_group = metadata.row_group(index);
    let schema = metadata.file_metadata().schema_descr();
    let field = &schema.root_schema().get_fields()[column];
    let is_own = |&leaf: &usize| schema.get_column_root_idx(leaf) == column;
    let leaves: Vec<usize> = (0..schema.num_columns()).filter(is_own).collect();
    if leaves.is_empty() || leaves.len() > MAX_LEAVES {
        return Err(Fault::Unsupported(format!(
            "it is a structure of {} fields, and at most {MAX_LEAVES} are shown",
            leaves.len()
        )));
    }
    if let [leaf] = leaves[..]
        && !is_nested(&schema.column(leaf))
        && let Some(mut values) =
            LargePages::open(window, row_group.column(leaf), index, LARGE_BYTES)?
    {
        values.skip(first)?;
        let descr = schema.column(leaf);
        for _ in 0..num_rows {
            each(large_cell(&mut values, &descr, window, max_bytes)?);
        }
        return Ok(());
    }
    let open = |&leaf: &usize| Leaf::open(window, row_group, index, leaf);
    let mut leaves = leaves.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for leaf in &mut leaves {
        leaf.skip(first, window)?;
    }
    for _ in 0..num_rows {
        for leaf in &mut leaves {
            leaf.read()?;
        }
        each(cell_of(field, &leaves, max_bytes)?);
    }
    Ok(())
}

fn is_nested(column: &ColumnDescriptor) -> bool {
    column.path().parts().len() > 1 || column.max_rep_level() > 0
}

/// The next cell of a column with large pages.
fn large_cell(
    values: &mut LargePages,
    descr: &ColumnDescriptor,
    window: &Window,
    max_bytes: usize,
) -> Result<Cell, Fault> {
    let cell = |bytes: &[u8]| {
        let mut cell = CellWriter::new(max_bytes);
        cell.scalar(&scalar_of_bytes(bytes, descr), false);
        cell.finish()
    };
    Ok(match values.next_value(window.max_bytes())? {
        Some(Value::Bytes(bytes)) => cell(bytes),
        Some(Value::Oversize(len)) => Cell::fault(format!("the value has {len} bytes")),
        Some(Value::Null | Value::OtherType(_)) => Cell::default(),
        None => return Err(fewer_rows()),
    })
}

fn fewer_rows() -> Fault {
    Fault::Damaged("a column has fewer rows than its row group".to_owned())
}

/// A leaf of the schema, and its values in one record.
struct Leaf {
    reader: Box<dyn ReadRecord>,
    descr: Arc<ColumnDescriptor>,
    /// The number of values that the next pages may have; `None` if a record has one value.
    max_values: Option<Arc<AtomicU64>>,
    /// The repetition and the definition level of each value, and its index in `values` unless it
    /// is null.
    levels: Vec<(i16, i16, usize)>,
    values: Vec<Datum>,
}

impl Leaf {
    fn open(
        window: &Window,
        row_group: &RowGroupMetaData,
        index: usize,
        leaf: usize,
    ) -> Result<Self, Fault> {
        let chunk = row_group.column(leaf);
        let num_rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let pages = CheckedPages::open(window, chunk, index, num_rows)?;
        let is_list = chunk.column_descr().max_rep_level() > 0;
        let max_values = is_list.then(|| pages.max_values());
        let descr = chunk.column_descr_ptr();
        Ok(Self {
            reader: typed(get_column_reader(Arc::clone(&descr), Box::new(pages))),
            descr,
            max_values,
            levels: Vec::new(),
            values: Vec::new(),
        })
    }

    fn skip(&mut self, rows: u64, window: &Window) -> Result<(), Fault> {
        let mut left = rows;
        while left > 0 {
            window.check_time()?;
            let step = left.min(SKIP_ROWS);
            if self.reader.skip(step as usize)? as u64 != step {
                return Err(fewer_rows());
            }
            left -= step;
        }
        Ok(())
    }

    /// Reads the next record.
    fn read(&mut self) -> Result<(), Fault> {
        if let Some(max_values) = &self.max_values {
            max_values.store(MAX_VALUES, Ordering::Relaxed);
        }
        self.values.clear();
        let (reps, defs, num_levels) = self.reader.read(&mut self.values)?;
        let most = self.descr.max_def_level();
        let mut num_values = 0;
        self.levels.clear();
        for i in 0..num_levels {
            let rep = reps.get(i).copied().unwrap_or(0);
            let def = defs.get(i).copied().unwrap_or(most);
            self.levels.push((rep, def, num_values));
            num_values += usize::from(def == most);
        }
        if num_values == self.values.len() && num_levels > 0 {
            Ok(())
        } else {
            Err(fewer_rows())
        }
    }
}

/// A value of any physical type.
enum Datum {
    Bool(bool),
    Integer(i64),
    Nanoseconds(i64),
    Float(f64),
    Bytes(ByteArray),
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Datum {
    fn from(value: i32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<Int96> for Datum {
    fn from(value: Int96) -> Self {
        Self::Nanoseconds(value.to_nanos())
    }
}

impl From<f32> for Datum {
    fn from(value: f32) -> Self {
        Self::Float(single(value))
    }
}

impl From<f64> for Datum {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<ByteArray> for Datum {
    fn from(value: ByteArray) -> Self {
        Self::Bytes(value)
    }
}

impl From<FixedLenByteArray> for Datum {
    fn from(value: FixedLenByteArray) -> Self {
        Self::Bytes(value.into())
    }
}

/// Reads a leaf, record by record.
trait ReadRecord {
    /// Returns how many of `rows` there were.
    fn skip(&mut self, rows: usize) -> Result<usize, Fault>;

    /// Appends the values of the next record. Returns its repetition and definition levels, if the
    /// leaf has any, and their number.
    fn read(&mut self, values: &mut Vec<Datum>) -> Result<(&[i16], &[i16], usize), Fault>;
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    reps: Vec<i16>,
    defs: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> ReadRecord for Typed<T>
where
    Datum: From<T::T>,
{
    fn skip(&mut self, rows: usize) -> Result<usize, Fault> {
        Ok(self.reader.skip_records(rows)?)
    }

    fn read(&mut self, values: &mut Vec<Datum>) -> Result<(&[i16], &[i16], usize), Fault> {
        self.reps.clear();
        self.defs.clear();
        let (defs, reps) = (Some(&mut self.defs), Some(&mut self.reps));
        let (_, _, num_levels) = self.reader.read_records(1, defs, reps, &mut self.values)?;
        values.extend(self.values.drain(..).map(Datum::from));
        Ok((&self.reps, &self.defs, num_levels))
    }
}

fn typed(reader: ColumnReader) -> Box<dyn ReadRecord> {
    fn boxed<T: DataType>(reader: ColumnReaderImpl<T>) -> Box<dyn ReadRecord>
    where
        Datum: From<T::T>,
    {
        Box::new(Typed {
            reader,
            reps: Vec::new(),
            defs: Vec::new(),
            values: Vec::new(),
        })
    }
    match reader {
        ColumnReader::BoolColumnReader(reader) => boxed(reader),
        ColumnReader::Int32ColumnReader(reader) => boxed(reader),
        ColumnReader::Int64ColumnReader(reader) => boxed(reader),
        ColumnReader::Int96ColumnReader(reader) => boxed(reader),
        ColumnReader::FloatColumnReader(reader) => boxed(reader),
        ColumnReader::DoubleColumnReader(reader) => boxed(reader),
        ColumnReader::ByteArrayColumnReader(reader) => boxed(reader),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => boxed(reader),
    }
}

/// The cell of a column in the record that its leaves have read.
fn cell_of(field: &Type, leaves: &[Leaf], max_bytes: usize) -> Result<Cell, Fault> {
    let mut cell = CellWriter::new(max_bytes);
    let parts: Vec<Part<'_>> = leaves.iter().map(|leaf| (leaf, &leaf.levels[..])).collect();
    let is_optional = field.get_basic_info().repetition() == Repetition::OPTIONAL;
    if is_optional && parts[0].1[0].1 == 0 {
        return Ok(Cell::default());
    }
    let mut nested = Nested { cell: &mut cell };
    nested.field(field, &parts, (0, 0), 0)?;
    Ok(cell.finish())
}

/// A leaf, and the part of its levels that belongs to a value.
type Part<'a> = (&'a Leaf, &'a [(i16, i16, usize)]);

/// Writes a value, which may be nested.
struct Nested<'a> {
    cell: &'a mut CellWriter,
}

impl Nested<'_> {
    /// Writes a field from the parts of its leaves, inside of fields of these repetition and
    /// definition levels.
    fn field(
        &mut self,
        field: &Type,
        parts: &[Part<'_>],
        (rep, def): (i16, i16),
        depth: usize,
    ) -> Result<(), Fault> {
        match field.get_basic_info().repetition() {
            Repetition::REQUIRED => self.content(field, parts, (rep, def), depth),
            Repetition::OPTIONAL if first(parts)?.1 > def => {
                self.content(field, parts, (rep, def + 1), depth)
            }
            Repetition::OPTIONAL => {
                self.cell.json("null");
                Ok(())
            }
            Repetition::REPEATED => self.list(field, None, parts, (rep, def), depth),
        }
    }

    /// Writes the values of a repeated field. With `element`, the field is only around the element.
    fn list(
        &mut self,
        field: &Type,
        element: Option<&Type>,
        parts: &[Part<'_>],
        (rep, def): (i16, i16),
        depth: usize,
    ) -> Result<(), Fault> {
        let (rep, def) = (rep + 1, def + 1);
        if first(parts)?.1 < def {
            self.cell.json("[]");
            return Ok(());
        }
        let mut rest = parts.to_vec();
        let mut bracket = "[";
        while !rest[0].1.is_empty() && !self.cell.is_full() {
            let mut parts = Vec::with_capacity(rest.len());
            for (leaf, levels) in &mut rest {
                let is_next = |(i, level): (usize, &(i16, i16, usize))| i > 0 && level.0 <= rep;
                let end = levels.iter().enumerate().position(is_next);
                let (part, after) = levels.split_at(end.unwrap_or(levels.len()));
                parts.push((*leaf, part));
                *levels = after;
            }
            self.cell.json(bracket);
            bracket = ",";
            match element {
                Some(element) => self.field(element, &parts, (rep, def), depth + 1)?,
                None => self.content(field, &parts, (rep, def), depth + 1)?,
            }
        }
        self.cell.json(if bracket == "[" { "[]" } else { "]" });
        Ok(())
    }

    /// Writes a value that is there.
    fn content(
        &mut self,
        field: &Type,
        parts: &[Part<'_>],
        levels: (i16, i16),
        depth: usize,
    ) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            self.cell.scalar(&Scalar::Other("deeper nesting"), true);
            return Ok(());
        }
        if field.is_primitive() {
            let (leaf, _) = parts[0];
            let datum = leaf.values.get(first(parts)?.2).ok_or_else(fewer_rows)?;
            self.cell.scalar(&scalar_of(datum, &leaf.descr), depth > 0);
            return Ok(());
        }
        let fields = field.get_fields();
        if let [repeated] = fields
            && repeated.get_basic_info().repetition() == Repetition::REPEATED
        {
            match kind_of(field) {
                Group::List => {
                    let element = element_of(field, repeated);
                    return self.list(repeated, element, parts, levels, depth + 1);
                }
                Group::Map => return self.list(repeated, None, parts, levels, depth + 1),
                Group::Structure => {}
            }
        }
        let mut rest = parts;
        let mut bracket = "{";
        for inner in fields {
            let (own, after) = rest
                .split_at_checked(num_leaves(inner))
                .ok_or_else(fewer_rows)?;
            rest = after;
            if own.is_empty() {
                continue;
            }
            if self.cell.is_full() {
                break;
            }
            self.cell.json(bracket);
            bracket = ",";
            self.cell.name(inner.name());
            self.field(inner, own, levels, depth + 1)?;
        }
        self.cell.json(if bracket == "{" { "{}" } else { "}" });
        Ok(())
    }
}

/// The first levels of the first leaf.
fn first(parts: &[Part<'_>]) -> Result<(i16, i16, usize), Fault> {
    let part = parts.first().and_then(|(_, levels)| levels.first());
    part.copied().ok_or_else(fewer_rows)
}

fn num_leaves(field: &Type) -> usize {
    if field.is_primitive() {
        1
    } else {
        field
            .get_fields()
            .iter()
            .map(|field| num_leaves(field))
            .sum()
    }
}

/// The meaning of a group of fields.
enum Group {
    List,
    Map,
    Structure,
}

fn kind_of(group: &Type) -> Group {
    let info = group.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => Group::List,
        (Some(LogicalType::Map), _) | (None, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => {
            Group::Map
        }
        _ => Group::Structure,
    }
}

/// The element of a list, unless the repeated field itself is the element.
fn element_of<'a>(list: &Type, repeated: &'a Type) -> Option<&'a Type> {
    if repeated.is_primitive() {
        return None;
    }
    let name = repeated.name();
    let is_element = name == "array" || name.strip_suffix("_tuple") == Some(list.name());
    match repeated.get_fields() {
        [element] if !is_element => Some(element),
        _ => None,
    }
}

/// A value by the logical type of its leaf.
fn scalar_of<'a>(datum: &'a Datum, leaf: &ColumnDescriptor) -> Scalar<'a> {
    match datum {
        Datum::Bool(value) => Scalar::Bool(*value),
        Datum::Float(value) => Scalar::Float(*value),
        Datum::Nanoseconds(value) => Scalar::Timestamp(*value, Unit::Nanoseconds, false),
        Datum::Integer(value) => scalar_of_integer(*value, leaf),
        Datum::Bytes(value) => scalar_of_bytes(value.data(), leaf),
    }
}

fn scalar_of_integer(value: i64, leaf: &ColumnDescriptor) -> Scalar<'static> {
    let is_32 = leaf.physical_type() == PhysicalType::INT32;
    match leaf.logical_type_ref() {
        Some(LogicalType::Date) => return Scalar::Date(value),
        Some(LogicalType::Time(TimeType { unit, .. })) => {
            return Scalar::Time(value, unit_of(unit));
        }
        Some(LogicalType::Timestamp(TimestampType {
            is_adjusted_to_u_t_c,
            unit,
        })) => return Scalar::Timestamp(value, unit_of(unit), *is_adjusted_to_u_t_c),
        Some(LogicalType::Decimal(DecimalType { scale, .. })) => {
            return Scalar::Decimal(value.into(), *scale);
        }
        _ => {}
    }
    match leaf.converted_type() {
        ConvertedType::DATE => Scalar::Date(value),
        ConvertedType::TIME_MILLIS => Scalar::Time(value, Unit::Milliseconds),
        ConvertedType::TIME_MICROS => Scalar::Time(value, Unit::Microseconds),
        ConvertedType::TIMESTAMP_MILLIS => Scalar::Timestamp(value, Unit::Milliseconds, true),
        ConvertedType::TIMESTAMP_MICROS => Scalar::Timestamp(value, Unit::Microseconds, true),
        ConvertedType::DECIMAL => Scalar::Decimal(value.into(), leaf.type_scale()),
        ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 if is_32 => {
            Scalar::Integer((value as u32).into())
        }
        ConvertedType::UINT_64 => Scalar::Integer((value as u64).into()),
        _ => Scalar::Integer(value.into()),
    }
}

fn unit_of(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS => Unit::Milliseconds,
        TimeUnit::MICROS => Unit::Microseconds,
        TimeUnit::NANOS => Unit::Nanoseconds,
    }
}

fn scalar_of_bytes<'a>(bytes: &'a [u8], leaf: &ColumnDescriptor) -> Scalar<'a> {
    let all = Scalar::Bytes(bytes, bytes.len() as u64);
    let is_decimal = leaf.converted_type() == ConvertedType::DECIMAL;
    match (leaf.logical_type_ref(), bytes) {
        (Some(LogicalType::Float16), &[low, high]) => {
            Scalar::Float(half(u16::from_le_bytes([low, high])))
        }
        (Some(LogicalType::Decimal(DecimalType { scale, .. })), _) => {
            big_endian(bytes).map_or(all, |value| Scalar::Decimal(value, *scale))
        }
        (None, _) if is_decimal => {
            big_endian(bytes).map_or(all, |value| Scalar::Decimal(value, leaf.type_scale()))
        }
        _ => all,
    }
}

/// A signed number of up to 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}
