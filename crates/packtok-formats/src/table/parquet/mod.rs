//! Decodes a column of bytes of Parquet files, page by page.
//!
//! The values of a page are slices of its decompressed bytes, so a row group with any number of
//! bytes needs memory for about one page. Large pages are decompressed piece by piece
//! (`large_pages`).

mod checked_pages;
mod hybrid;
mod id_lists;
mod large_pages;
mod lz;
mod page_bytes;
mod page_header;
mod records;

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescriptor;

use self::checked_pages::CheckedPages;
pub use self::id_lists::{IdLists, Lists};
use self::large_pages::{LARGE_BYTES, LargePages};
use super::cells::Cell;
use super::fault::Fault;
use super::group::Group;
use super::values::{OtherValues, Value, Values};
use super::window::{Window, WindowReader};

/// The first bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// Number of values per decoding step. All of them are in memory at once, so the number is small
/// in case the values are large.
const BATCH_ROWS: usize = 16;

/// The file metadata that decoding a row group requires.
pub(super) struct Layout {
    metadata: ParquetMetaData,
    /// The column to read, or the name of its type if it does not contain bytes.
    column: Result<usize, &'static str>,
}

/// The row groups of a file, and the checksum of their description. `names` is the column to read,
/// if any.
pub(super) fn open(
    window: &Window,
    names: Option<&[String]>,
) -> Result<(Vec<Group>, u32, Layout), Fault> {
    let head_bytes = window.len_bytes().min(MAGIC.len() as u64) as usize;
    if window.bytes(0, head_bytes)? != MAGIC {
        return Err(Fault::OtherFormat);
    }
    let metadata = ParquetMetaDataReader::new().parse_and_finish(window)?;
    let mut first_row = 0;
    let mut list = Vec::with_capacity(metadata.num_row_groups());
    for (index, row_group) in metadata.row_groups().iter().enumerate() {
        let rows = u64::try_from(row_group.num_rows());
        let rows = rows.map_err(|_| {
            Fault::Damaged(format!("row group {index} has a negative number of rows"))
        })?;
        list.push(Group {
            index,
            start: start_of(row_group),
            first_row,
            rows,
        });
        first_row += rows;
    }
    let column = match names {
        Some(names) => find_column(&metadata, names)?,
        None => Err("nothing"),
    };
    let crc32c = crc32c::crc32c(&footer(window)?);
    Ok((list, crc32c, Layout { metadata, column }))
}

/// The part of the file that describes it.
fn footer(window: &Window) -> Result<Bytes, Fault> {
    const TAIL_BYTES: u64 = 8;
    let tail_start = window.len_bytes().saturating_sub(TAIL_BYTES);
    let tail = window.bytes(tail_start, TAIL_BYTES as usize)?;
    let len = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = tail_start.checked_sub(len.into());
    let start =
        start.ok_or_else(|| Fault::Damaged("the footer is longer than the file".to_owned()))?;
    Ok(window.bytes(start, len as usize)?)
}

/// Offset of the first byte of a row group.
fn start_of(row_group: &RowGroupMetaData) -> u64 {
    let columns = row_group.columns().iter();
    let starts = columns.map(|column| {
        let page = column.data_page_offset();
        column
            .dictionary_page_offset()
            .map_or(page, |dictionary| dictionary.min(page))
    });
    // Negative offsets are reported when the column is read.
    starts
        .min()
        .map_or(0, |start| u64::try_from(start).unwrap_or(0))
}

/// The leaf column `names`, or the name of its type if it does not contain bytes.
fn find_column(
    metadata: &ParquetMetaData,
    names: &[String],
) -> Result<Result<usize, &'static str>, Fault> {
    let schema = metadata.file_metadata().schema_descr();
    let columns = schema.columns();
    let mut leaves = (0..columns.len()).filter(|&i| columns[i].path().parts() == names);
    match (leaves.next(), leaves.next()) {
        (Some(first), Some(second)) => return Err(Fault::ColumnTwice(first + 1, second + 1)),
        (Some(leaf), None) => return Ok(not_bytes(&columns[leaf]).map_or(Ok(leaf), Err)),
        (None, _) => {}
    }
    if columns
        .iter()
        .any(|column| column.path().parts().starts_with(names))
    {
        Ok(Err("a nested column"))
    } else {
        Err(Fault::ColumnMissing(
            columns
                .iter()
                .map(|column| column.path().string())
                .collect(),
        ))
    }
}

