//! Samples of streams as Python has them: dicts of arrays, and batches of stacked rows.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use packtok_dataset::items::batch::Filling;
use packtok_dataset::items::token_rows::{TokenRow, fill_token_rows};
use packtok_stream::Result;
use packtok_stream::{
    ForeignSample, Found, LabelKind, RowFields, Sample, SourceRecord, TokenForm, Value,
};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::boundary::arrays::Shape;
use crate::boundary::calls::{Raised, attached, keep};
use crate::dataset::rows::fill_arrays;
use crate::pack::plugin::{bytes_of, type_of};

/// The label of a token that has no label, which torch's losses ignore.
const IGNORE_INDEX: i32 = -100;

/// Estimated memory of a number, and of an object of unknown size, which may be a row of 512 ids.
const ITEM_BYTES: usize = 32;
const OTHER_BYTES: usize = 4096;

/// A dict of Python.
pub(crate) struct Dict {
    pub(crate) dict: Py<PyAny>,
    len_bytes: usize,
    raised: Raised,
}

pub(crate) fn sample_of(py: Python<'_>, dict: Py<PyAny>, raised: &Raised) -> Sample {
    let dict = Dict {
        len_bytes: len_bytes(dict.bind(py)),
        raised: raised.clone(),
        dict,
    };
    Sample {
        foreign: Some(Box::new(dict)),
        ..Sample::default()
    }
}

/// The approximate memory of a sample. Calls no Python code, because Python code could raise an
/// exception.
fn len_bytes(sample: &Bound<'_, PyAny>) -> usize {
    let len_of = |value: Bound<'_, PyAny>| {
        if let Ok(text) = value.cast_exact::<PyString>() {
            text.len().unwrap_or(0)
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            bytes.as_bytes().len()
        } else if let Ok(list) = value.cast::<PyList>() {
            list.len().saturating_mul(ITEM_BYTES)
        } else if value.is_none()
            || value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
        {
            ITEM_BYTES
        } else {
            OTHER_BYTES
        }
    };
    let Ok(dict) = sample.cast::<PyDict>() else {
        return OTHER_BYTES;
    };
    let lens = dict.iter().map(|(_, value)| len_of(value));
    lens.fold(OTHER_BYTES / 16, usize::saturating_add)
}

impl ForeignSample for Dict {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn text(&self, column: &str) -> Result<Found<Vec<u8>, &'static str>> {
        attached(|py| {
            let read = || -> PyResult<_> {
                let text = match self.dict.bind(py).get_item(column) {
                    Err(error) if error.is_instance_of::<PyKeyError>(py) => {
                        return Ok(Found::Missing);
                    }
                    text => text?,
                };
                match text.cast::<PyString>() {
                    Ok(text) => Ok(Found::Value(bytes_of(text)?)),
                    Err(_) => Ok(Found::Unfit(type_of(&text))),
                }
            };
            read().map_err(|error| keep(py, &self.raised, error))
        })
    }

    fn tokens(&self, column: &str) -> Result<Found<Value, String>> {
        attached(|py| {
            let read = || -> PyResult<_> {
                let tokens = py.import("packtok.stream.tokens")?;
                let ids = tokens.call_method1("ids_in", (&self.dict, column))?;
                if ids.is_none() {
                    return Ok(Found::Missing);
                }
                match ids.cast::<PyArray1<i64>>() {
                    Ok(ids) => Ok(Value::of_ids(ids.to_vec()?)),
                    Err(_) => Ok(Found::Unfit(ids.extract()?)),
                }
            };
            read().map_err(|error| keep(py, &self.raised, error))
        })
    }
}

