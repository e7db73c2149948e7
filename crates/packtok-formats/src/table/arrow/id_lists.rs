//! A column of lists of token ids.

use super::column::{ListColumn, Storage, find_lists};
use super::message::Message;
use super::{read, values};
use crate::table::fault::{Fault, contained};
use crate::table::values::{Value, Values};
use crate::table::window::Window;

/// The most bytes of a list.
const MAX_LIST_BYTES: u64 = 1 << 30;
/// The most rows and ids of a file for each of its bytes, and of any file: a compressed buffer of zeros
/// could hold any number of empty lists.
const MAX_VALUES_PER_BYTE: u64 = 1 << 12;
const LEAST_MAX_VALUES: u64 = 1 << 20;

/// A column of lists of integers in an Arrow file or stream.
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
        let (batches, lists, _) = contained(|| read(&window, |schema| find_lists(schema, name)))?;
        Ok(Self {
            window,
            batches,
            lists,
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
        (width, self.lists.is_signed)
    }

    /// Calls `each` with the integers of one row after the other, in little-endian.
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