/// The name of the column's type, unless it contains bytes.
fn not_bytes(column: &ColumnDescriptor) -> Option<&'static str> {
    if column.max_rep_level() > 0 {
        return Some("a list");
    }
    match column.physical_type() {
        PhysicalType::BYTE_ARRAY => match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Decimal { .. }), _) | (_, ConvertedType::DECIMAL) => {
                Some("a decimal")
            }
            // Some writers do not annotate text columns. The caller checks whether values are
            // UTF-8.
            _ => None,
        },
        PhysicalType::BOOLEAN => Some("a boolean"),
        PhysicalType::INT32 | PhysicalType::INT64 | PhysicalType::INT96 => Some("an integer"),
        PhysicalType::FLOAT | PhysicalType::DOUBLE => Some("a floating-point number"),
        PhysicalType::FIXED_LEN_BYTE_ARRAY => fixed_not_bytes(column),
    }
}

/// The name of the type of a column with values of equal length, unless they may be any bytes.
fn fixed_not_bytes(column: &ColumnDescriptor) -> Option<&'static str> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Decimal { .. }), _) | (_, ConvertedType::DECIMAL) => Some("a decimal"),
        (Some(LogicalType::Uuid), _) => Some("a UUID"),
        (Some(LogicalType::Float16), _) => Some("a floating-point number"),
        (_, ConvertedType::INTERVAL) => Some("a time"),
        _ => None,
    }
}

impl Layout {
    /// The names of the columns that contain texts.
    pub(super) fn text_columns(&self) -> Vec<String> {
        let columns = self.metadata.file_metadata().schema_descr().columns();
        let is_text = |column: &&Arc<ColumnDescriptor>| {
            not_bytes(column).is_none() && column.converted_type() == ConvertedType::UTF8
        };
        let texts = columns.iter().filter(is_text);
        texts.map(|column| column.path().string()).collect()
    }

    /// The names of all columns, without the fields of structures.
    pub(super) fn columns(&self) -> Vec<String> {
        records::columns(&self.metadata)
    }

    /// Calls `each` with the cells of a column in some rows of row group `index`: from a row on, so
    /// many.
    pub(super) fn cells(
        &self,
        place: (usize, usize),
        rows: (u64, usize),
        window: &Window,
        max_bytes: usize,
        each: &mut dyn FnMut(Cell),
    ) -> Result<(), Fault> {
        records::cells(&self.metadata, place, rows, window, max_bytes, each)
    }

    /// The values of row group `index`.
    pub(super) fn values(&self, index: usize, window: &Window) -> Result<Box<dyn Values>, Fault> {
        self.values_in_pieces(index, window, LARGE_BYTES)
    }

    /// The values of row group `index`; pages of more than `large_bytes` are read in pieces.
    fn values_in_pieces(
        &self,
        index: usize,
        window: &Window,
        large_bytes: u64,
    ) -> Result<Box<dyn Values>, Fault> {
        let row_group = self.metadata.row_group(index);
        let num_rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let column = match self.column {
            Ok(column) => column,
            Err(name) => return Ok(Box::new(OtherValues::new(num_rows as u64, name))),
        };
        let chunk = row_group.column(column);
        if let Some(values) = LargePages::open(window, chunk, index, large_bytes)? {
            return Ok(Box::new(values));
        }
        let pages = CheckedPages::open(window, chunk, index, num_rows)?;
        let max_def_level = chunk.column_descr().max_def_level();
        match get_column_reader(chunk.column_descr_ptr(), Box::new(pages)) {
            ColumnReader::ByteArrayColumnReader(reader) => {
                Ok(Box::new(RowGroupValues::new(reader, max_def_level)))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                Ok(Box::new(RowGroupValues::new(reader, max_def_level)))
            }
            _ => Err(Fault::Damaged(
                "a column has another type in a row group than in the schema".to_owned(),
            )),
        }
    }
}

/// The values of one row group.
struct RowGroupValues<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The definition level of a row whose value is not null.
    max_def_level: i16,
    /// The values of the `rows` decoded rows; null rows have no value.
    values: Vec<T::T>,
    def_levels: Vec<i16>,
    rows: usize,
    next_row: usize,
    next_value: usize,
}

impl<T: DataType> RowGroupValues<T> {
    fn new(reader: ColumnReaderImpl<T>, max_def_level: i16) -> Self {
        Self {
            reader,
            max_def_level,
            values: Vec::with_capacity(BATCH_ROWS),
            def_levels: Vec::with_capacity(BATCH_ROWS),
            rows: 0,
            next_row: 0,
            next_value: 0,
        }
    }
}

