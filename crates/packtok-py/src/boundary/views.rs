//! Read-only arrays: views that borrow a map, and arrays that own their tokens.

use std::os::raw::{c_int, c_void};
use std::ptr;

use numpy::npyffi::flags::NPY_ARRAY_WRITEABLE;
use numpy::npyffi::{NPY_TYPES, PY_ARRAY_API, npy_intp};
use numpy::{Element, PyArray1, PyArrayDescr, PyUntypedArray, PyUntypedArrayMethods};
use packtok_formats::mds::Dtype;
use packtok_pack::pbin::TokenWidth;
use pyo3::PyTypeInfo;
use pyo3::prelude::*;

/// dtype of tokens of `width`.
pub(crate) fn dtype(py: Python<'_>, width: TokenWidth) -> Bound<'_, PyArrayDescr> {
    match width {
        TokenWidth::U8 => u8::get_dtype(py),
        TokenWidth::U16 => u16::get_dtype(py),
        TokenWidth::U32 => u32::get_dtype(py),
    }
}

/// `bytes` as a read-only array of tokens of `width`, with `owner` as its base object.
///
/// # Safety
/// `bytes` must be complete tokens from the data segment of a map that stays alive and unchanged as
/// long as `owner` lives.
pub(crate) unsafe fn lend<'py>(
    owner: &Bound<'py, PyAny>,
    width: TokenWidth,
    bytes: &[u8],
) -> Bound<'py, PyAny> {
    // SAFETY: the requirements of `lend_as` are those of this function.
    unsafe {
        match width {
            TokenWidth::U8 => lend_as::<u8>(owner, bytes),
            TokenWidth::U16 => lend_as::<u16>(owner, bytes),
            TokenWidth::U32 => lend_as::<u32>(owner, bytes),
        }
    }
}

/// Lends `bytes`, complete tokens of `T`, to NumPy.
///
/// # Safety
/// As [`lend`].
unsafe fn lend_as<'py, T: Element + Copy>(
    owner: &Bound<'py, PyAny>,
    bytes: &[u8],
) -> Bound<'py, PyAny> {
    let len_tokens = bytes.len() / size_of::<T>();
    debug_assert!(bytes.as_ptr().cast::<T>().is_aligned());
    // SAFETY: the pointer refers to `len_tokens` tokens of the map. They are initialized (every bit
    // pattern is a `T`) and aligned: the map is page-aligned, the data starts at byte 12, which
    // every width divides, and the caller passes complete tokens only.
    let tokens = unsafe {
        numpy::ndarray::ArrayView1::from_shape_ptr(len_tokens, bytes.as_ptr().cast::<T>())
    };
    // SAFETY: `owner` becomes the array's base object and keeps the map alive, as the caller
    // guarantees.
    let array = unsafe { PyArray1::borrow_from_array(&tokens, owner.clone()) };
    clear_writeable_flag(&array);
    array.into_any()
}

/// `bytes` as a read-only array of this type and shape, with `owner` as its base object. The elements may be unaligned, which NumPy
/// allows and records in the array's flags.
///
/// # Safety
/// `bytes` must be the elements of the array in memory that stays mapped and unchanged as long as `owner` lives.
pub(crate) unsafe fn lend_array<'py>(
    owner: &Bound<'py, PyAny>,
    dtype: Dtype,
    dims: &[u64],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let number = match dtype {
        Dtype::U8 => NPY_TYPES::NPY_UBYTE,
        Dtype::I8 => NPY_TYPES::NPY_BYTE,
        Dtype::U16 => NPY_TYPES::NPY_USHORT,
        Dtype::I16 => NPY_TYPES::NPY_SHORT,
        Dtype::F16 => NPY_TYPES::NPY_HALF,
        Dtype::U32 => NPY_TYPES::NPY_UINT,
        Dtype::I32 => NPY_TYPES::NPY_INT,
        Dtype::F32 => NPY_TYPES::NPY_FLOAT,
        Dtype::U64 => NPY_TYPES::NPY_ULONGLONG,
        Dtype::I64 => NPY_TYPES::NPY_LONGLONG,
        Dtype::F64 => NPY_TYPES::NPY_DOUBLE,
    };
    let mut shape: Vec<npy_intp> = dims.iter().map(|&dim| dim as npy_intp).collect();
    // SAFETY: the pointer refers to as many elements as the shape has, as the caller guarantees; flags of 0 make the array read-only
    // and not the owner of its elements. `NewFromDescr` takes the reference to the type. An error returns NULL.
    let array = unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            PyUntypedArray::type_object_raw(py),
            PY_ARRAY_API.PyArray_DescrFromType(py, number as c_int),
            shape.len() as c_int,
            shape.as_mut_ptr(),
            ptr::null_mut(),
            bytes.as_ptr().cast_mut().cast::<c_void>(),
            0,
            ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)?
    };
    // SAFETY: the array is new and has no base; `SetBaseObject` takes the reference that `into_ptr` hands over.
    let done = unsafe {
        PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.clone().into_ptr())
    };
    match done {
        0 => Ok(array),
        _ => Err(PyErr::fetch(py)),
    }
}

/// `tokens` as a read-only array.
pub(crate) fn own_read_only<T: Element>(py: Python<'_>, tokens: Vec<T>) -> Bound<'_, PyAny> {
    let array = PyArray1::from_vec(py, tokens);
    clear_writeable_flag(&array);
    array.into_any()
}

/// Makes an array read-only: the map is, and a write through NumPy would end the process.
///
/// `readwrite().make_nonwriteable()` panics when another thread holds a borrow of the same block,
/// so the flag is cleared directly.
fn clear_writeable_flag<T: Element>(array: &Bound<'_, PyArray1<T>>) {
    // SAFETY: the array was just created and no other thread has access to it.
    unsafe { (*array.as_array_ptr()).fields.flags &= !(NPY_ARRAY_WRITEABLE as c_int) };
}
