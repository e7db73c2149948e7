//! A column of lists of token ids.

use super::column::{ListColumn, Storage, find_lists};
use super::message::Message;
use super::{read, values};
use crate::table::fault::{Fault, contained};
use crate::table::values::Value;
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

    /// Calls `each` with the ids of one row after the other, which may be negative.
    ///
    /// # Errors
    /// Those of `each`; the file is damaged, or has a null.
    pub fn for_each<E: From<Fault>>(
        &self,
        mut each: impl FnMut(&mut dyn Iterator<Item = i128>) -> Result<(), E>,
    ) -> Result<(), E> {
        let column = &self.lists.column;
        let width = match column.storage {
            Storage::Lists32(bytes) | Storage::Lists64(bytes) => bytes as usize,
            _ => 1,
        };
        let num_bytes = self.window.len_bytes();
        let mut left = LEAST_MAX_VALUES + num_bytes.saturating_mul(MAX_VALUES_PER_BYTE);
        let mut row = 0u64;
        for message in &self.batches {
            let mut rows = contained(|| values::open(message, column, &self.window))?;
            while let Some(value) = contained_next(&mut *rows, row)? {
                let num_values = 1 + (value.len() / width) as u64;
                left = left.checked_sub(num_values).ok_or_else(|| {
                    Fault::Damaged("it has more ids than its bytes can hold".to_owned())
                })?;
                each(&mut value.chunks_exact(width).map(|id| self.id(id)))?;
                row += 1;
            }
        }
        Ok(())
    }

    /// The integer with these little-endian bytes.
    fn id(&self, bytes: &[u8]) -> i128 {
        let is_negative = self.lists.is_signed && bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(wide)
    }
}

/// The bytes of the next list; `None` after the last.
fn contained_next(rows: &mut dyn super::Values, row: u64) -> Result<Option<Vec<u8>>, Fault> {
    match contained(|| {
        rows.next_value(MAX_LIST_BYTES)
            .map(|value| value.map(Owned::of))
    })? {
        None => Ok(None),
        Some(Owned::Bytes(bytes)) => Ok(Some(bytes)),
        Some(Owned::Oversize(bytes)) => Err(Fault::Unsupported(format!(
            "the list of row {row} has {bytes} bytes; expected at most {MAX_LIST_BYTES}; divide the document"
        ))),
        Some(Owned::Other) => Err(Fault::Damaged(format!("row {row} has no list"))),
    }
}

/// A value that outlives the next.
enum Owned {
    Bytes(Vec<u8>),
    Oversize(u64),
    Other,
}

impl Owned {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Oversize(bytes) => Self::Oversize(bytes),
            _ => Self::Other,
        }
    }
}
