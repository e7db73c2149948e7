//! Expands a list of inputs into files.

use crate::corpus::CorpusError;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use glob::MatchOptions;
use rustix::fs::{Access, AtFlags, access, accessat};

use super::kind::kind;
use super::label::labels;
use super::natural::{name_key, path_key};
use super::{Source, is_url};
use crate::error::{Error, Result};

/// The file names collected from a folder.
const EXTENSIONS: [&str; 3] = [".jsonl", ".jsonl.gz", ".jsonl.zst"];

/// The sources for `inputs` (files, globs and folders), in the order of `inputs`.
///
/// Files of a glob or folder are in natural order (`part2` before `part10`), component by
/// component. A folder stands for the `*.jsonl`, `*.jsonl.gz` and `*.jsonl.zst` files in it and its
/// subfolders. Globs and folders skip names that start with a dot. An input that exists as a path
/// is never treated as a glob.
///
/// # Errors
/// An input is missing, unreadable, not a regular file, or a folder or glob without files; or a
/// file is given twice.
pub fn expand(inputs: &[String]) -> Result<Vec<Source>> {
    if inputs.is_empty() {
        return Err(Error::Corpus(CorpusError::NoInput));
    }
    let mut files = Vec::new();
    for input in inputs {
        expand_input(input, &mut files)?;
    }
    reject_duplicates(&files)?;
    let labels = labels(files.iter().map(|file| file.path.as_path()))?;
    let source = |(file, label): (Found, String)| Source {
        path: file.path,
        label,
        bytes: file.bytes,
        range: None,
    };
    Ok(files.into_iter().zip(labels).map(source).collect())
}

/// A file that an input names.
struct Found {
    path: PathBuf,
    bytes: u64,
    /// Device and inode of the target, to detect duplicate paths.
    inode: (u64, u64),
}

impl Found {
    /// An object of a store. Different URLs are different objects.
    #[cfg(feature = "remote")]
    fn object(object: packtok_store::Object) -> Self {
        Self {
            inode: (
                u64::MAX,
                xxhash_rust::xxh64::xxh64(object.url.as_bytes(), 0),
            ),
            path: object.url.into(),
            bytes: object.bytes,
        }
    }
}

fn expand_input(input: &str, files: &mut Vec<Found>) -> Result<()> {
    let path = Path::new(input);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let found = in_folder(path)?;
            if found.is_empty() {
                return Err(Error::Corpus(CorpusError::EmptyFolder {
                    path: path.into(),
                }));
            }
            files.extend(found);
        }
        Ok(metadata) => files.push(regular_file(path.into(), &metadata, None)?),
        Err(_) if is_url(path) => files.extend(in_store(input)?),
        Err(_) if input.contains(['*', '?', '[']) => match input.strip_suffix("/**") {
            // In the glob library this matches the subfolders, but not the files in the folder.
            Some(folder) => expand_input(folder, files)?,
            None => files.extend(matching(input)?),
        },
        Err(cause) => return Err(Error::io(path, cause)),
    }
    Ok(())
}

/// The objects for a URL: a single object, the matches of a pattern, or the corpus files of a
/// folder.
#[cfg(feature = "remote")]
fn in_store(url: &str) -> Result<Vec<Found>> {
    use packtok_store::{Error as StoreError, Location};

    let location = Location::parse(url)?;
    let mut objects = match location.object() {
        Ok(object) => return Ok(vec![Found::object(object)]),
        Err(StoreError::Absent { .. }) if url.contains(['*', '?', '[']) => Location::matching(url)?,
        Err(error @ StoreError::Absent { .. }) => {
            let mut objects = location.list()?;
            objects.retain(|object| is_corpus_below(&object.url, url));
            if objects.is_empty() {
                return Err(error.into());
            }
            objects
        }
        Err(error) => return Err(error.into()),
    };
    if objects.is_empty() {
        return Err(Error::Corpus(CorpusError::NothingMatches {
            pattern: url.to_owned(),
        }));
    }
    objects.sort_by_cached_key(|object| path_key(Path::new(&object.url)));
    Ok(objects.into_iter().map(Found::object).collect())
}

#[cfg(not(feature = "remote"))]
fn in_store(_: &str) -> Result<Vec<Found>> {
    Err(Error::Corpus(CorpusError::NoStores))
}

/// Whether an object is one of the corpus files that the folder stands for.
#[cfg(feature = "remote")]
fn is_corpus_below(url: &str, folder: &str) -> bool {
    let name = url.strip_prefix(folder).unwrap_or(url);
    EXTENSIONS.iter().any(|extension| name.ends_with(extension))
        && !name.split('/').any(|part| part.starts_with('.'))
}

