//! A column of lists of token ids.

use super::column::{Element, ListColumn, Storage, find_lists};
use super::message::Message;
use super::{read, values};
use crate::table::fault::{Fault, contained};
use crate::table::values::{Value, Values, integer_of};
use crate::table::window::Window;

/// The most bytes of a list.
const MAX_LIST_BYTES: u64 = 1 << 30;
/// The most rows and ids of a file for each of its bytes, and of any file: a compressed buffer of zeros
/// could hold any number of empty lists.
const MAX_VALUES_PER_BYTE: u64 = 1 << 12;
const LEAST_MAX_VALUES: u64 = 1 << 20;

/// A column of lists of numbers in an Arrow file or stream.
pub struct ArrowIdLists {
    window: Window,
    batches: Vec<Message>,
    lists: ListColumn,
}

impl ArrowIdLists {
    /// The column `name` of the file.
    ///
    /// # Errors
    /// The file is damaged, or has no such column, or that has no lists of integers.
    pub fn open(window: Window, name: &str) -> Result<Self, Fault> {
        Self::open_as(window, name, false)
    }

    /// As [`ArrowIdLists::open`], of a column that may also have booleans or floating-point numbers.
    ///
    /// # Errors
    /// Those of [`ArrowIdLists::open`].
    pub fn open_mask(window: Window, name: &str) -> Result<Self, Fault> {
        Self::open_as(window, name, true)
    }

    fn open_as(window: Window, name: &str, is_mask: bool) -> Result<Self, Fault> {
        let described = contained(|| read(&window, |schema| find_lists(schema, name, is_mask)))?;
        Ok(Self {
            window,
            batches: described.batches,
            lists: described.schema,
        })
    }

    /// The names of the other columns.
    pub fn other_columns(&self) -> &[String] {
        &self.lists.others
    }

    /// The bytes of an integer, and whether it is signed.
    pub fn integer(&self) -> (usize, bool) {
        let width = match self.lists.column.storage {
            Storage::Lists32(bytes) | Storage::Lists64(bytes) => bytes as usize,
            _ => 1,
        };
        (width, self.lists.element == Element::Signed)
    }

    /// The values of a row as integers. Unsigned ones of 64 bits may wrap, which no mask has.
    pub fn integers<'a>(&self, row: &'a [u8]) -> impl Iterator<Item = i64> + 'a {
        let ((width, is_signed), element) = (self.integer(), self.lists.element);
        row.chunks_exact(width).map(move |value| {
            let is_negative = is_signed && value[width - 1] >= 0x80;
            let mut wide = [if is_negative { 0xff } else { 0 }; 8];
            wide[..width].copy_from_slice(value);
            match (element, width) {
                (Element::Float, 4) => {
                    integer_of(f32::from_bits(u64::from_le_bytes(wide) as u32).into())
                }
                (Element::Float, _) => integer_of(f64::from_le_bytes(wide)),
                _ => i64::from_le_bytes(wide),
            }
        })
    }

    /// Calls `each` with the numbers of one row after the other, in little-endian; a boolean is a byte.
    ///
    /// # Errors
    /// Those of `each`; the file is damaged, or has a null.
    pub fn for_each<E: From<Fault>>(
        &self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let column = &self.lists.column;
        let (width, _) = self.integer();
        let num_bytes = self.window.len_bytes();
        let mut left = LEAST_MAX_VALUES + num_bytes.saturating_mul(MAX_VALUES_PER_BYTE);
        let mut row = 0u64;
        for message in &self.batches {
            let mut rows = contained(|| values::open(message, column, &self.window))?;
            while let Some(value) = next_list(&mut *rows, row)? {
                let num_values = 1 + (value.len() / width) as u64;
                left = left.checked_sub(num_values).ok_or_else(|| {
                    Fault::Damaged("it has more ids than its bytes can hold".to_owned())
                })?;
                each(&value)?;
                row += 1;
            }
        }
        Ok(())
    }
}

/// The bytes of the next list; `None` after the last.
fn next_list(rows: &mut dyn Values, row: u64) -> Result<Option<Vec<u8>>, Fault> {
    contained(|| match rows.next_value(MAX_LIST_BYTES)? {
        None => Ok(None),
        Some(Value::Bytes(bytes)) => Ok(Some(bytes.to_vec())),
        Some(Value::Oversize(bytes)) => Err(Fault::Unsupported(format!(
            "the list of row {row} has {bytes} bytes; expected at most {MAX_LIST_BYTES}; divide the document"
        ))),
        Some(_) => Err(Fault::Damaged(format!("row {row} has no list"))),
    })
}
