//! Decodes a column of lists of token ids.

use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::checked_pages::CheckedPages;
use crate::table::fault::{Fault, contained};
use crate::table::values::integer_of;
use crate::table::window::Window;

/// Lists that are decoded at a time.
const BATCH_ROWS: usize = 256;
/// The most ids of a column chunk for each of its bytes: lists that are mostly padding have about a
/// thousand.
const MAX_VALUES_PER_BYTE: u64 = 1 << 12;
/// The ids that a column chunk may have, however small it is.
const LEAST_MAX_VALUES: u64 = 1 << 20;

/// A column of lists of numbers in a Parquet file.
pub struct IdLists {
    window: Window,
    metadata: ParquetMetaData,
    leaf: usize,
    /// The definition level of an element that is not null.
    of_element: i16,
    /// The definition level from which on a list has an element, even if that is null.
    of_entry: i16,
}

/// Some lists: their lengths, and their ids one after the other.
#[derive(Debug, Default)]
pub struct Lists {
    /// The numbers of ids.
    pub lengths: Vec<u64>,
    /// The ids, which may be negative; of a mask, its values as `integer_of` makes them.
    pub ids: Vec<i64>,
}

impl IdLists {
    /// The column `name` of the file.
    ///
    /// # Errors
    /// The file is damaged, or has no such column, or that has no lists of integers.
    pub fn open(window: Window, name: &str) -> Result<Self, Fault> {
        Self::open_as(window, name, &[PhysicalType::INT32, PhysicalType::INT64])
    }

    /// As [`IdLists::open`], of a column that may also have booleans or floating-point numbers.
    ///
    /// # Errors
    /// Those of [`IdLists::open`].
    pub fn open_mask(window: Window, name: &str) -> Result<Self, Fault> {
        use PhysicalType::{BOOLEAN, DOUBLE, FLOAT, INT32, INT64};
        Self::open_as(window, name, &[INT32, INT64, BOOLEAN, FLOAT, DOUBLE])
    }

    fn open_as(window: Window, name: &str, types: &[PhysicalType]) -> Result<Self, Fault> {
        let metadata = contained(|| Ok(ParquetMetaDataReader::new().parse_and_finish(&window)?))?;
        let schema = metadata.file_metadata().schema_descr();
        let columns = schema.columns();
        let is_of_name = |&i: &usize| {
            columns[i]
                .path()
                .parts()
                .first()
                .is_some_and(|part| part == name)
        };
        let mut leaves = (0..columns.len()).filter(is_of_name);
        let Some(leaf) = leaves.next() else {
            let names = columns.iter().map(|column| column.path().string());
            return Err(Fault::ColumnMissing(names.collect()));
        };
        let column = &columns[leaf];
        let has_type = types.contains(&column.physical_type());
        if leaves.next().is_some() || column.max_rep_level() != 1 || !has_type {
            return Err(Fault::Unsupported(format!(
                "column {name} has no lists of integers; save it as list<int32>"
            )));
        }
        let of_element = column.max_def_level();
        let of_entry = of_element - i16::from(column.self_type().is_optional());
        Ok(Self {
            window,
            leaf,
            of_element,
            of_entry,
            metadata,
        })
    }

    /// The names of the other columns.
    pub fn other_columns(&self) -> Vec<String> {
        let fields = self.metadata.file_metadata().schema_descr();
        let own = fields.column(self.leaf);
        let own = own.path().parts().first();
        let names = fields.root_schema().get_fields().iter();
        names
            .map(|field| field.name().to_owned())
            .filter(|name| Some(name) != own)
            .collect()
    }

    /// Calls `each` with some lists after the others.
    ///
    /// # Errors
    /// Those of `each`; the file is damaged, or has a null.
    pub fn for_each<E: From<Fault>>(
        &self,
        mut each: impl FnMut(&Lists) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut lists = Lists::default();
        for index in 0..self.metadata.num_row_groups() {
            let mut reader = contained(|| self.reader(index))?;
            loop {
                lists.lengths.clear();
                lists.ids.clear();
                if !contained(|| reader.next(&mut lists, index, self))? {
                    break;
                }
                each(&lists)?;
            }
        }
        Ok(())
    }

