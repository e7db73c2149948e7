//! The errors of folders of NPY files.

use std::path::PathBuf;

/// The reason why a folder of NPY files cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// Two files of the corpus would have the same NPY file.
    #[error("{} and {}: both would become {name}; rename one, or leave one out with --ignore (ignore)", first.display(), second.display())]
    SameName {
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
        /// The file that both would become.
        name: String,
    },
    /// A file is not below the base folder of its input.
    #[error(
        "{}: is not below {}, so its place in the output is unknown; set --root (root) to a folder that contains all files",
        path.display(), root.display()
    )]
    NotBelowRoot {
        /// The file.
        path: PathBuf,
        /// The folder.
        root: PathBuf,
    },
    /// A name is not UTF-8.
    #[error("{}: the name is not UTF-8; rename the file", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The packed corpus has no origins.
    #[error("{}: the file does not record where its documents came from; remove it and run the same command again", path.display())]
    NoOrigins {
        /// The pbin.
        path: PathBuf,
    },
    /// The packed corpus lacks a file.
    #[error("{}: the file has no documents of {label}; remove it and run the same command again", path.display())]
    NotPacked {
        /// The pbin.
        path: PathBuf,
        /// The file of the corpus.
        label: String,
    },
    /// An existing file without a marker differs from the file that this run would write.
    #[error(
        "{}: the file exists, has no marker, and differs from what this command writes; set --existing (existing) to replace, or choose another --output-dir (output_dir)",
        path.display()
    )]
    ExistingDiffers {
        /// The file.
        path: PathBuf,
    },
    /// A line of the rejects is damaged.
    #[error("{}: a line of the rejects is damaged; remove the file and run the same command again", path.display())]
    Rejects {
        /// The rejects.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
}
