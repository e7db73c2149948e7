//! Opens a Parquet file of documents.
//!
//! Pages are compressed, so that no ids can be views of the file: all are copied when the file is
//! opened, to an unlinked temporary file that is mapped.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use packtok_pbin::{MappedFile, TokenWidth};

use super::IDS_COLUMN;
use crate::ends::EndsWriter;
use crate::error::{Error, Result};
use crate::first_bytes::first_bytes;
use crate::flat_file::{FlatFile, FlatParts, IdType};
use crate::format::TokenFormat;
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
    let column = IdLists::open(window, IDS_COLUMN).map_err(|fault| parquet_error(path, fault))?;
    let copy_error = |source: io::Error| Error::NarrowedCopy {
        path: path.into(),
        folder: std::env::temp_dir(),
        source,
    };
    let mut copy = BufWriter::new(tempfile::tempfile().map_err(copy_error)?);
    let mut ends = EndsWriter::new(path)?;
    let (mut num_tokens, mut num_rows) = (0u64, 0u64);
    let copied: Result<(), ReadError> = column.for_each(|lists| {
        let mut ids = lists.ids.iter();
        for &length in &lists.lengths {
            for (token, &id) in ids.by_ref().take(length as usize).enumerate() {
                let id = u32::try_from(id).map_err(|_| Error::ParquetId {
                    path: path.into(),
                    row: num_rows,
                    token: token as u64,
                    id,
                })?;
                copy.write_all(&id.to_le_bytes()).map_err(copy_error)?;
            }
            (num_tokens, num_rows) = (num_tokens + length, num_rows + 1);
            ends.push(num_tokens)?;
        }
        Ok(())
    });
    copied.map_err(|error| match error {
        ReadError::Fault(fault) => parquet_error(path, fault),
        ReadError::Other(error) => error,
    })?;
    let copy = copy
        .into_inner()
        .map_err(|error| copy_error(error.into_error()))?;
    let ends = ends.finish(file_bytes)?;
    FlatFile::new(FlatParts {
        format: TokenFormat::Parquet,
        path: path.into(),
        data_path: path.into(),
        map: MappedFile::of(&copy).map_err(copy_error)?,
        first_byte: 0,
        id_type: IdType::Copied(TokenWidth::U32),
        num_tokens,
        documents: Box::new(ends.with_extras(column.other_columns())),
    })
}

enum ReadError {
    Fault(Fault),
    Other(Error),
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn parquet_error(path: &Path, fault: Fault) -> Error {
    let reason = match fault {
        Fault::Io(source) | Fault::Temporary(source) => return Error::io(path)(source),
        Fault::OtherFormat => "the file is not a Parquet file".to_owned(),
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
    Error::ParquetRows {
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
