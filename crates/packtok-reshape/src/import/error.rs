//! The errors of this module.

use std::path::PathBuf;

use crate::import::pickled::PickleFault;

/// Why folders of samples cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is no index in a folder or in those below it.
    #[error("{}: no folder with an index.json was found", path.display())]
    NoFolders {
        /// The folder.
        path: PathBuf,
    },
    /// The output exists.
    #[error("{}: the output exists; choose another folder", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// The output is within the input.
    #[error("{}: the output is within the input; choose another folder", path.display())]
    Within {
        /// The output.
        path: PathBuf,
    },
    /// Another process writes the output.
    #[error("{}: another process is writing this output; let it finish", path.display())]
    Busy {
        /// The output.
        path: PathBuf,
    },
    /// A pickle that holds something else.
    #[error("{}: sample {sample}, column {column:?}", path.display())]
    Pickle {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// What it holds.
        #[source]
        source: PickleFault,
    },
    /// A value differs from those of other samples.
    #[error("{}: sample {sample}, column {column:?}: the value is {found}, in sample 0 it is {expected}", path.display())]
    Differs {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The kind of the value.
        found: String,
        /// The kind in the first sample.
        expected: String,
    },
    /// An id does not fit the requested type.
    #[error("{}: sample {sample}, column {column:?}: id {found} does not fit {dtype}; choose another type with --dtype (dtype)", path.display())]
    Id {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The id.
        found: i128,
        /// The type.
        dtype: &'static str,
    },
    /// A list of arrays that are not rows.
    #[error("{}: sample {sample}, column {column:?}: the list has an array with shape {shape:?}, expected one dimension", path.display())]
    Row {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A value without elements, which MDS cannot store.
    #[error("{}: sample {sample}, column {column:?}: the value is empty, which MDS cannot store", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
    },
    /// Two columns would have one name.
    #[error("{}: column {column:?} exists, and the lengths of a list would have the same name", path.display())]
    ColumnExists {
        /// The folder.
        path: PathBuf,
        /// The column.
        column: String,
    },
}
