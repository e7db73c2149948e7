//! Opens an Arrow file or stream of documents.

use std::fs::File;
use std::path::Path;

use crate::copied::CopiedDocuments;
use crate::error::{Error, Result};
use crate::first_bytes::first_bytes;
use crate::flat_file::FlatFile;
use crate::format::TokenFormat;
use crate::mask_columns::{EachRow, with_masks};
use crate::parquet_rows::{IDS_COLUMN, RowsError, rows_error};
use crate::table::{ArrowIdLists, Fault, Window};

/// The first bytes of a file; a stream has a name that says what it is.
const MAGIC: [u8; 6] = *b"ARROW1";

/// Whether the file at `path` starts or is named as Arrow files are.
pub(crate) fn starts_as_arrow(path: &Path) -> bool {
    let is_named = path
        .extension()
        .is_some_and(|extension| extension == "arrow");
    is_named || first_bytes(path) == Some(MAGIC)
}

/// Opens the file at `path`.
///
/// # Errors
/// The file cannot be read, is damaged, or has no column of lists of ids; an id is negative or does
/// not fit in 32 bits; the copy cannot be written.
pub(crate) fn open(path: &Path) -> Result<FlatFile> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let window = Window::new(file).map_err(Error::io(path))?;
    let error = |fault| rows_error(path, "an Arrow", fault);
    let column = ArrowIdLists::open(window, IDS_COLUMN).map_err(error)?;
    let mut documents = CopiedDocuments::new(path)?;
    let copied: Result<(), RowsError> = column.for_each(|bytes| {
        let row = documents.num_documents();
        documents.push_integers(bytes, column.integer(), |token, id| Error::RowId {
            path: path.into(),
            row,
            token,
            id,
        })?;
        Ok(())
    });
    copied.map_err(|fault| fault.into_error(error))?;
    let file = documents.finish(TokenFormat::Arrow, file_bytes)?;
    let rows = |name: &str, each: EachRow<'_>| {
        let file = File::open(path).map_err(Fault::Io)?;
        let column = ArrowIdLists::open_mask(Window::new(file).map_err(Fault::Io)?, name)?;
        let mut values = Vec::new();
        column.for_each(|bytes| {
            values.clear();
            values.extend(column.integers(bytes));
            each(&values)
        })
    };
    with_masks(file, column.other_columns(), rows, error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::TokenFile;
    use crate::arrow_rows::listed_names;
    use crate::test_support::{documents, golden, golden_documents};

    #[test]
    fn folders_of_datasets_are_read() {
        for (name, expected) in golden_documents("arrow_rows") {
            let folder = golden("arrow_rows").join(&name);
            let names = listed_names(&folder).unwrap().unwrap();
            let files = names
                .iter()
                .map(|name| TokenFile::open(&folder.join(name)).unwrap());
            let read: Vec<_> = files.flat_map(|file| documents(&file)).collect();
            assert_eq!(read, expected, "{name}");
        }
    }

    #[test]
    fn damaged_files_are_errors_or_other_ids() {
        let folder = tempfile::tempdir().unwrap();
        let damaged = folder.path().join("a.arrow");
        let original = golden("arrow_rows").join("int32/data-00000-of-00002.arrow");
        let bytes = fs::read(original).unwrap();
        for len in 0..bytes.len() {
            fs::write(&damaged, &bytes[..len]).unwrap();
            drop(TokenFile::open(&damaged));
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            fs::write(&damaged, changed).unwrap();
            drop(TokenFile::open(&damaged));
        }
        fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
        let message = TokenFile::open(&damaged).unwrap_err().to_string();
        assert!(message.contains("the file is damaged: "), "{message}");
    }

    #[test]
    fn lists_that_select_rows_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        assert!(listed_names(folder.path()).unwrap().is_none());
        for (json, expected) in [
            (
                r#"{"_data_files": [{"filename": "a"}], "_indices_data_files": [{"filename": "i"}]}"#,
                "call `flatten_indices()`",
            ),
            (
                r#"{"_data_files": [{"filename": "../a"}]}"#,
                "has the file name \"../a\"",
            ),
        ] {
            fs::write(&state, json).unwrap();
            let message = listed_names(folder.path()).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        fs::write(&state, r#"{"step": 3}"#).unwrap();
        assert!(listed_names(folder.path()).unwrap().is_none());
    }
}
