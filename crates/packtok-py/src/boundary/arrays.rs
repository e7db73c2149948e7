//! The caller's arrays for a batch: checks their types and shapes once and borrows them. Also
//! attention masks of items.

use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadwriteArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use packtok_dataset::items::{IdsMut, fill_mask};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The attention mask of an item: each token may attend to itself and to the earlier tokens of its
/// document. Bool of shape (tokens, tokens); queries precede keys.
///
/// `document_ids` is a one-dimensional array of int64, int32, uint32 or uint16, in which the
/// tokens of a document are consecutive.
#[pyfunction]
pub(crate) fn mask_of_item<'py>(
    py: Python<'py>,
    document_ids: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<bool>>> {
    if let Ok(ids) = document_ids.cast::<PyArray1<u16>>() {
        return mask_of(py, ids);
    }
    if let Ok(ids) = document_ids.cast::<PyArray1<i64>>() {
        return mask_of(py, ids);
    }
    if let Ok(ids) = document_ids.cast::<PyArray1<u32>>() {
        return mask_of(py, ids);
    }
    match document_ids.cast::<PyArray1<i32>>() {
        Ok(ids) => mask_of(py, ids),
        Err(_) => Err(PyTypeError::new_err(
            "document_ids: expected a one-dimensional array of int64, int32, uint32 or uint16",
        )),
    }
}

fn mask_of<'py, T: Element + PartialEq + Sync>(
    py: Python<'py>,
    ids: &Bound<'py, PyArray1<T>>,
) -> PyResult<Bound<'py, PyArray2<bool>>> {
    let ids = ids.try_readonly()?;
    let ids = ids.as_slice()?;
    let mask = PyArray2::zeros(py, [ids.len(), ids.len()], false);
    let mut written = mask.try_readwrite()?;
    let rows = written.as_slice_mut()?;
    py.detach(|| fill_mask(ids, rows));
    drop(written);
    Ok(mask)
}

/// An array of ids, borrowed for writing.
pub(crate) enum IdArray<'py> {
    U16(PyReadwriteArray2<'py, u16>),
    U32(PyReadwriteArray2<'py, u32>),
    I32(PyReadwriteArray2<'py, i32>),
    I64(PyReadwriteArray2<'py, i64>),
}

/// The shape of every array of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) num_rows: usize,
    pub(crate) context_length: usize,
}

impl<'py> IdArray<'py> {
    /// Borrows `array`, the argument `name`.
    pub(crate) fn borrow(name: &str, array: &Bound<'py, PyAny>, shape: Shape) -> PyResult<Self> {
        if let Ok(array) = array.cast::<PyArray2<i64>>() {
            return Ok(Self::I64(borrow(name, array, shape)?));
        }
        if let Ok(array) = array.cast::<PyArray2<i32>>() {
            return Ok(Self::I32(borrow(name, array, shape)?));
        }
        if let Ok(array) = array.cast::<PyArray2<u16>>() {
            return Ok(Self::U16(borrow(name, array, shape)?));
        }
        match array.cast::<PyArray2<u32>>() {
            Ok(array) => Ok(Self::U32(borrow(name, array, shape)?)),
            Err(_) => Err(wrong_type(name, array, "int64, int32, uint32 or uint16")),
        }
    }

    /// The elements of the array in row-major order.
    pub(crate) fn ids(&mut self) -> PyResult<IdsMut<'_>> {
        Ok(match self {
            Self::U16(array) => IdsMut::U16(array.as_slice_mut()?),
            Self::U32(array) => IdsMut::U32(array.as_slice_mut()?),
            Self::I32(array) => IdsMut::I32(array.as_slice_mut()?),
            Self::I64(array) => IdsMut::I64(array.as_slice_mut()?),
        })
    }
}

/// Borrows an array of bools, the argument `name`.
pub(crate) fn borrow_mask<'py>(
    name: &str,
    array: &Bound<'py, PyAny>,
    shape: Shape,
) -> PyResult<PyReadwriteArray2<'py, bool>> {
    match array.cast::<PyArray2<bool>>() {
        Ok(array) => borrow(name, array, shape),
        Err(_) => Err(wrong_type(name, array, "bool")),
    }
}

fn borrow<'py, T: Element>(
    name: &str,
    array: &Bound<'py, PyArray2<T>>,
    Shape {
        num_rows,
        context_length,
    }: Shape,
) -> PyResult<PyReadwriteArray2<'py, T>> {
    let (found_rows, found_columns) = (array.shape()[0], array.shape()[1]);
    if (found_rows, found_columns) != (num_rows, context_length) {
        return Err(PyValueError::new_err(format!(
            "{name}: shape is ({found_rows}, {found_columns}), expected ({num_rows}, {context_length})"
        )));
    }
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(format!(
            "{name}: the array is not C-contiguous"
        )));
    }
    array
        .try_readwrite()
        .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn wrong_type(name: &str, array: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let description = match array.cast::<PyUntypedArray>() {
        Ok(array) => format!(
            "an array of {} with {} dimensions",
            array.dtype(),
            array.ndim()
        ),
        Err(_) => array.get_type().to_string(),
    };
    PyTypeError::new_err(format!(
        "{name}: found {description}, expected a two-dimensional array of {expected}"
    ))
}
