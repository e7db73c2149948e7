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

use super::detect::{format_of, reject_json_lines};
use super::format::{FORMATS, format_of_name};
#[cfg(feature = "remote")]
use super::in_store::{Place, is_absent};
use super::kind::kind;
use super::label::labels;
use super::natural::{name_key, path_key};
use super::{ForeignFiles, Format, ReadOptions, Source, is_url};
use crate::error::{Error, Result};

/// The sources for `inputs` (files, globs and folders), in the order of `inputs`.
///
/// Files of a glob or folder are in natural order (`part2` before `part10`), component by
/// component. A folder stands for the files in it and its subfolders whose names end like those of
/// a format (`extensions` in `format.rs`), which must be one format, or of `format` if that is given.
/// Globs and folders skip names that start with a dot. An input that exists as a path is never
/// treated as a glob.
///
/// All sources have the format `format`; without one, each has that of its name or content.
///
/// # Errors
/// An input is missing, unreadable, not a regular file, a folder or glob without files, or a folder
/// with files of several formats; or a file is given twice.
pub fn expand(inputs: &[String], format: Option<Format>) -> Result<Vec<Source>> {
    expand_with(inputs, format, None)
}

/// As [`expand`]; `foreign` reads the URLs that are not of a store.
///
/// # Errors
/// As for [`expand`], and those of `foreign`.
pub fn expand_with(
    inputs: &[String],
    format: Option<Format>,
    foreign: Option<&ForeignFiles>,
) -> Result<Vec<Source>> {
    if inputs.is_empty() {
        return Err(Error::Corpus(CorpusError::NoInput));
    }
    let mut files = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let first = files.len();
        expand_input(input, format, foreign, &mut files)?;
        for file in &mut files[first..] {
            file.input = i;
        }
    }
    reject_duplicates(&files)?;
    let labels = labels(files.iter().map(|file| file.path.as_path()))?;
    let source = |(file, label): (Found, String)| {
        let known = format.or(file.format);
        let source = Source {
            label,
            ..file.source(known.unwrap_or(Format::Jsonl))
        };
        Ok(Source {
            format: known.map_or_else(|| format_of(&source), Ok)?,
            ..source
        })
    };
    files.into_iter().zip(labels).map(source).collect()
}

impl ReadOptions {
    /// The sources for `inputs`: files as in [`expand`], or the parts of the plug-in's corpora.
    pub(crate) fn sources(&self, inputs: &[String], format: Option<Format>) -> Result<Vec<Source>> {
        match &self.plugin {
            Some(corpora) => corpora.sources(),
            None => expand(inputs, format),
        }
    }
}

/// A file that an input names.
#[derive(Clone)]
struct Found {
    path: PathBuf,
    bytes: u64,
    /// The format, if it was found by its name in a folder.
    format: Option<Format>,
    /// Index of the input.
    input: usize,
    /// Device and inode of the target, to detect duplicate paths.
    inode: (u64, u64),
    /// What reads it, if it is not packtok.
    files: Option<ForeignFiles>,
}

impl Found {
    /// An object of a store. Different URLs are different objects.
    #[cfg(feature = "remote")]
    fn object(object: packtok_store::Object, files: Option<&ForeignFiles>) -> Self {
        Self {
            inode: (
                u64::MAX,
                xxhash_rust::xxh64::xxh64(object.url.as_bytes(), 0),
            ),
            path: object.url.into(),
            bytes: object.bytes,
            format: None,
            input: 0,
            files: files.cloned(),
        }
    }
}

impl Found {
    /// The source without a label.
    fn source(self, format: Format) -> Source {
        Source {
            path: self.path,
            label: String::new(),
            bytes: self.bytes,
            format,
            input: self.input,
            range: None,
            files: self.files,
        }
    }
}

fn expand_input(
    input: &str,
    format: Option<Format>,
    foreign: Option<&ForeignFiles>,
    files: &mut Vec<Found>,
) -> Result<()> {
    let path = Path::new(input);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let found = in_folder(path, format)?;
            if found.is_empty() {
                return Err(Error::Corpus(CorpusError::EmptyFolder {
                    path: path.into(),
                    format,
                }));
            }
            files.extend(found);
        }
        Ok(metadata) => files.push(regular_file(path.into(), &metadata, None)?),
        Err(_) if is_url(path) => files.extend(in_store(input, format, foreign)?),
        Err(_) if input.contains(['*', '?', '[']) => match input.strip_suffix("/**") {
            // In the glob library this matches the subfolders, but not the files in the folder.
            Some(folder) => expand_input(folder, format, foreign, files)?,
            None => files.extend(matching(input, format)?),
        },
        Err(cause) => return Err(Error::io(path, cause)),
    }
    Ok(())
}

