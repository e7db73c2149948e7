//! Strings of Python, readable by threads without the interpreter lock.
//!
//! Python stores a `str` as code points of 1, 2 or 4 bytes (PEP 393). The stable ABI only gives access to UTF-8: beyond
//! ASCII, Python makes a copy and keeps it as long as the string. So the code points are read where CPython 3.11 to 3.15
//! store them, and converted one text at a time. That this Python stores them there is proven when packtok is imported,
//! by strings of each kind; otherwise UTF-8 is used.
#![allow(unsafe_code)]

use std::fmt::Display;
use std::{ptr, slice};

use packtok_pack::texts;
use packtok_tokenizer::{CodePoints, EncodeError, Result as TokenizerResult};
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyListMethods, PyString};

/// The layout of strings, or why they are read as UTF-8.
static LAYOUT: PyOnceLock<Result<Layout, String>> = PyOnceLock::new();

/// A string, kept alive and unchanged.
pub(crate) struct PyText {
    /// Keeps the memory of `content` alive.
    _owner: Py<PyString>,
    content: Content<'static>,
}

/// What a string has in memory.
#[derive(Clone, Copy)]
enum Content<'a> {
    Utf8(&'a str),
    CodePoints(CodePoints<'a>),
}

impl PyText {
    /// # Errors
    /// A lone surrogate, if strings are read as UTF-8. The message begins with `prefix`.
    fn new(prefix: impl Display, text: &Bound<'_, PyString>) -> PyResult<Self> {
        let content = match layout(text.py())? {
            // SAFETY: the layout is proven, and `_owner` keeps the string as long as the content is used. Strings do not
            // change while another owner exists.
            Ok(layout) => unsafe { layout.content_of(text) },
            Err(_) => None,
        };
        let content = match content {
            Some(content) => content,
            None => {
                let utf8 = text.to_str().map_err(|error| {
                    named_surrogate(prefix, text, &error).unwrap_or_else(|other| other)
                })?;
                // SAFETY: Python keeps the UTF-8 as long as the string, and `_owner` keeps the string.
                Content::Utf8(unsafe { &*ptr::from_ref(utf8) })
            }
        };
        Ok(Self {
            _owner: text.clone().unbind(),
            content,
        })
    }
}

/// The error of a string that has no UTF-8, with the message of [`EncodeError::NotACharacter`] in place of Python's.
fn named_surrogate(
    prefix: impl Display,
    text: &Bound<'_, PyString>,
    error: &PyErr,
) -> PyResult<PyErr> {
    let py = text.py();
    let Ok(error) = error.value(py).cast::<PyUnicodeEncodeError>() else {
        return Ok(error.clone_ref(py));
    };
    let position = error.getattr(intern!(py, "start"))?.extract()?;
    let char = text.get_item(position)?;
    let code_point = py.import("builtins")?.call_method1("ord", (char,))?;
    let error = EncodeError::NotACharacter {
        position,
        code_point: code_point.extract()?,
    };
    Ok(PyValueError::new_err(format!("{prefix}{error}")))
}

impl texts::Text for PyText {
    fn max_utf8_bytes(&self) -> usize {
        match self.content {
            Content::Utf8(text) => text.len(),
            Content::CodePoints(code_points) => code_points.max_utf8_bytes(),
        }
    }

    fn utf8<'a>(&'a self, buffer: &'a mut String) -> TokenizerResult<&'a str> {
        match self.content {
            Content::Utf8(text) => Ok(text),
            Content::CodePoints(code_points) => {
                buffer.clear();
                code_points.append_to(buffer)?;
                Ok(buffer)
            }
        }
    }
}

/// Where CPython stores what in a compact `str`, in bytes from its start. All other strings, such as those of subclasses,
/// are read as UTF-8.
///
/// ```text
///                                 3.11       3.12 to 3.15
/// number of code points           16         16
/// flags and kind                  32         32
/// code points, if all are ASCII   48         40
/// number of bytes of the UTF-8    48         40      of other strings; NULL until Python needed it
/// pointer to the UTF-8            56         48
/// code points                     72         56
/// ```
///
/// Source: `PyASCIIObject` and `PyCompactUnicodeObject` in `Include/cpython/unicodeobject.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The code points of ASCII strings. In other strings, UTF-8's length and pointer.
    ascii: usize,
    /// The code points of other strings.
    wide: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout {
        ascii: 40,
        wide: 56,
    },
    Layout {
        ascii: 48,
        wide: 72,
    },
];
const LEN: usize = 16;
const STATE: usize = 32;