/// The dict of a sample.
pub(crate) fn to_python(py: Python<'_>, mut sample: Sample) -> PyResult<Bound<'_, PyAny>> {
    if let Some(foreign) = sample.foreign.take() {
        let foreign: Box<dyn std::any::Any> = foreign;
        let dict = foreign.downcast::<Dict>();
        let dict = dict.map_err(|_| PyRuntimeError::new_err("a sample is not one of Python"))?;
        let mut dict = dict.dict.into_bound(py);
        if !sample.columns.is_empty() {
            // A copy: the caller may still use its sample.
            dict = dict.call_method0("copy")?;
            add_columns(py, &dict, &sample)?;
        }
        return Ok(dict);
    }
    if let Some(rows) = sample.rows {
        // If this rank has no rows, the placeholders still show which fields a row has.
        let is_empty = rows.iter().all(|row| row.is_absent);
        let kept = rows.into_iter().filter(|row| is_empty || !row.is_absent);
        let rows = kept.map(|row| to_python(py, row));
        let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?;
        let columns = PyDict::new(py);
        for (name, value) in &sample.columns {
            columns.set_item(&**name, to_value(py, value, sample.form)?)?;
        }
        let batching = py.import("packtok.stream.batching")?;
        return batching.call_method1("Rows", (rows, is_empty, columns));
    }
    let dict = match &sample.record {
        Some(SourceRecord::JsonLine(line)) => {
            let loaded = py
                .import("json")?
                .call_method1("loads", (line.as_slice(),))?;
            loaded.cast_into::<PyDict>()?
        }
        record => {
            let dict = PyDict::new(py);
            if let Some(SourceRecord::Text(column, text)) = record {
                dict.set_item(&**column, String::from_utf8_lossy(text))?;
            }
            dict
        }
    };
    add_columns(py, dict.as_any(), &sample)?;
    if let Some((row, fields)) = sample.token_row() {
        add_fields_of_row(py, &dict, row, fields)?;
    }
    Ok(dict.into_any())
}

/// Adds the columns of a sample to its dict.
fn add_columns(py: Python<'_>, dict: &Bound<'_, PyAny>, sample: &Sample) -> PyResult<()> {
    for (name, value) in &sample.columns {
        dict.set_item(&**name, to_value(py, value, sample.form)?)?;
    }
    Ok(())
}

/// The value of a column.
fn to_value<'py>(py: Python<'py>, value: &Value, form: TokenForm) -> PyResult<Bound<'py, PyAny>> {
    let tokens: Vec<i64> = match value {
        Value::Ids(ids) => ids.iter().map(|&id| i64::from(id)).collect(),
        Value::Ones(len) => vec![1; *len],
        Value::Signed(values) => values.clone(),
        Value::Integer(number) => return Ok(number.into_pyobject(py)?.into_any()),
    };
    let row = |tokens: Vec<i64>| {
        let len = tokens.len();
        tokens.into_pyarray(py).reshape([1, len])
    };
    Ok(match form {
        TokenForm::List => PyList::new(py, tokens)?.into_any(),
        TokenForm::Tensor => tensor(py, tokens.into_pyarray(py).as_any())?,
        TokenForm::TensorRow => tensor(py, row(tokens)?.as_any())?,
        TokenForm::ArrayRow => row(tokens)?.into_any(),
    })
}

/// A tensor with the memory of an array.
fn tensor<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static FROM_NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FROM_NUMPY
        .import(py, "torch", "from_numpy")?
        .call1((array,))
}

/// The columns of rows as arrays of two dimensions, in memory that `allocate` returns; `None` if
/// the rows cannot be stacked.
pub(crate) fn stack<'py>(
    py: Python<'py>,
    rows: &[Sample],
    batch: &Sample,
    allocate: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !are_alike(rows) {
        return Ok(None);
    }
    // For a rank that has no row, the first row only determines the columns.
    let first = &rows[0];
    let first_row = first.token_row();
    let fields = first_row.map_or_else(RowFields::default, |(_, fields)| fields);
    let rows: Vec<_> = rows.iter().filter(|row| !row.is_absent).collect();
    let mut token_rows = Vec::new();
    for row in rows.iter().filter_map(|row| row.token_row()) {
        if row.1 != fields {
            return Ok(None);
        }
        token_rows.push(row.0);
    }
    let mut columns = Vec::new();
    for (name, value) in &first.columns {
        columns.push((&**name, "int64", value.num_tokens()));
    }
    let len = first_row.map_or(0, |(row, _)| row.ids.len());
    for (name, dtype) in arrays_of(fields) {
        columns.push((name, dtype, Some(len)));
    }
    let shapes = columns.iter();
    let shapes: Vec<_> = shapes
        .map(|&(_, dtype, len)| (dtype, rows.len(), len))
        .collect();
    let allocated: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> =
        allocate.call1((shapes,))?.extract()?;
    let dict = PyDict::new(py);
    let mut arrays = Vec::with_capacity(columns.len());
    for ((name, ..), (object, array)) in columns.iter().zip(&allocated) {
        dict.set_item(name, object)?;
        arrays.push((*name, array));
    }
    for (i, (_, array)) in arrays.iter().take(first.columns.len()).enumerate() {
        write_column(&rows, i, array)?;
    }
    if fields != RowFields::default() {
        let ids = first.layout.as_ref().and_then(|layout| layout.ids.as_ref());
        let i = first.columns.iter().position(|(name, _)| Some(name) == ids);
        let input_ids = arrays[i.unwrap_or(0)].1;
        let arrays = &arrays[first.columns.len()..];
        add_fields(py, &dict, &token_rows, len, fields, input_ids, arrays)?;
    }
    add_columns(py, dict.as_any(), batch)?;
    Ok(Some(dict.into_any()))
}

