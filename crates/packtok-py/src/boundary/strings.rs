//! Strings of Python, readable by threads without the interpreter lock.
//!
//! Python stores a `str` as code points of 1, 2 or 4 bytes (PEP 393). The stable ABI only gives access to UTF-8: beyond
//! ASCII, Python makes a copy and keeps it as long as the string. So the code points are read where CPython 3.11 to 3.15
//! store them, and converted one text at a time. That this Python stores them there is proven when packtok is imported,
//! by strings of each kind; otherwise UTF-8 is used.
#![allow(unsafe_code)]

use std::fmt::Display;
use std::slice;
use std::sync::OnceLock;

use packtok_pack::texts;
use packtok_tokenizer::{CodePoints, EncodeError, Result as TokenizerResult};
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PyListMethods, PyString};

/// Why strings of this Python are read as UTF-8, or their layout.
static LAYOUT: OnceLock<Result<Layout, String>> = OnceLock::new();

/// A string, kept alive and unchanged.
pub(crate) enum PyText {
    /// Without a copy if Python stores UTF-8.
    Utf8(PyBackedStr),
    Borrowed(Borrowed),
}

/// The memory of a `str`.
pub(crate) struct Borrowed {
    /// Keeps the memory alive.
    _owner: Py<PyString>,
    content: Content,
}

#[derive(Clone, Copy)]
enum Content {
    Utf8(*const u8, usize),
    One(*const u8, usize),
    Two(*const u16, usize),
    Four(*const u32, usize),
}

impl Content {
    /// The number of units.
    fn len(self) -> usize {
        match self {
            Self::Utf8(_, len) | Self::One(_, len) | Self::Two(_, len) | Self::Four(_, len) => len,
        }
    }

    /// The bytes of a unit.
    fn width(self) -> usize {
        match self {
            Self::Utf8(..) | Self::One(..) => 1,
            Self::Two(..) => 2,
            Self::Four(..) => 4,
        }
    }

    /// The code points, if UTF-8 is ASCII.
    ///
    /// # Safety
    /// The memory belongs to a string that is alive.
    unsafe fn code_points(self) -> Vec<u32> {
        // SAFETY: as the caller guarantees.
        unsafe {
            match self {
                Self::Utf8(start, len) | Self::One(start, len) => {
                    widened(slice::from_raw_parts(start, len))
                }
                Self::Two(start, len) => widened(slice::from_raw_parts(start, len)),
                Self::Four(start, len) => widened(slice::from_raw_parts(start, len)),
            }
        }
    }
}

fn widened<U: Copy + Into<u32>>(units: &[U]) -> Vec<u32> {
    units.iter().map(|&unit| unit.into()).collect()
}

// SAFETY: strings do not change while another owner exists, and `_owner` is one. Reading their memory needs no lock.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

impl PyText {
    /// # Errors
    /// A lone surrogate, if strings are read as UTF-8. The message begins with `prefix`.
    fn new(prefix: impl Display, text: &Bound<'_, PyString>) -> PyResult<Self> {
        if let Some(Ok(layout)) = LAYOUT.get()
            && let Some(content) = layout.content_of(text)
        {
            let _owner = text.clone().unbind();
            return Ok(Self::Borrowed(Borrowed { _owner, content }));
        }
        match PyBackedStr::try_from(text.clone()) {
            Ok(text) => Ok(Self::Utf8(text)),
            Err(error) => {
                let py = text.py();
                let Ok(error) = error.value(py).cast::<PyUnicodeEncodeError>() else {
                    return Err(error);
                };
                let position = error.getattr(intern!(py, "start"))?.extract()?;
                let char = text.get_item(position)?;
                let code_point = py.import("builtins")?.call_method1("ord", (char,))?;
                let code_point = code_point.extract()?;
                let error = EncodeError::NotACharacter {
                    position,
                    code_point,
                };
                Err(PyValueError::new_err(format!("{prefix}{error}")))
            }
        }
    }
}

impl texts::Text for PyText {
    fn max_utf8_bytes(&self) -> usize {
        match self {
            Self::Utf8(text) => text.len(),
            Self::Borrowed(text) => match text.content() {
                Ok(text) => text.len(),
                Err(code_points) => code_points.max_utf8_bytes(),
            },
        }
    }

    fn utf8<'a>(&'a self, buffer: &'a mut String) -> TokenizerResult<&'a str> {
        match self {
            Self::Utf8(text) => Ok(text),
            Self::Borrowed(text) => match text.content() {
                Ok(text) => Ok(text),
                Err(code_points) => {
                    buffer.clear();
                    code_points.append_to(buffer)?;
                    Ok(buffer)
                }
            },
        }
    }
}

