//! Converts one-dimensional arrays and lists of any integer type to one Rust type.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The supported integer types of arrays.
pub(crate) trait Integer:
    TryFrom<u8>
    + TryFrom<i8>
    + TryFrom<u16>
    + TryFrom<i16>
    + TryFrom<u32>
    + TryFrom<i32>
    + TryFrom<u64>
    + TryFrom<i64>
{
    /// Description of valid values for errors.
    const EXPECTED: &'static str;
}

impl Integer for u32 {
    const EXPECTED: &'static str = "an id, from 0 to 4294967295";
}

impl Integer for usize {
    const EXPECTED: &'static str = "a number of at least 0";
}

/// The numbers of `value`, the argument `name`: an array, tensor or sequence.
pub(crate) fn integers<U: Integer>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<U>> {
    let array = in_native_order(
        value
            .py()
            .import("numpy")?
            .call_method1("asarray", (value,))?,
    )?;
    let one_dimensional = array.getattr("ndim")?.extract::<usize>()? == 1;
    // An empty list has no integer type in NumPy, but is accepted.
    if one_dimensional && array.len()? == 0 {
        return Ok(Vec::new());
    }
    let numbers = (of::<u32, U>(&array))
        .or_else(|| of::<u16, U>(&array))
        .or_else(|| of::<i64, U>(&array))
        .or_else(|| of::<i32, U>(&array))
        .or_else(|| of::<u64, U>(&array))
        .or_else(|| of::<u8, U>(&array))
        .or_else(|| of::<i16, U>(&array))
        .or_else(|| of::<i8, U>(&array));
    match numbers {
        Some(Ok(numbers)) => Ok(numbers),
        Some(Err(at)) => Err(PyValueError::new_err(format!(
            "{name}[{at}] is {}, expected {}",
            array.get_item(at)?,
            U::EXPECTED
        ))),
        None => Err(PyTypeError::new_err(format!(
            "{name}: found {} of {} with {} dimensions, expected a one-dimensional array of integers",
            value.get_type().name()?,
            array.getattr("dtype")?,
            array.getattr("ndim")?,
        ))),
    }
}

/// The array in native byte order.
fn in_native_order<'py>(array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype = array.getattr("dtype")?;
    if dtype.getattr("isnative")?.is_truthy()? {
        return Ok(array);
    }
    array.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))
}

/// The numbers of an array of `T`, or the position of the first number that does not fit.
fn of<T: Element + Copy, U: TryFrom<T>>(array: &Bound<'_, PyAny>) -> Option<Result<Vec<U>, usize>> {
    let array = array.cast::<PyArray1<T>>().ok()?.try_readonly().ok()?;
    let view = array.as_array();
    let numbers = view.iter().enumerate();
    Some(
        numbers
            .map(|(at, &number)| U::try_from(number).map_err(|_| at))
            .collect(),
    )
}