/// The matches of a glob; the files of a matched folder count as matches.
fn matching(pattern: &str) -> Result<Vec<Found>> {
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let paths = glob::glob_with(pattern, options).map_err(|cause| {
        Error::Corpus(CorpusError::BadGlob {
            pattern: pattern.to_owned(),
            source: cause,
        })
    })?;
    let mut found = Vec::new();
    for path in paths {
        let path =
            path.map_err(|cause| Error::io(cause.path(), io::Error::from(cause.error().kind())))?;
        let metadata = fs::metadata(&path).map_err(|cause| Error::io(&path, cause))?;
        if metadata.is_dir() {
            found.extend(in_folder(&path)?);
        } else {
            found.push(regular_file(path, &metadata, None)?);
        }
    }
    if found.is_empty() {
        return Err(Error::Corpus(CorpusError::NothingMatches {
            pattern: pattern.to_owned(),
        }));
    }
    found.sort_by_cached_key(|file| path_key(&file.path));
    // A pattern may match both a folder and the files in it.
    found.dedup_by(|one, next| one.path == next.path);
    Ok(found)
}

/// The corpus files in a folder and its subfolders, sorted.
fn in_folder(folder: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    walk(folder, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Collects the files below `folder` in order. `ancestors` contains the folders above it with links
/// resolved, to avoid following a link cycle.
fn walk(folder: &Path, ancestors: &mut Vec<PathBuf>, found: &mut Vec<Found>) -> Result<()> {
    let io = |cause| Error::io(folder, cause);
    let canonical = folder.canonicalize().map_err(io)?;
    if ancestors.contains(&canonical) {
        return Ok(());
    }
    ancestors.push(canonical);
    let opened = File::open(folder).map_err(io)?;
    let entries = fs::read_dir(folder).map_err(io)?;
    let entries = entries.filter_map(|entry| Entry::of(entry).map_err(io).transpose());
    let mut entries = entries.collect::<Result<Vec<_>>>()?;
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    for entry in entries {
        let path = entry.entry.path();
        match entry.metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, ancestors, found)?,
            Ok(metadata) if entry.is_corpus => {
                let name = entry.entry.file_name();
                found.push(regular_file(path, &metadata, Some((&opened, &name)))?);
            }
            Err(cause) if entry.is_corpus => return Err(Error::io(&path, cause)),
            // A dangling link or similar; not a corpus file.
            Ok(_) | Err(_) => {}
        }
    }
    ancestors.pop();
    Ok(())
}

/// An entry of a folder that may be a corpus file or a subfolder.
struct Entry {
    entry: DirEntry,
    file_type: FileType,
    is_corpus: bool,
    key: Vec<u8>,
}

impl Entry {
    fn of(entry: io::Result<DirEntry>) -> io::Result<Option<Self>> {
        let entry = entry?;
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let is_corpus = EXTENSIONS
            .iter()
            .any(|extension| bytes.ends_with(extension.as_bytes()));
        // Available from the listing on most file systems.
        let file_type = entry.file_type()?;
        if bytes.starts_with(b".") || (file_type.is_file() && !is_corpus) {
            return Ok(None);
        }
        Ok(Some(Self {
            entry,
            file_type,
            is_corpus,
            key: name_key(&name),
        }))
    }

    /// Metadata of the entry's target, looked up relative to the open folder if possible.
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.file_type.is_symlink() {
            true => fs::metadata(path),
            false => self.entry.metadata(),
        }
    }
}

/// Checks that a file can be read, without opening it: opening a FIFO would block, and opening a
/// million files is slow. A name relative to an open folder spares the system the path lookup.
fn regular_file(
    path: PathBuf,
    metadata: &Metadata,
    in_folder: Option<(&File, &OsStr)>,
) -> Result<Found> {
    if !metadata.is_file() {
        let found = kind(metadata);
        return Err(Error::Corpus(CorpusError::NotAFile { path, found }));
    }
    let access = match in_folder {
        Some((folder, name)) => accessat(folder, name, Access::READ_OK, AtFlags::empty()),
        None => access(&path, Access::READ_OK),
    };
    match access {
        Ok(()) => Ok(Found {
            path,
            bytes: metadata.len(),
            inode: (metadata.dev(), metadata.ino()),
        }),
        Err(cause) => Err(Error::io(&path, cause.into())),
    }
}

/// Rejects two paths to one file. Two hard links of a file are allowed.
fn reject_duplicates(files: &[Found]) -> Result<()> {
    let mut inodes: Vec<_> = files.iter().map(|file| file.inode).collect();
    inodes.sort_unstable();
    let is_repeated = |pair: &[_]| (pair[0] == pair[1]).then_some(pair[0]);
    let repeated: HashSet<_> = inodes.windows(2).filter_map(is_repeated).collect();
    let mut seen = HashMap::new();
    for file in files.iter().filter(|file| repeated.contains(&file.inode)) {
        let path = &file.path;
        let canonical = match is_url(path) {
            true => path.clone(),
            false => path
                .canonicalize()
                .map_err(|cause| Error::io(path, cause))?,
        };
        if let Some(first) = seen.insert(canonical, path) {
            return Err(Error::Corpus(CorpusError::DuplicateInput {
                path: path.clone(),
                first: first.clone(),
            }));
        }
    }
    Ok(())
}
