//! Files of the inputs that are not read, and the reasons.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// A file or folder that belongs to an input and is not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// Path or URL.
    pub path: PathBuf,
    /// The reason why the file is not read.
    pub reason: IgnoredReason,
}

impl Ignored {
    pub(crate) fn new(path: impl Into<PathBuf>, reason: IgnoredReason) -> Self {
        let path = path.into();
        Self { path, reason }
    }
}

/// The reason why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A glob of `ignore` matches the file.
    Pattern,
    /// The file does not have the format that the user chose.
    Format,
    /// The file does not belong to the requested split.
    Split(String),
    /// A plain text next to the files of a corpus.
    Note,
    /// The file describes the data or a tokenizer, or records the work of packtok.
    Metadata,
    /// An earlier version of a file.
    Backup,
    /// A copy of the data that a library made.
    Cache,
    /// The file name starts with a dot.
    Hidden,
}

impl fmt::Display for IgnoredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern => f.write_str("ignore"),
            Self::Format => f.write_str("format"),
            Self::Split(split) => write!(f, "split {split}"),
            Self::Note => f.write_str("note"),
            Self::Metadata => f.write_str("metadata"),
            Self::Backup => f.write_str("backup"),
            Self::Cache => f.write_str("cache"),
            Self::Hidden => f.write_str("hidden"),
        }
    }
}

impl Serialize for IgnoredReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The reason why data cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The file is not complete.
    Unfinished,
    /// packtok does not read the compression.
    Compression,
    /// The name does not show the format of the compressed content.
    Content,
    /// The file contains other files.
    Archive,
    /// packtok does not read the format.
    Format,
    /// An unknown suffix follows the extension of data.
    Extension,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfinished => "unfinished",
            Self::Compression => "unsupported compression",
            Self::Content => "compressed, content unknown",
            Self::Archive => "archive",
            Self::Format => "unsupported format",
            Self::Extension => "unknown extension",
        })
    }
}
