//! Names of files next to another file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `path` with `suffix` appended to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
