//! The errors of this module.

use std::path::PathBuf;

use crate::import::pickled::PickleFault;

/// The reason why folders of samples cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Neither a folder nor its subfolders contain an index.
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
    /// A pickle contains an object other than number arrays or lists of them.
    #[error("{}: sample {sample}, column {column:?}", path.display())]
    Pickle {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
        /// The fault of the pickle.
        #[source]
        source: PickleFault,
    },
    /// A value has another type than the values of other samples.
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
    /// A list contains an array with more than one dimension.
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
    /// A value has no elements; MDS cannot store it.
    #[error("{}: sample {sample}, column {column:?}: the value is empty, which MDS cannot store", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// The number of the sample in the folder.
        sample: u64,
        /// The column.
        column: String,
    },
    /// Two columns would have the same name.
    #[error("{}: column {column:?} exists, and the lengths of a list would have the same name", path.display())]
    ColumnExists {
        /// The folder.
        path: PathBuf,
        /// The column.
        column: String,
    },
}