impl Borrowed {
    /// The UTF-8, or the code points of a string that has none.
    fn content(&self) -> Result<&str, CodePoints<'_>> {
        // SAFETY: `Layout::content_of` gives memory of the string, which `_owner` keeps; Python's UTF-8 is valid.
        unsafe {
            match self.content {
                Content::Utf8(start, len) => {
                    Ok(str::from_utf8_unchecked(slice::from_raw_parts(start, len)))
                }
                Content::One(start, len) => Err(CodePoints::One(slice::from_raw_parts(start, len))),
                Content::Two(start, len) => Err(CodePoints::Two(slice::from_raw_parts(start, len))),
                Content::Four(start, len) => {
                    Err(CodePoints::Four(slice::from_raw_parts(start, len)))
                }
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
struct Layout {
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
const KIND_MASK: u32 = 7;
const IS_COMPACT: u32 = 1 << 5;
const IS_ASCII: u32 = 1 << 6;

impl Layout {
    /// The content of a string, or None if it is read as UTF-8.
    fn content_of(self, text: &Bound<'_, PyString>) -> Option<Content> {
        if !text.is_exact_instance_of::<PyString>() {
            return None;
        }
        let start = text.as_ptr().cast::<u8>().cast_const();
        // SAFETY: `prove` compared what is read here with the content of such strings.
        unsafe {
            let state = start.add(STATE).cast::<u32>().read();
            let len = usize::try_from(start.add(LEN).cast::<isize>().read()).ok()?;
            if state & IS_COMPACT == 0 {
                return None;
            }
            if state & IS_ASCII != 0 {
                return Some(Content::Utf8(start.add(self.ascii), len));
            }
            let utf8 = start.add(self.ascii + 8).cast::<*const u8>().read();
            if !utf8.is_null() {
                let len = start.add(self.ascii).cast::<isize>().read();
                return Some(Content::Utf8(utf8, usize::try_from(len).ok()?));
            }
            let code_points = start.add(self.wide);
            match state >> KIND_SHIFT & KIND_MASK {
                1 => Some(Content::One(code_points, len)),
                2 => Some(Content::Two(code_points.cast(), len)),
                4 => Some(Content::Four(code_points.cast(), len)),
                _ => None,
            }
        }
    }
}

/// Finds out how strings are read.
pub(crate) fn prove(py: Python<'_>) -> PyResult<()> {
    if LAYOUT.get().is_none() {
        let layout = proven_layout(py)?;
        LAYOUT.get_or_init(|| layout);
    }
    Ok(())
}

/// How strings beyond ASCII are read: `"code points"`, or `"UTF-8"` and why.
#[pyfunction]
pub(crate) fn string_access() -> (&'static str, Option<String>) {
    match LAYOUT.get() {
        Some(Ok(_)) => ("code points", None),
        Some(Err(reason)) => ("UTF-8", Some(reason.clone())),
        None => ("UTF-8", Some("packtok was not imported".to_owned())),
    }
}

/// The layout of this Python's strings. The inner error is the reason why it is unknown.
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
    let found = |what: &str| {
        Ok(Some(format!(
            "this Python stores {what} of strings elsewhere"
        )))
    };
    // So all that is read below belongs to the string. Each string ends with NUL.
    let num_bytes: usize = text.call_method0(intern!(py, "__sizeof__"))?.extract()?;
    if num_bytes != header + width * (code_points.len() + 1) {
        return found("the code points");
    }
    // A pointer that is read at a wrong place must not be followed.
    let start = text.as_ptr().cast::<u8>().cast_const();
    // SAFETY: every string is larger than this.
    let state = unsafe { start.add(STATE).cast::<u32>().read() };
    if (state & IS_ASCII != 0) != is_ascii {
        return found("the flags");
    }
    if !is_ascii {
        // SAFETY: the header is larger than this.
        let utf8 = unsafe { start.add(layout.ascii + 8).cast::<*const u8>().read() };
        if !utf8.is_null() {
            return found("the UTF-8");
        }
    }
    let Some(content) = layout.content_of(text) else {
        return found("the kind");
    };
    // SAFETY: a string of this size has at least as many code points of this width.
    let is_same = content.len() == code_points.len()
        && content.width() == width
        && unsafe { content.code_points() } == code_points;
    if !is_same {
        return found("the code points");
    }
    // Now Python makes UTF-8, if there is one.
    match text.to_str() {
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => Ok(None),
        Err(error) => Err(error),
        Ok(utf8) => match layout.content_of(text) {
            Some(Content::Utf8(start, len)) if start == utf8.as_ptr() && len == utf8.len() => {
                Ok(None)
            }
            _ => found("the UTF-8"),
        },
    }
}

/// A new string of these code points, which may be surrogates.
fn string_of<'py>(py: Python<'py>, code_points: &[u32]) -> PyResult<Bound<'py, PyString>> {
    let bytes: Vec<u8> = code_points
        .iter()
        .flat_map(|code_point| code_point.to_le_bytes())
        .collect();
    let bytes = pyo3::types::PyBytes::new(py, &bytes);
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
