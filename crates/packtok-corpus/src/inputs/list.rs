//! Lists of corpus files: `@LIST` among the inputs stands for the files that the lines of LIST
//! name.
//!
//! A relative line is resolved against the folder of the list, or against a folder that the user
//! sets. Empty lines and lines that start with `#` are skipped; a name that starts with `#` is
//! written `./#name`. Lines are names, not globs. An input file whose name starts with `@` is
//! written `./@name`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::is_url;

/// A line of a list.
pub struct Listed {
    /// The number of the line, from 1.
    pub line: u64,
    /// The file that the line names.
    pub path: PathBuf,
}

/// The list that an input names; `None` if the input is no list.
pub fn list_of(input: &str) -> Option<&Path> {
    input.strip_prefix('@').map(Path::new)
}

/// The folder against which relative lines of a list are resolved.
pub fn base_of_list<'a>(list: &'a Path, root: Option<&'a Path>) -> &'a Path {
    root.unwrap_or_else(|| list.parent().unwrap_or(Path::new("")))
}

/// The folder to which the files of an input are relative: the base folder of a list, the folder
/// itself, or the parent folder of a file or glob.
pub fn base_of(input: &str, root: Option<&Path>) -> PathBuf {
    if let Some(list) = list_of(input) {
        return base_of_list(list, root).into();
    }
    let path = Path::new(input);
    if path.is_dir() {
        return path.into();
    }
    let is_plain = |path: &&Path| !path.to_string_lossy().contains(['*', '?', '[']);
    let mut folders = path.ancestors().skip(1);
    let folder = if path.exists() {
        folders.next()
    } else {
        folders.find(is_plain)
    };
    folder.unwrap_or(Path::new("")).into()
}

/// The files that a list names, in order.
///
/// # Errors
/// The list cannot be read, names no file, or is not UTF-8.
pub fn read_list(list: &Path, root: Option<&Path>) -> Result<Vec<Listed>> {
    let bytes = fs::read(list).map_err(|cause| Error::io(list, cause))?;
    let folder = base_of_list(list, root);
    let mut listed = Vec::new();
    for (line, bytes) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() || bytes.starts_with(b"#") {
            continue;
        }
        let Ok(text) = str::from_utf8(bytes) else {
            return Err(Error::ListNotUtf8 {
                list: list.into(),
                line,
            });
        };
        let path = if is_url(Path::new(text)) {
            text.into()
        } else {
            folder.join(text)
        };
        listed.push(Listed { line, path });
    }
    if listed.is_empty() {
        Err(Error::EmptyList { list: list.into() })
    } else {
        Ok(listed)
    }
}

/// The content of a list that [`read_list`] reads as `paths`.
///
/// # Errors
/// A path cannot be a line: it is not UTF-8, contains a line feed, or ends with a carriage return.
pub fn written_list(paths: impl IntoIterator<Item = PathBuf>) -> Result<String> {
    let mut text = String::new();
    for path in paths {
        let line = path
            .to_str()
            .filter(|line| !line.contains('\n') && !line.ends_with('\r'));
        let Some(line) = line else {
            return Err(Error::NotALine { path });
        };
        if line.starts_with('#') || line.trim_ascii().is_empty() {
            text.push_str("./");
        }
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}
