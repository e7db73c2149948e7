//! Finds the files that a list of inputs names.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use glob::MatchOptions;

use super::Source;
use super::label::labels;
use crate::error::{Error, Result};

/// What a folder is searched for.
const EXTENSIONS: [&str; 3] = [".jsonl", ".jsonl.gz", ".jsonl.zst"];

/// The sources that `inputs` (files, globs and folders) name, in the order of `inputs`.
///
/// What a glob or a folder holds comes in natural order (`part2` before `part10`), name by name
/// along the path. A folder stands for the `*.jsonl`, `*.jsonl.gz` and `*.jsonl.zst` files in it and
/// in the folders below it. Names that begin with a dot are left out of globs and folders. What
/// exists under the very name of an input is never taken for a glob.
///
/// # Errors
/// An input is missing, unreadable, no regular file, a URL, a folder or glob without a file; or a
/// file is named twice.
pub fn expand(inputs: &[String]) -> Result<Vec<Source>> {
    if inputs.is_empty() {
        return Err(Error::NoInput);
    }
    let mut files = Vec::new();
    for input in inputs {
        expand_input(input, &mut files)?;
    }
    refuse_duplicates(&files)?;
    let labels = labels(files.iter().map(|(path, _)| path.as_path()))?;
    let source = |((path, bytes), label)| Source {
        path,
        label,
        bytes,
        range: None,
    };
    Ok(files.into_iter().zip(labels).map(source).collect())
}

/// A file with its length in bytes.
type Found = (PathBuf, u64);

fn expand_input(input: &str, files: &mut Vec<Found>) -> Result<()> {
    let path = Path::new(input);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let found = in_folder(path)?;
            if found.is_empty() {
                return Err(Error::EmptyFolder { path: path.into() });
            }
            files.extend(found);
        }
        Ok(metadata) => files.push(regular_file(path.into(), &metadata)?),
        Err(_) if input.contains("://") => {
            return Err(Error::RemoteInput {
                url: without_credentials(input),
            });
        }
        Err(_) if input.contains(['*', '?', '[']) => match input.strip_suffix("/**") {
            // To the glob library this means the folders below, but not the files in the folder.
            Some(folder) => expand_input(folder, files)?,
            None => files.extend(matching(input)?),
        },
        Err(cause) => return Err(Error::io(path, cause)),
    }
    Ok(())
}

/// A URL without what may be secret: its query, and all of it if an `@` says that there is a password
/// somewhere, for passwords may hold any character.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match rest.contains('@') {
        true => format!("{scheme}://…"),
        false => format!(
            "{scheme}://{}",
            rest.split(['?', '#']).next().unwrap_or_default()
        ),
    }
}

/// What a glob matches; the files of a folder that it matches count as matched.
fn matching(pattern: &str) -> Result<Vec<Found>> {
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let paths = glob::glob_with(pattern, options).map_err(|cause| Error::BadGlob {
        pattern: pattern.to_owned(),
        source: cause,
    })?;
    let mut found = Vec::new();
    for path in paths {
        let path =
            path.map_err(|cause| Error::io(cause.path(), io::Error::from(cause.error().kind())))?;
        let metadata = fs::metadata(&path).map_err(|cause| Error::io(&path, cause))?;
        if metadata.is_dir() {
            found.extend(in_folder(&path)?);
        } else {
            found.push(regular_file(path, &metadata)?);
        }
    }
    if found.is_empty() {
        return Err(Error::NothingMatches {
            pattern: pattern.to_owned(),
        });
    }
    sort(&mut found);
    // A pattern may match a folder and the files in it.
    found.dedup();
    Ok(found)
}

/// The corpus files in a folder and below, sorted.
fn in_folder(folder: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    walk(folder, &mut Vec::new(), &mut found)?;
    sort(&mut found);
    Ok(found)
}

/// Collects the files below `folder`; `ancestors` holds the folders above it, links resolved, so
/// that a link to one of them is not followed for ever.
fn walk(folder: &Path, ancestors: &mut Vec<PathBuf>, found: &mut Vec<Found>) -> Result<()> {
    let io = |cause| Error::io(folder, cause);
    let canonical = folder.canonicalize().map_err(io)?;
    if ancestors.contains(&canonical) {
        return Ok(());
    }
    ancestors.push(canonical);
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        let is_corpus = EXTENSIONS.iter().any(|extension| name.ends_with(extension));
        let path = entry.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, ancestors, found)?,
            Ok(metadata) if is_corpus => found.push(regular_file(path, &metadata)?),
            Err(cause) if is_corpus => return Err(Error::io(&path, cause)),
            // A dangling link or the like, which nobody took for a corpus.
            Ok(_) | Err(_) => {}
        }
    }
    ancestors.pop();
    Ok(())
}

/// Checks that a file can be read; anything but a regular file is never opened, for opening a FIFO
/// waits for its writer.
fn regular_file(path: PathBuf, metadata: &Metadata) -> Result<Found> {
    if !metadata.is_file() {
        let found = kind(metadata);
        return Err(Error::NotAFile { path, found });
    }
    match File::open(&path) {
        Ok(_) => Ok((path, metadata.len())),
        Err(cause) => Err(Error::io(&path, cause)),
    }
}

#[cfg(unix)]
pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    match () {
        () if file_type.is_dir() => "folder",
        () if file_type.is_fifo() => "FIFO",
        () if file_type.is_socket() => "socket",
        () => "device",
    }
}

#[cfg(not(unix))]
pub(crate) fn kind(_: &Metadata) -> &'static str {
    "device"
}

fn sort(files: &mut [Found]) {
    files.sort_by(|a, b| compare(&a.0, &b.0));
}

/// Natural order of the names along two paths.
fn compare(a: &Path, b: &Path) -> Ordering {
    let mut names = a.components().zip(b.components()).map(|(a, b)| {
        let (a, b) = (a.as_os_str(), b.as_os_str());
        natord::compare(&a.to_string_lossy(), &b.to_string_lossy()).then_with(|| a.cmp(b))
    });
    names
        .find(|ordering| ordering.is_ne())
        .unwrap_or_else(|| a.components().count().cmp(&b.components().count()))
}

fn refuse_duplicates(files: &[Found]) -> Result<()> {
    let mut seen = HashMap::with_capacity(files.len());
    for (path, _) in files {
        let canonical = path
            .canonicalize()
            .map_err(|cause| Error::io(path, cause))?;
        if let Some(first) = seen.insert(canonical, path) {
            return Err(Error::DuplicateInput {
                path: path.clone(),
                first: first.clone(),
            });
        }
    }
    Ok(())
}
