//! The columns of an imported folder: the types and shapes of their values, and the values as they
//! are written.

use std::borrow::Cow;
use std::path::Path;

use packtok_formats::mds::{Column, Dtype, Encoding, Value, Writer};

use crate::error::{Error, Result};
use crate::import::pickled::{Array, Pickled, parse};

/// A column and its value in a sample.
pub(super) type ColumnValue<'a> = (&'a Column, Value<'a>);

/// The location of a sample, for errors.
#[derive(Clone, Copy)]
pub(super) struct SampleLocation<'a> {
    pub(super) folder: &'a Path,
    pub(super) sample: u64,
}

/// The type of the values of a column.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// No pickle: copied with its encoding.
    Plain(String),
    /// Arrays, or lists of numbers. `shape` is set if all values have the same shape.
    Array {
        dtype: Dtype,
        shape: Option<Vec<u64>>,
    },
    /// Lists of rows.
    Rows(Dtype),
}

/// The columns of a folder that is imported, as all its samples have them.
#[derive(Debug, Default)]
pub(super) struct ImportedColumns(Vec<ImportedColumn>);

#[derive(Debug)]
struct ImportedColumn {
    name: String,
    kind: Kind,
    /// The largest id, if the column has ids.
    largest: u64,
}

impl ImportedColumns {
    /// Compares the columns of a sample with those of the samples before.
    pub(super) fn add(
        &mut self,
        location: SampleLocation<'_>,
        values: &[ColumnValue<'_>],
    ) -> Result<()> {
        let is_first = self.0.is_empty();
        if !is_first && self.0.len() != values.len() {
            return Err(differs(
                location,
                "",
                "another number of columns",
                "another",
            ));
        }
        for (i, (column, value)) in values.iter().enumerate() {
            let name = &*column.name;
            let (kind, largest) = kind_of(location, column, value)?;
            if is_first {
                self.0.push(ImportedColumn {
                    name: name.to_owned(),
                    kind,
                    largest,
                });
                continue;
            }
            let known = &mut self.0[i];
            known.largest = known.largest.max(largest);
            match (&mut known.kind, kind) {
                (
                    Kind::Array { dtype, shape },
                    Kind::Array {
                        dtype: other,
                        shape: other_shape,
                    },
                ) if *dtype == other => {
                    if *shape != other_shape {
                        *shape = None;
                    }
                }
                (expected, kind) if *expected == kind && known.name == name => {}
                (expected, kind) => {
                    return Err(differs(
                        location,
                        name,
                        &kind.description(),
                        &expected.description(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The names and encodings of the columns to write.
    pub(super) fn columns(
        &self,
        folder: &Path,
        ids: Option<Dtype>,
    ) -> Result<Vec<(String, String)>> {
        let mut columns = Vec::new();
        for column in &self.0 {
            let name = column.name.clone();
            match &column.kind {
                Kind::Plain(encoding) => columns.push((name, encoding.clone())),
                Kind::Array { .. } if has_ids(&name) => {
                    columns.push((name, format!("ndarray:{}", column.written(ids).name())));
                }
                Kind::Array { shape, .. } => {
                    let dtype = column.written(ids).name();
                    let shape = shape.as_ref().map_or_else(String::new, |shape| {
                        let dims: Vec<_> = shape.iter().map(u64::to_string).collect();
                        format!(":{}", dims.join(","))
                    });
                    columns.push((name, format!("ndarray:{dtype}{shape}")));
                }
                Kind::Rows(_) => {
                    columns.push((lengths_of(&name), "ndarray:uint32".to_owned()));
                    columns.push((name, format!("ndarray:{}", column.written(ids).name())));
                }
            }
        }
        columns.sort();
        match columns.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(Error::ColumnExists {
                path: folder.into(),
                column: pair[0].0.clone(),
            }),
            None => Ok(columns),
        }
    }

    /// Writes a sample in the columns of [`ImportedColumns::columns`].
    pub(super) fn write(
        &self,
        location: SampleLocation<'_>,
        values: &[ColumnValue<'_>],
        ids: Option<Dtype>,
        writer: &mut Writer,
    ) -> Result<()> {
        let mut arrays: Vec<(String, Array<'_>)> = Vec::new();
        let mut plain: Vec<(&str, &Value<'_>)> = Vec::new();
        for (imported, (column, value)) in self.0.iter().zip(values) {
            if let Kind::Plain(_) = imported.kind {
                plain.push((&column.name, value));
                continue;
            }
            let dtype = imported.written(ids);
            match pickled(location, column, value)? {
                ImportedValue::Array(array) => {
                    let array = converted(location, &column.name, array, dtype)?;
                    arrays.push((column.name.clone(), array));
                }
                ImportedValue::Rows(rows) => {
                    let lengths: Vec<u8> = rows
                        .iter()
                        .flat_map(|row| (row.shape[0] as u32).to_le_bytes())
                        .collect();
                    arrays.push((
                        lengths_of(&column.name),
                        Array {
                            dtype: Dtype::U32,
                            shape: vec![rows.len() as u64],
                            bytes: lengths.into(),
                        },
                    ));
                    let matrix = padded(rows);
                    arrays.push((
                        column.name.clone(),
                        converted(location, &column.name, matrix, dtype)?,
                    ));
                }
            }
        }
        let mut written: Vec<(&str, Value<'_>)> = plain
            .into_iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        for (name, array) in &arrays {
            if array.bytes.is_empty() {
                return Err(Error::EmptyValue {
                    path: location.folder.into(),
                    sample: location.sample,
                    column: name.clone(),
                });
            }
            written.push((
                name,
                Value::Array(array.dtype, (&*array.shape).into(), &array.bytes),
            ));
        }
        written.sort_by_key(|(name, _)| *name);
        let written: Vec<_> = written.into_iter().map(|(_, value)| value).collect();
        Ok(writer.write(&written)?)
    }
}

impl ImportedColumn {
    /// The type that the column is written with.
    fn written(&self, ids: Option<Dtype>) -> Dtype {
        let dtype = match &self.kind {
            Kind::Array { dtype, .. } | Kind::Rows(dtype) => *dtype,
            Kind::Plain(_) => Dtype::U8,
        };
        let is_integer = !matches!(dtype, Dtype::F16 | Dtype::F32 | Dtype::F64);
        if has_ids(&self.name) && is_integer {
            let narrow = if self.largest <= u64::from(u16::MAX) {
                Dtype::U16
            } else {
                Dtype::U32
            };
            return ids.unwrap_or(narrow);
        }
        // Scores are read as float32.
        match dtype {
            Dtype::F64 if self.name == "retrieval_scores" => Dtype::F32,
            dtype => dtype,
        }
    }
}

impl Kind {
    fn description(&self) -> String {
        match self {
            Self::Plain(encoding) => format!("of encoding {encoding:?}"),
            Self::Array { dtype, .. } => format!("an array of {}", dtype.name()),
            Self::Rows(dtype) => format!("a list of arrays of {}", dtype.name()),
        }
    }
}

/// Whether a column has token ids, by its name.
fn has_ids(name: &str) -> bool {
    name.ends_with("token_ids") || name == "input_ids"
}

/// The column with the lengths of the rows of a list.
fn lengths_of(name: &str) -> String {
    format!(
        "{}_lengths",
        name.strip_suffix("_token_ids").unwrap_or(name)
    )
}

enum ImportedValue<'a> {
    Array(Array<'a>),
    Rows(Vec<Array<'a>>),
}

fn kind_of(
    location: SampleLocation<'_>,
    column: &Column,
    value: &Value<'_>,
) -> Result<(Kind, u64)> {
    if column.encoding != Encoding::Pickle {
        return Ok((Kind::Plain(column.encoding_text.clone()), 0));
    }
    let largest = |array: &Array<'_>| -> Result<u64> {
        if has_ids(&column.name) {
            largest_id(location, &column.name, array)
        } else {
            Ok(0)
        }
    };
    match pickled(location, column, value)? {
        ImportedValue::Array(array) => {
            let largest = largest(&array)?;
            let (dtype, shape) = (array.dtype, Some(array.shape));
            Ok((Kind::Array { dtype, shape }, largest))
        }
        ImportedValue::Rows(rows) => {
            let mut most = 0;
            for row in &rows {
                most = most.max(largest(row)?);
                if row.dtype != rows[0].dtype {
                    let description = |dtype: Dtype| Kind::Rows(dtype).description();
                    return Err(differs(
                        location,
                        &column.name,
                        &description(row.dtype),
                        &description(rows[0].dtype),
                    ));
                }
            }
            let dtype = rows.first().map_or(Dtype::I64, |row| row.dtype);
            Ok((Kind::Rows(dtype), most))
        }
    }
}

fn pickled<'a>(
    location: SampleLocation<'_>,
    column: &Column,
    value: &Value<'a>,
) -> Result<ImportedValue<'a>> {
    let Value::Bytes(bytes) = value else {
        unreachable!("pickles are read as bytes");
    };
    let parsed = parse(bytes).map_err(|source| Error::UnsupportedPickle {
        path: location.folder.into(),
        sample: location.sample,
        column: column.name.clone(),
        source,
    })?;
    let numbers = |dtype, len: usize, bytes: Vec<u8>| {
        ImportedValue::Array(Array {
            dtype,
            shape: vec![len as u64],
            bytes: bytes.into(),
        })
    };
    Ok(match parsed {
        Pickled::Array(array) => ImportedValue::Array(array),
        Pickled::Integers(list) => {
            let bytes = list
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            numbers(Dtype::I64, list.len(), bytes)
        }
        Pickled::Floats(list) => {
            let bytes = list
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            numbers(Dtype::F64, list.len(), bytes)
        }
        Pickled::Arrays(rows) => {
            if let Some(row) = rows.iter().find(|row| row.shape.len() != 1) {
                return Err(Error::RowOfManyDimensions {
                    path: location.folder.into(),
                    sample: location.sample,
                    column: column.name.clone(),
                    shape: row.shape.clone(),
                });
            }
            ImportedValue::Rows(rows)
        }
    })
}

/// The largest id of an array. A negative id is an error.
fn largest_id(location: SampleLocation<'_>, column: &str, array: &Array<'_>) -> Result<u64> {
    let mut largest = 0;
    for id in integers(array) {
        let fits = u32::try_from(id).map_err(|_| id_error(location, column, id, Dtype::U32))?;
        largest = largest.max(fits.into());
    }
    Ok(largest)
}

/// The elements of an array of integers; empty for floats.
fn integers<'a>(array: &'a Array<'_>) -> impl Iterator<Item = i128> + 'a {
    let (width, is_signed) = match array.dtype {
        Dtype::U8 => (1, false),
        Dtype::I8 => (1, true),
        Dtype::U16 => (2, false),
        Dtype::I16 => (2, true),
        Dtype::U32 => (4, false),
        Dtype::I32 => (4, true),
        Dtype::U64 => (8, false),
        Dtype::I64 => (8, true),
        Dtype::F16 | Dtype::F32 | Dtype::F64 => (usize::MAX, false),
    };
    array.bytes.chunks_exact(width).map(move |element| {
        let is_negative = is_signed && element[width - 1] >= 0x80;
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..width].copy_from_slice(element);
        i128::from_le_bytes(wide)
    })
}

/// `array` with elements of type `dtype`.
fn converted<'a>(
    location: SampleLocation<'_>,
    column: &str,
    array: Array<'a>,
    dtype: Dtype,
) -> Result<Array<'a>> {
    if array.dtype == dtype {
        return Ok(array);
    }
    let bytes: Vec<u8> = if (array.dtype, dtype) == (Dtype::F64, Dtype::F32) {
        let wide = array.bytes.chunks_exact(8);
        wide.flat_map(|element| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(element);
            (f64::from_le_bytes(bytes) as f32).to_le_bytes()
        })
        .collect()
    } else {
        let (width, most) = match dtype {
            Dtype::U16 => (2, i128::from(u16::MAX)),
            Dtype::I32 => (4, i128::from(i32::MAX)),
            Dtype::I64 => (8, i128::from(i64::MAX)),
            _ => (4, i128::from(u32::MAX)),
        };
        let mut bytes = Vec::with_capacity(array.bytes.len());
        for id in integers(&array) {
            if !(0..=most).contains(&id) {
                return Err(id_error(location, column, id, dtype));
            }
            bytes.extend_from_slice(&id.to_le_bytes()[..width]);
        }
        bytes
    };
    Ok(Array {
        dtype,
        shape: array.shape,
        bytes: Cow::Owned(bytes),
    })
}

/// Rows of equal type as a matrix, padded with zeros. The matrix has at least one column, because
/// MDS stores no empty arrays.
fn padded(rows: Vec<Array<'_>>) -> Array<'static> {
    let dtype = rows.first().map_or(Dtype::I64, |row| row.dtype);
    let longest = rows
        .iter()
        .map(|row| row.shape[0])
        .max()
        .unwrap_or(0)
        .max(1);
    let row_bytes = (longest * dtype.bytes()) as usize;
    let mut bytes = Vec::with_capacity(rows.len() * row_bytes);
    for row in &rows {
        let stop = bytes.len() + row_bytes;
        bytes.extend_from_slice(&row.bytes);
        bytes.resize(stop, 0);
    }
    Array {
        dtype,
        shape: vec![rows.len() as u64, longest],
        bytes: bytes.into(),
    }
}

fn id_error(location: SampleLocation<'_>, column: &str, id: i128, dtype: Dtype) -> Error {
    Error::ImportedIdTooLarge {
        path: location.folder.into(),
        sample: location.sample,
        column: column.to_owned(),
        found: id,
        dtype: dtype.name(),
    }
}

fn differs(location: SampleLocation<'_>, column: &str, kind: &str, expected: &str) -> Error {
    Error::KindDiffers {
        path: location.folder.into(),
        sample: location.sample,
        column: column.to_owned(),
        found: kind.to_owned(),
        expected: expected.to_owned(),
    }
}