impl<T: DataType> Values for RowGroupValues<T> {
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault> {
        if self.next_row == self.rows {
            self.values.clear();
            self.def_levels.clear();
            let levels = Some(&mut self.def_levels);
            (self.rows, ..) =
                self.reader
                    .read_records(BATCH_ROWS, levels, None, &mut self.values)?;
            (self.next_row, self.next_value) = (0, 0);
            if self.rows == 0 {
                return Ok(None);
            }
        }
        let is_null = self.max_def_level > 0
            && self
                .def_levels
                .get(self.next_row)
                .is_none_or(|level| *level < self.max_def_level);
        self.next_row += 1;
        if is_null {
            return Ok(Some(Value::Null));
        }
        self.next_value += 1;
        let value = self.values.get(self.next_value - 1);
        let value =
            value.ok_or_else(|| Fault::Damaged("a page has fewer values than rows".to_owned()))?;
        let bytes = value.as_bytes();
        Ok(Some(match bytes.len() as u64 {
            len if len > max_bytes => Value::Oversize(len),
            _ => Value::Bytes(bytes),
        }))
    }
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.len_bytes()
    }
}

impl ChunkReader for Window {
    type T = WindowReader;

    fn get_read(&self, start: u64) -> parquet::errors::Result<WindowReader> {
        Ok(self.reader(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        Ok(self.bytes(start, length)?)
    }
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::NYI(reason) => Self::Unsupported(reason),
            ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
                Ok(cause) => (*cause).into(),
                Err(cause) => Self::Damaged(cause.to_string()),
            },
            ParquetError::General(reason) | ParquetError::EOF(reason) => Self::Damaged(reason),
            other => Self::Damaged(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;
    use crate::table::fault::contained;
    use crate::table::{Groups, TableFormat};

    /// The rows of the column `names`: values, or a description of each other value, then a fault
    /// if any. Also returns whether pages were read in pieces.
    fn rows(path: &Path, names: &str, large_bytes: u64, max_bytes: u64) -> (Vec<String>, bool) {
        let mut rows = Vec::new();
        let mut is_in_pieces = false;
        let mut read = || {
            let window = Window::new(File::open(path).unwrap()).unwrap();
            let names: Vec<_> = names.split('.').map(str::to_owned).collect();
            let (groups, _, layout) = open(&window, Some(&names))?;
            for group in groups {
                if let Ok(column) = layout.column {
                    let chunk = layout.metadata.row_group(group.index).column(column);
                    is_in_pieces |=
                        LargePages::open(&window, chunk, group.index, large_bytes)?.is_some();
                }
                let mut values = layout.values_in_pieces(group.index, &window, large_bytes)?;
                while let Some(value) = values.next_value(max_bytes)? {
                    rows.push(match value {
                        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        Value::Oversize(len) => format!("{len} bytes"),
                        Value::Null => "null".to_owned(),
                        Value::OtherType(name) => name.to_owned(),
                    });
                }
            }
            Ok(())
        };
        if contained(&mut read).is_err() {
            rows.push("fault".to_owned());
        }
        (rows, is_in_pieces)
    }

    fn golden() -> Vec<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
            .collect();
        files.sort();
        assert_eq!(files.len(), 5, "{files:?}");
        files
    }

    #[test]
    fn pages_read_in_pieces_have_the_same_values() {
        for path in golden() {
            for names in ["text", "meta.text"] {
                for max_bytes in [u64::MAX, 10, 0] {
                    let what = format!("{} {names} {max_bytes}", path.display());
                    let (expected, is_in_pieces) = rows(&path, names, u64::MAX, max_bytes);
                    assert_eq!(expected.len(), 27, "{what}");
                    assert!(!is_in_pieces, "{what}");
                    let (in_pieces, is_in_pieces) = rows(&path, names, 0, max_bytes);
                    assert_eq!(in_pieces, expected, "{what}");
                    assert_eq!(is_in_pieces, !path.ends_with("delta.parquet"), "{what}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_pages_do_not_panic_or_allocate_much(
            file in any::<prop::sample::Index>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let files = golden();
            let mut bytes = fs::read(file.get(&files)).unwrap();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let damaged = tempfile::NamedTempFile::new().unwrap();
            fs::write(damaged.path(), &bytes).unwrap();
            rows(damaged.path(), "text", 0, 1 << 20);
            let window = Window::new(File::open(damaged.path()).unwrap()).unwrap();
            if let Ok(groups) = Groups::open(TableFormat::Parquet, &window, None) {
                let records = groups.rows(5, 20, 9, 100, &window);
                prop_assert!(records.rows.len() <= 20);
            }
        }
    }
}
