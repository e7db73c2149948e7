//! The values of a column in a group of rows, as bytes.

use super::fault::Fault;

/// Decodes the values of one group.
pub trait Values: Send {
    /// The value of the next row; `None` at the end of the group. A value of more than `max_bytes`
    /// is skipped.
    ///
    /// # Errors
    /// The file is damaged or cannot be read. A decoder must not be used after an error.
    fn next_value(&mut self, max_bytes: u64) -> Result<Option<Value<'_>>, Fault>;
}

/// The value of a column in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string or binary value.
    Bytes(&'a [u8]),
    /// A value that is too long to keep; its length in bytes.
    Oversize(u64),
    /// No value.
    Null,
    /// The column has values of another type, with this name, as in `an integer`.
    OtherType(&'static str),
}

/// The rows of a group whose column contains no bytes.
pub(super) struct OtherValues {
    rows: u64,
    type_name: &'static str,
}

impl OtherValues {
    pub(super) fn new(rows: u64, type_name: &'static str) -> Self {
        Self { rows, type_name }
    }
}

impl Values for OtherValues {
    fn next_value(&mut self, _: u64) -> Result<Option<Value<'_>>, Fault> {
        let Some(rows) = self.rows.checked_sub(1) else {
            return Ok(None);
        };
        self.rows = rows;
        Ok(Some(Value::OtherType(self.type_name)))
    }
}

/// A floating-point number as an integer; `i64::MIN`, which is neither an id nor a flag, if it is none.
pub(super) fn integer_of(number: f64) -> i64 {
    let integer = number as i64;
    if integer as f64 == number {
        integer
    } else {
        i64::MIN
    }
}