/// The objects for a URL: a single object, the matches of a pattern, or the corpus files of a
/// folder.
#[cfg(feature = "remote")]
fn in_store(
    url: &str,
    format: Option<Format>,
    foreign: Option<&ForeignFiles>,
) -> Result<Vec<Found>> {
    let place = Place::of(url, foreign)?;
    let files = place.files();
    let objects = match place.object() {
        Ok(object) => return Ok(vec![Found::object(object, files)]),
        Err(error) if is_absent(&error) && place.is_pattern() => place.matching()?,
        Err(error) if is_absent(&error) => {
            let below = place.list()?.into_iter().filter_map(|object| {
                let found = format_below(&object.url, url)?;
                format.is_none_or(|format| format == found).then(|| Found {
                    format: Some(found),
                    ..Found::object(object, files)
                })
            });
            let below = of_one_format(Path::new(url), below.collect())?;
            return match below.is_empty() {
                true => Err(error.into()),
                false => Ok(sorted(below)),
            };
        }
        Err(error) => return Err(error.into()),
    };
    if objects.is_empty() {
        return Err(Error::Corpus(CorpusError::NothingMatches {
            pattern: url.to_owned(),
        }));
    }
    let found = objects.into_iter();
    Ok(sorted(
        found.map(|object| Found::object(object, files)).collect(),
    ))
}

/// Files in natural order.
#[cfg(feature = "remote")]
fn sorted(mut files: Vec<Found>) -> Vec<Found> {
    files.sort_by_cached_key(|file| path_key(&file.path));
    files
}

#[cfg(not(feature = "remote"))]
fn in_store(_: &str, _: Option<Format>, _: Option<&ForeignFiles>) -> Result<Vec<Found>> {
    Err(Error::Corpus(CorpusError::NoStores))
}

/// The format of an object, if it is one of the files that the folder may stand for.
#[cfg(feature = "remote")]
fn format_below(url: &str, folder: &str) -> Option<Format> {
    let name = url.strip_prefix(folder).unwrap_or(url);
    let is_hidden = name.split('/').any(|part| part.starts_with('.'));
    format_of_name(name.as_bytes()).filter(|_| !is_hidden)
}

/// The `files` of a folder, which must have one format.
///
/// Plain texts are taken for notes on the corpus, unless there are more of them than of its files.
fn of_one_format(folder: &Path, mut files: Vec<Found>) -> Result<Vec<Found>> {
    let is_text = |file: &Found| file.format == Some(Format::Text);
    let num_texts = files.iter().filter(|file| is_text(file)).count();
    if 2 * num_texts <= files.len() {
        files.retain(|file| !is_text(file));
    }
    let count = |format: Format| {
        let of_format = files.iter().filter(|file| file.format == Some(format));
        (format, of_format.count())
    };
    let mut counts: Vec<_> = FORMATS.into_iter().map(count).collect();
    counts.retain(|(_, count)| *count > 0);
    if counts.len() > 1 {
        let path = folder.to_owned();
        return Err(Error::Corpus(CorpusError::MixedFolder { path, counts }));
    }
    if let (Some(first), [(format, _)]) = (files.first(), &counts[..]) {
        reject_json_lines(&first.clone().source(*format), *format)?;
    }
    Ok(files)
}

/// The matches of a glob; the files of a matched folder count as matches.
fn matching(pattern: &str, format: Option<Format>) -> Result<Vec<Found>> {
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
            found.extend(in_folder(&path, format)?);
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
fn in_folder(folder: &Path, format: Option<Format>) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    walk(folder, format, &mut Vec::new(), &mut found)?;
    of_one_format(folder, found)
}

/// Collects the files below `folder` in order. `ancestors` contains the folders above it with links
/// resolved, to avoid following a link cycle.
fn walk(
    folder: &Path,
    format: Option<Format>,
    ancestors: &mut Vec<PathBuf>,
    found: &mut Vec<Found>,
) -> Result<()> {
    let io = |cause| Error::io(folder, cause);
    let canonical = folder.canonicalize().map_err(io)?;
    if ancestors.contains(&canonical) {
        return Ok(());
    }
    ancestors.push(canonical);
    let opened = File::open(folder).map_err(io)?;
    let entries = fs::read_dir(folder).map_err(io)?;
    let entries = entries.filter_map(|entry| Entry::of(entry, format).map_err(io).transpose());
    let mut entries = entries.collect::<Result<Vec<_>>>()?;
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    for entry in entries {
        let path = entry.entry.path();
        match entry.metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, format, ancestors, found)?,
            Ok(metadata) if entry.format.is_some() => {
                let name = entry.entry.file_name();
                found.push(Found {
                    format: entry.format,
                    ..regular_file(path, &metadata, Some((&opened, &name)))?
                });
            }
            Err(cause) if entry.format.is_some() => return Err(Error::io(&path, cause)),
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
    /// The format that its name stands for.
    format: Option<Format>,
    key: Vec<u8>,
}

impl Entry {
    fn of(entry: io::Result<DirEntry>, wanted: Option<Format>) -> io::Result<Option<Self>> {
        let entry = entry?;
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let format = format_of_name(bytes);
        let format = format.filter(|format| wanted.is_none_or(|wanted| wanted == *format));
        // Available from the listing on most file systems.
        let file_type = entry.file_type()?;
        if bytes.starts_with(b".") || (file_type.is_file() && format.is_none()) {
            return Ok(None);
        }
        Ok(Some(Self {
            entry,
            file_type,
            format,
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
            format: None,
            input: 0,
            inode: (metadata.dev(), metadata.ino()),
            files: None,
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
