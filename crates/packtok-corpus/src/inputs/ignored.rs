//! Files of the inputs that are not read, and why.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// A file or folder that an input stands for and that is not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// Path or URL.
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: IgnoredReason,
}

impl Ignored {
    pub(crate) fn new(path: impl Into<PathBuf>, reason: IgnoredReason) -> Self {
        let path = path.into();
        Self { path, reason }
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredReason {
    /// The user leaves it out.
    Pattern,
    /// It has another format than the one that the user chose.
    Format,
    /// It is of another split than the one that is read.
    Split(String),
    /// It is a plain text beside the files of a corpus.
    Note,
    /// It describes the data or a tokenizer, or records what packtok did.
    Metadata,
    /// It is an earlier version of a file.
    Backup,
    /// It is a copy that a library made of the data.
    Cache,
    /// Its name starts with a dot.
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

/// Why data is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The file is not complete.
    Unfinished,
    /// packtok does not read the compression.
    Compression,
    /// The name does not tell what is compressed.
    Content,
    /// The file contains other files.
    Archive,
    /// packtok does not read the format.
    Format,
    /// Something unknown follows the extension of data.
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