/// The fields of the state.
const KIND_SHIFT: u32 = 2;
const KIND_MASK: u32 = 7 << KIND_SHIFT;
const IS_COMPACT: u32 = 1 << 5;
const IS_ASCII: u32 = 1 << 6;

impl Layout {
    /// The content of a string, or None if it is read as UTF-8.
    ///
    /// # Safety
    /// Strings have this layout. The content must not be used longer than the string lives unchanged.
    unsafe fn content_of(self, text: &Bound<'_, PyString>) -> Option<Content<'static>> {
        if !text.is_exact_instance_of::<PyString>() {
            return None;
        }
        let start = text.as_ptr().cast::<u8>().cast_const();
        // SAFETY: strings have this layout, as the caller guarantees; Python's UTF-8 is valid.
        unsafe {
            let state: u32 = field(text, STATE);
            if state & IS_COMPACT == 0 {
                return None;
            }
            let len: usize = field(text, LEN);
            let utf8 = |start, len| str::from_utf8_unchecked(slice::from_raw_parts(start, len));
            if state & IS_ASCII != 0 {
                return Some(Content::Utf8(utf8(start.add(self.ascii), len)));
            }
            let start_of_utf8: *const u8 = field(text, self.utf8_start());
            if !start_of_utf8.is_null() {
                return Some(Content::Utf8(utf8(start_of_utf8, field(text, self.ascii))));
            }
            let start = start.add(self.wide);
            Some(Content::CodePoints(
                match (state & KIND_MASK) >> KIND_SHIFT {
                    1 => CodePoints::One(slice::from_raw_parts(start, len)),
                    2 => CodePoints::Two(slice::from_raw_parts(start.cast(), len)),
                    4 => CodePoints::Four(slice::from_raw_parts(start.cast(), len)),
                    _ => return None,
                },
            ))
        }
    }

    /// Where the pointer to the UTF-8 is.
    fn utf8_start(self) -> usize {
        self.ascii + 8
    }
}

/// The field of a string at this offset.
///
/// # Safety
/// The memory of the string has a value of this type there.
unsafe fn field<T: Copy>(text: &Bound<'_, PyString>, offset: usize) -> T {
    // SAFETY: as the caller guarantees.
    unsafe { text.as_ptr().cast::<u8>().add(offset).cast::<T>().read() }
}

/// The layout of strings, which the first call proves; the inner error is the reason why it is unknown.
pub(crate) fn layout(py: Python<'_>) -> PyResult<&'static Result<Layout, String>> {
    LAYOUT.get_or_try_init(py, || proven_layout(py))
}

/// How strings beyond ASCII are read: `"code points"`, or `"UTF-8"` and why.
#[pyfunction]
pub(crate) fn string_access(py: Python<'_>) -> PyResult<(&'static str, Option<&'static str>)> {
    Ok(match layout(py)? {
        Ok(_) => ("code points", None),
        Err(reason) => ("UTF-8", Some(reason)),
    })
}

/// The layout of all samples.
fn proven_layout(py: Python<'_>) -> PyResult<Result<Layout, String>> {
    if !cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        return Ok(Err(
            "the machine is not a little-endian one of 64 bits".to_owned()
        ));
    }
    let implementation: String = (py.import("sys")?.getattr("implementation")?)
        .getattr("name")?
        .extract()?;
    if implementation != "cpython" {
        return Ok(Err(format!("this is {implementation}, not CPython")));
    }
    // The widest character of each kind, the bytes of its kind, and a surrogate, which is a code point like any other.
    let kinds = [
        ('a' as u32, 1),
        ('ÿ' as u32, 1),
        ('語' as u32, 2),
        (0xdfff, 2),
        ('😀' as u32, 4),
    ];
    let mut samples = Vec::new();
    for (widest, width) in kinds {
        // Python keeps the UTF-8 of single characters.
        for len in [2, 19, 400] {
            let mut code_points = vec![u32::from(b'z'); len];
            code_points[len - 1] = widest;
            code_points[len / 2] = widest;
            samples.push((string_of(py, &code_points)?, code_points, width));
        }
    }
    let first_wrong = |layout: Layout| {
        for (text, code_points, width) in &samples {
            if let Some(wrong) = wrong(layout, text, code_points, *width)? {
                return Ok(Some(wrong));
            }
        }
        PyResult::Ok(None)
    };
    let mut reason = String::new();
    for layout in LAYOUTS {
        match first_wrong(layout)? {
            None => return Ok(Ok(layout)),
            Some(wrong) => reason = wrong,
        }
    }
    Ok(Err(reason))
}

/// What a layout says wrongly about a string. Reads no memory outside of the string.
fn wrong(
    layout: Layout,
    text: &Bound<'_, PyString>,
    code_points: &[u32],
    width: usize,
) -> PyResult<Option<String>> {
    let py = text.py();
    let is_ascii = code_points.iter().all(|&code_point| code_point < 0x80);
    let header = if is_ascii { layout.ascii } else { layout.wide };
    let elsewhere = |what: &str| {
        Ok(Some(format!(
            "this Python stores {what} of strings elsewhere"
        )))
    };
    // So all that is read below belongs to the string. Each string ends with NUL.
    let num_bytes: usize = text.call_method0(intern!(py, "__sizeof__"))?.extract()?;
    if num_bytes != header + width * (code_points.len() + 1) {
        return elsewhere("the code points");
    }
    let ascii_flag = if is_ascii { IS_ASCII } else { 0 };
    let flags = (width as u32) << KIND_SHIFT | IS_COMPACT | ascii_flag;
    // SAFETY: the header, which is part of the string, is larger than these offsets.
    let (state, len): (u32, usize) = unsafe { (field(text, STATE), field(text, LEN)) };
    if state & (KIND_MASK | IS_COMPACT | IS_ASCII) != flags || len != code_points.len() {
        return elsewhere("the flags and the length");
    }
    let start = text.as_ptr().cast::<u8>().cast_const();
    // SAFETY: the string has this size.
    let bytes = unsafe { slice::from_raw_parts(start.add(header), width * len) };
    let expected = code_points.iter().flat_map(|code_point| {
        let bytes = code_point.to_le_bytes();
        bytes.into_iter().take(width)
    });
    if !bytes.iter().copied().eq(expected) {
        return elsewhere("the code points");
    }
    // The start and the length of the UTF-8, once Python has made it.
    let utf8 = || {
        if is_ascii {
            return (start.wrapping_add(header), len);
        }
        // SAFETY: the header has these fields.
        unsafe { (field(text, layout.utf8_start()), field(text, layout.ascii)) }
    };
    if !is_ascii && !utf8().0.is_null() {
        return elsewhere("the UTF-8");
    }
    match text.to_str() {
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => Ok(None),
        Err(error) => Err(error),
        Ok(text) if utf8() == (text.as_ptr(), text.len()) => Ok(None),
        Ok(_) => elsewhere("the UTF-8"),
    }
}

/// A new string of these code points, which may be surrogates.
fn string_of<'py>(py: Python<'py>, code_points: &[u32]) -> PyResult<Bound<'py, PyString>> {
    let bytes: Vec<u8> = code_points
        .iter()
        .flat_map(|code_point| code_point.to_le_bytes())
        .collect();
    let bytes = PyBytes::new(py, &bytes);
    let text = bytes.call_method1("decode", ("utf-32-le", "surrogatepass"))?;
    Ok(text.cast_into::<PyString>()?)
}