/// Whether all rows have the same columns, each with one length.
fn are_alike(rows: &[Sample]) -> bool {
    let first = &rows[0];
    rows.iter().all(|row| {
        let is_plain = row.foreign.is_none()
            && row.record.is_none()
            && row.rows.is_none()
            && row.form == TokenForm::Tensor;
        let mut columns = row.columns.iter().zip(&first.columns);
        is_plain
            && row.columns.len() == first.columns.len()
            && columns.all(|((name, value), (known, like))| {
                name == known && value.num_tokens() == like.num_tokens()
            })
    })
}

/// Writes column `i` of all rows.
fn write_column(rows: &[&Sample], i: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
    let values = rows.iter().map(|row| &row.columns[i].1);
    if let Ok(array) = array.cast::<PyArray1<i64>>() {
        let mut array = array.try_readwrite()?;
        for (out, value) in array.as_slice_mut()?.iter_mut().zip(values) {
            if let Value::Integer(number) = value {
                *out = *number;
            }
        }
        return Ok(());
    }
    let mut array = array.cast::<PyArray2<i64>>()?.try_readwrite()?;
    let mut out = array.as_slice_mut()?;
    for value in values {
        let row;
        (row, out) = out.split_at_mut(value.num_tokens().unwrap_or(0));
        match value {
            Value::Ids(ids) => {
                for (out, &id) in row.iter_mut().zip(ids) {
                    *out = i64::from(id);
                }
            }
            Value::Signed(values) => row.copy_from_slice(values),
            Value::Ones(_) | Value::Integer(_) => row.fill(1),
        }
    }
    Ok(())
}

/// The names and types of the fields that are arrays.
fn arrays_of(fields: RowFields) -> Vec<(&'static str, &'static str)> {
    let all = [
        (fields.labels.is_some(), "labels", "int64"),
        (fields.position_ids, "position_ids", "int64"),
        (fields.document_ids, "document_ids", "int32"),
        (fields.loss_mask, "loss_mask", "bool"),
    ];
    let wanted = all.into_iter().filter(|(is_wanted, ..)| *is_wanted);
    wanted.map(|(_, name, dtype)| (name, dtype)).collect()
}

/// Writes the fields of rows to `arrays`, by their names, and adds the others to `dict`.
fn add_fields<'py>(
    py: Python<'py>,
    dict: &Bound<'py, PyDict>,
    rows: &[TokenRow<'_>],
    context_length: usize,
    fields: RowFields,
    input_ids: &Bound<'py, PyAny>,
    arrays: &[(&str, &Bound<'py, PyAny>)],
) -> PyResult<()> {
    let array = |wanted| {
        let field = arrays.iter().find(|(name, _)| *name == wanted);
        field.map(|(_, array)| *array)
    };
    let filling = Filling {
        pad_token_id: 0,
        ignore_index: IGNORE_INDEX,
        aligned: fields.labels == Some(LabelKind::Aligned),
        segments: fields.cu_seqlens,
        number_padding: false,
        loss_markers: None,
    };
    let shape = Shape {
        num_rows: rows.len(),
        context_length,
    };
    let ids = [
        Some(input_ids),
        array("labels"),
        array("position_ids"),
        array("document_ids"),
    ];
    let segments = fill_arrays(py, shape, ids, array("loss_mask"), |batch| {
        fill_token_rows(rows, context_length, filling, batch)
    })?;
    if let Some((cu_seqlens, max_seqlen)) = segments {
        dict.set_item("cu_seqlens", tensor(py, cu_seqlens.as_any())?)?;
        dict.set_item("max_seqlen", max_seqlen)?;
    }
    Ok(())
}

/// Adds the fields of a single row, as arrays of one dimension.
fn add_fields_of_row(
    py: Python<'_>,
    dict: &Bound<'_, PyDict>,
    row: TokenRow<'_>,
    fields: RowFields,
) -> PyResult<()> {
    let len = row.ids.len();
    let array = |dtype: &str| match dtype {
        "bool" => PyArray2::<bool>::zeros(py, [1, len], false).into_any(),
        "int32" => PyArray2::<i32>::zeros(py, [1, len], false).into_any(),
        _ => PyArray2::<i64>::zeros(py, [1, len], false).into_any(),
    };
    let names = arrays_of(fields);
    let made: Vec<_> = names
        .iter()
        .map(|&(name, dtype)| (name, array(dtype)))
        .collect();
    let arrays: Vec<_> = made.iter().map(|(name, array)| (*name, array)).collect();
    add_fields(py, dict, &[row], len, fields, &array("int64"), &arrays)?;
    for (name, array) in &made {
        dict.set_item(name, tensor(py, &array.get_item(0)?)?)?;
    }
    Ok(())
}
