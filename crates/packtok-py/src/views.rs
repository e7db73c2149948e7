//! Read-only arrays: views that borrow a map, and arrays that own their tokens.

use std::os::raw::c_int;

use numpy::npyffi::flags::NPY_ARRAY_WRITEABLE;
use numpy::{Element, PyArray1, PyArrayDescr, PyUntypedArrayMethods};
use packtok_core::pbin::TokenWidth;
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