/// The strings of an iterable.
pub(crate) fn strings(texts: &Bound<'_, PyAny>) -> PyResult<Vec<PyText>> {
    let expected = "expected a list or another iterable of str";
    let type_name = || Ok::<_, PyErr>(texts.get_type().name()?.to_string());
    if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(format!(
            "texts is a {}, {expected}",
            type_name()?
        )));
    }
    let py = texts.py();
    let items = texts.try_iter().map_err(|error| match type_name() {
        Ok(type_name) if error.is_instance_of::<PyTypeError>(py) => {
            PyTypeError::new_err(format!("texts is a {type_name}, {expected}"))
        }
        Ok(_) => error,
        Err(error) => error,
    })?;
    let num_texts = texts.cast::<PyList>().map_or(0, PyListMethods::len);
    let mut strings = Vec::with_capacity(num_texts);
    for (i, item) in items.enumerate() {
        let item = item?;
        let text = str_of(format_args!("texts[{i}]"), &item)?;
        strings.push(PyText::new(format_args!("texts[{i}]: "), text)?);
    }
    Ok(strings)
}

/// The string of the argument `text`.
pub(crate) fn string(text: &Bound<'_, PyAny>) -> PyResult<PyText> {
    PyText::new("", str_of("text", text)?)
}

fn str_of<'a, 'py>(
    name: impl Display,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyString>> {
    let Ok(text) = value.cast::<PyString>() else {
        let type_name = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{name} is {type_name}, expected a str"
        )));
    };
    Ok(text)
}