    fn reader(&self, index: usize) -> Result<Box<dyn NextLists>, Fault> {
        let row_group = self.metadata.row_group(index);
        let num_rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let chunk = row_group.column(self.leaf);
        let pages = CheckedPages::open(&self.window, chunk, index, num_rows)?;
        let (_, num_bytes) = chunk.byte_range();
        let most = LEAST_MAX_VALUES + num_bytes.saturating_mul(MAX_VALUES_PER_BYTE);
        let pages = pages.with_max_values(most);
        match get_column_reader(chunk.column_descr_ptr(), Box::new(pages)) {
            ColumnReader::Int32ColumnReader(reader) => Ok(Box::new(Batches::new(reader))),
            ColumnReader::Int64ColumnReader(reader) => Ok(Box::new(Batches::new(reader))),
            ColumnReader::BoolColumnReader(reader) => Ok(Box::new(Batches::new(reader))),
            ColumnReader::FloatColumnReader(reader) => Ok(Box::new(Batches::new(reader))),
            ColumnReader::DoubleColumnReader(reader) => Ok(Box::new(Batches::new(reader))),
            _ => Err(Fault::Damaged(
                "a column has another type in a row group than in the schema".to_owned(),
            )),
        }
    }
}

/// The lists of a row group.
trait NextLists {
    /// Appends the next lists; `false` at the end of the row group.
    fn next(
        &mut self,
        lists: &mut Lists,
        row_group: usize,
        column: &IdLists,
    ) -> Result<bool, Fault>;
}

struct Batches<T: DataType> {
    reader: ColumnReaderImpl<T>,
    def_levels: Vec<i16>,
    rep_levels: Vec<i16>,
    values: Vec<T::T>,
    rows: u64,
}

impl<T: DataType> Batches<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self {
            reader,
            def_levels: Vec::new(),
            rep_levels: Vec::new(),
            values: Vec::new(),
            rows: 0,
        }
    }
}

/// A value as an integer.
trait AsId {
    fn as_id(&self) -> i64;
}

impl AsId for i32 {
    fn as_id(&self) -> i64 {
        (*self).into()
    }
}

impl AsId for i64 {
    fn as_id(&self) -> i64 {
        *self
    }
}

impl AsId for bool {
    fn as_id(&self) -> i64 {
        (*self).into()
    }
}

impl AsId for f32 {
    fn as_id(&self) -> i64 {
        integer_of((*self).into())
    }
}

impl AsId for f64 {
    fn as_id(&self) -> i64 {
        integer_of(*self)
    }
}

impl<T: DataType> NextLists for Batches<T>
where
    T::T: AsId,
{
    fn next(
        &mut self,
        lists: &mut Lists,
        row_group: usize,
        column: &IdLists,
    ) -> Result<bool, Fault> {
        self.def_levels.clear();
        self.rep_levels.clear();
        self.values.clear();
        let (rows, ..) = self.reader.read_records(
            BATCH_ROWS,
            Some(&mut self.def_levels),
            Some(&mut self.rep_levels),
            &mut self.values,
        )?;
        let null = |what: &str, row: u64| {
            Fault::Damaged(format!("row {row} of row group {row_group} has {what}"))
        };
        for (&def, &rep) in self.def_levels.iter().zip(&self.rep_levels) {
            if rep == 0 {
                lists.lengths.push(0);
                self.rows += 1;
            }
            let row = self.rows.saturating_sub(1);
            if def < column.of_entry - 1 {
                return Err(null("no list", row));
            }
            if (column.of_entry..column.of_element).contains(&def) {
                return Err(null("a null instead of an id", row));
            }
            if def >= column.of_entry
                && let Some(length) = lists.lengths.last_mut()
            {
                *length += 1;
            }
        }
        lists.ids.extend(self.values.iter().map(AsId::as_id));
        let num_ids: u64 = lists.lengths.iter().sum();
        if num_ids != lists.ids.len() as u64 {
            return Err(Fault::Damaged(
                "a page has fewer ids than its levels say".to_owned(),
            ));
        }
        Ok(rows > 0)
    }
}
