//! Opens a Parquet file of documents.

use std::fs::File;
use std::path::Path;

use super::IDS_COLUMN;
use crate::copied::CopiedDocuments;
use crate::error::{Error, Result};
use crate::first_bytes::first_bytes;
use crate::flat_file::FlatFile;
use crate::format::TokenFormat;
use crate::mask_columns::{ColumnError, EachRow, with_masks};
use crate::table::{Fault, IdLists, Window};

/// The first bytes of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// Whether the file at `path` starts as Parquet files do.
pub(crate) fn starts_with_magic(path: &Path) -> bool {
    first_bytes(path) == Some(MAGIC)
}

/// Opens the file at `path`.
///
/// # Errors
/// The file cannot be read, is damaged, or has no column of lists of ids; an id is negative or does
/// not fit in 32 bits; the copy cannot be written.
pub fn open(path: &Path) -> Result<FlatFile> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let window = Window::new(file).map_err(Error::io(path))?;
    let error = |fault| rows_error(path, "a Parquet", fault);
    let column = IdLists::open(window, IDS_COLUMN).map_err(error)?;
    let mut documents = CopiedDocuments::new(path)?;
    let copied: Result<(), RowsError> = column.for_each(|lists| {
        let mut ids = lists.ids.iter();
        for &length in &lists.lengths {
            let row = documents.num_documents();
            let row_ids = ids.by_ref().take(length as usize).enumerate();
            documents.push(row_ids.map(|(token, &id)| {
                u32::try_from(id).map_err(|_| Error::RowId {
                    path: path.into(),
                    row,
                    token: token as u64,
                    id: id.into(),
                })
            }))?;
        }
        Ok(())
    });
    copied.map_err(|fault| fault.into_error(error))?;
    let file = documents.finish(TokenFormat::Parquet, file_bytes)?;
    let rows = |name: &str, each: EachRow<'_>| {
        let file = File::open(path).map_err(Fault::Io)?;
        let column = IdLists::open_mask(Window::new(file).map_err(Fault::Io)?, name)?;
        column.for_each(|lists| {
            let mut values = lists.ids.as_slice();
            for &length in &lists.lengths {
                let (row, rest) = values
                    .split_at_checked(length as usize)
                    .ok_or(ColumnError::NoMask)?;
                values = rest;
                each(row)?;
            }
            Ok(())
        })
    };
    with_masks(file, &column.other_columns(), rows, error)
}

/// The reason why the rows of a file cannot be copied.
pub(crate) enum RowsError {
    Fault(Fault),
    Other(Error),
}

impl RowsError {
    /// The error, if `of_fault` returns that of a fault.
    pub(crate) fn into_error(self, of_fault: impl FnOnce(Fault) -> Error) -> Error {
        match self {
            Self::Fault(fault) => of_fault(fault),
            Self::Other(error) => error,
        }
    }
}

impl From<Fault> for RowsError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for RowsError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The error for a table that is named with its article, as `a Parquet`.
pub(crate) fn rows_error(path: &Path, format: &str, fault: Fault) -> Error {
    let reason = match fault {
        Fault::Io(source) | Fault::Temporary(source) => return Error::io(path)(source),
        Fault::OtherFormat => format!("the file is not {format} file"),
        Fault::Damaged(reason) => format!("the file is damaged: {reason}"),
        Fault::Unsupported(reason) => reason,
        Fault::ColumnMissing(names) => format!(
            "the file has no column {IDS_COLUMN}; it has {}; pack its texts with packtok pack, or rename the column",
            names.join(", ")
        ),
        Fault::ColumnTwice(first, second) => {
            format!("columns {first} and {second} have the same name; rename one")
        }
    };
    Error::TableRows {
        path: path.into(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::TokenFile;
    use crate::parquet_rows::RowsWriter;
    use crate::test_support::{documents, golden, golden_documents};

    #[test]
    fn files_of_other_writers_are_read() {
        for (name, expected) in golden_documents("parquet_rows") {
            let path = golden("parquet_rows").join(format!("{name}.parquet"));
            let file = TokenFile::open(&path).unwrap();
            assert_eq!(documents(&file), expected, "{name}");
            assert_eq!(file.file_bytes(), path.metadata().unwrap().len());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        // More rows than a row group has, and none.
        for num_documents in [0, 1, (1 << 20) + 5] {
            let expected = (0..num_documents).map(|i| (0..i % 3).map(|token| i + token).collect());
            let expected: Vec<Vec<i32>> = expected.collect();
            let mut writer = RowsWriter::new(Vec::new(), &path).unwrap();
            for document in &expected {
                writer.push(document.iter().copied()).unwrap();
            }
            fs::write(&path, writer.finish().unwrap()).unwrap();
            let file = TokenFile::open(&path).unwrap();
            let expected = expected.into_iter();
            let expected = expected.map(|ids| ids.into_iter().map(|id| id as u32).collect());
            assert_eq!(documents(&file), expected.collect::<Vec<Vec<_>>>());
        }
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let path = golden("parquet_rows").join("datasets.parquet");
        let bytes = fs::read(path).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let damaged = folder.path().join("a.parquet");
        for len in [4, 12, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&damaged, &bytes[..len]).unwrap();
            let message = TokenFile::open(&damaged).unwrap_err().to_string();
            assert!(message.contains("the file is damaged: "), "{message}");
        }
        for at in 4..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            fs::write(&damaged, changed).unwrap();
            // An error or other ids, but no panic.
            drop(TokenFile::open(&damaged));
        }
    }
}
