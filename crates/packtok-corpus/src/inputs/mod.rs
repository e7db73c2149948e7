//! Expands inputs (files, folders, globs, lists, URLs) into the files of a corpus.

pub(crate) mod corpus_file;
pub(crate) mod file_name;
pub(crate) mod folder;
pub(crate) mod foreign;
pub(crate) mod ignored;
#[cfg(feature = "remote")]
mod in_store;
mod input_file;
pub(crate) mod kind;
pub(crate) mod label;
pub(crate) mod list;
pub(crate) mod natural;
pub(crate) mod selection;
mod split;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use glob::MatchOptions;

use crate::detect::format_of;
use crate::error::{Error, Result};
use crate::inputs::folder::Folder;
use crate::inputs::ignored::{Ignored, IgnoredReason};
#[cfg(feature = "remote")]
use crate::inputs::in_store::{Listing, is_absent};
use crate::inputs::input_file::InputFile;
use crate::inputs::label::labels;
use crate::inputs::list::{Listed, list_of, read_list};
use crate::inputs::natural::path_key;
use crate::inputs::selection::Selection;
use crate::{ForeignFiles, Format, ReadOptions, Source, is_url};

/// The files of inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The files to read, in order.
    pub sources: Vec<Source>,
    /// The files that are not read, with the reasons.
    pub ignored: Vec<Ignored>,
}

/// The files of `inputs` (files, globs, folders and lists), in the order of `inputs`.
///
/// `@LIST` stands for the files that the lines of a file name (`list.rs`).
///
/// Files of a glob or folder are in natural order (`part2` before `part10`), component by
/// component. A folder stands for the files in it and its subfolders that have an extension of a
/// format (`extensions` in `format.rs`). Without a format in `selection`, all of them must have
/// the same format. Globs and folders skip names that start with a dot. An input that exists as a
/// path is never treated as a glob.
///
/// All sources have the format of `selection`. Without one, each source has the format that its
/// name or content implies.
///
/// # Errors
/// An input is missing, unreadable, or not a regular file; a folder or glob has no files; a folder
/// has files of several formats, has files that look like data and cannot be read, or lacks the
/// requested split; or a file is given twice.
pub fn expand(inputs: &[String], selection: &Selection) -> Result<Expansion> {
    expand_with(inputs, selection, None)
}

/// As [`expand`]; `foreign` reads the URLs that no store supports.
///
/// # Errors
/// As for [`expand`], and the errors of `foreign`.
pub fn expand_with(
    inputs: &[String],
    selection: &Selection,
    foreign: Option<&ForeignFiles>,
) -> Result<Expansion> {
    if inputs.is_empty() {
        return Err(Error::NoInput);
    }
    let mut files = Files {
        selection,
        foreign,
        files: Vec::new(),
        ignored: Vec::new(),
    };
    for (i, input) in inputs.iter().enumerate() {
        let first = files.files.len();
        files.add_input(input)?;
        for file in &mut files.files[first..] {
            file.input = i;
        }
    }
    let Files { files, ignored, .. } = files;
    if files.is_empty() {
        return Err(Error::AllIgnored);
    }
    reject_duplicates(&files)?;
    let labels = labels(files.iter().map(|file| file.path.as_path()))?;
    let source = |(file, label): (InputFile, String)| {
        let known = selection.format.or(file.format);
        let source = Source {
            label,
            ..file.source(known.unwrap_or(Format::Jsonl))
        };
        Ok(Source {
            format: known.map_or_else(|| format_of(&source), Ok)?,
            ..source
        })
    };
    let sources = files.into_iter().zip(labels).map(source);
    Ok(Expansion {
        sources: sources.collect::<Result<_>>()?,
        ignored,
    })
}

impl ReadOptions {
    /// The files of `inputs` as in [`expand`], or the parts of the plug-in's corpora.
    pub fn expand(&self, inputs: &[String], selection: &Selection) -> Result<Expansion> {
        match &self.plugin {
            Some(corpora) => Ok(Expansion {
                sources: corpora.sources()?,
                ignored: Vec::new(),
            }),
            None => expand(inputs, selection),
        }
    }
}

/// The files of the inputs so far.
struct Files<'a> {
    selection: &'a Selection,
    #[cfg_attr(
        not(feature = "remote"),
        expect(dead_code, reason = "only URLs need it")
    )]
    foreign: Option<&'a ForeignFiles>,
    files: Vec<InputFile>,
    ignored: Vec<Ignored>,
}

impl Files<'_> {
    fn add_input(&mut self, input: &str) -> Result<()> {
        if let Some(list) = list_of(input) {
            let listed = read_list(list, self.selection.root.as_deref())?;
            return listed
                .iter()
                .try_for_each(|file| self.add_listed(list, file));
        }
        let path = Path::new(input);
        if self.selection.ignores(path) {
            self.ignore(path);
            return Ok(());
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let folder = Folder::read(path, self.selection)?;
                self.add_folder(folder)
            }
            Ok(metadata) => {
                let file = InputFile::regular_file(path.into(), &metadata, None)?;
                self.files.push(file);
                Ok(())
            }
            Err(_) if is_url(path) => self.add_url(input),
            Err(_) if input.contains(['*', '?', '[']) => match input.strip_suffix("/**") {
                // In the glob library, `FOLDER/**` matches the subfolders but not the files
                // directly in FOLDER.
                Some(folder) => self.add_input(folder),
                None => self.add_matches(input),
            },
            Err(cause) => Err(Error::io(path, cause)),
        }
    }

    /// Adds the file of a line of a list.
    fn add_listed(&mut self, list: &Path, listed: &Listed) -> Result<()> {
        let path = &listed.path;
        if self.selection.ignores(path) {
            self.ignore(path);
            return Ok(());
        }
        let file = match fs::metadata(path) {
            Ok(metadata) => InputFile::regular_file(path.clone(), &metadata, None),
            Err(_) if is_url(path) => return self.add_url(&path.to_string_lossy()),
            Err(source) => {
                return Err(Error::Listed {
                    list: list.into(),
                    line: listed.line,
                    path: path.clone(),
                    source,
                });
            }
        };
        self.files.push(file?);
        Ok(())
    }

    fn ignore(&mut self, path: &Path) {
        let reason = IgnoredReason::Pattern;
        self.ignored.push(Ignored::new(path, reason));
    }

    /// Adds the files of a folder, which must contain at least one.
    fn add_folder(&mut self, folder: Folder<'_>) -> Result<()> {
        let (files, ignored) = folder.required()?;
        self.files.extend(files);
        self.ignored.extend(ignored);
        Ok(())
    }

    /// Adds the objects for a URL: a single object, the matches of a pattern, or the corpus files of
    /// a folder.
    #[cfg(feature = "remote")]
    fn add_url(&mut self, url: &str) -> Result<()> {
        let listing = Listing::of(url, self.foreign)?;
        let foreign = listing.foreign();
        let files = |objects: Vec<packtok_store::Object>| {
            let objects = objects.into_iter();
            objects
                .map(|object| InputFile::object(object, foreign))
                .collect()
        };
        match listing.object() {
            Ok(object) => {
                self.files.push(InputFile::object(object, foreign));
                Ok(())
            }
            Err(error) if is_absent(&error) && listing.is_pattern() => {
                self.add_matching(url, files(listing.matching()?))
            }
            Err(error) if is_absent(&error) => {
                let below = files(listing.list()?);
                if below.is_empty() {
                    return Err(error.into());
                }
                let folder = Folder::of_objects(Path::new(url), self.selection, below);
                self.add_folder(folder)
            }
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(feature = "remote"))]
    fn add_url(&mut self, _: &str) -> Result<()> {
        Err(Error::NoStores)
    }

    /// Adds the matches of a glob; the files of a matched folder count as matches.
    fn add_matches(&mut self, pattern: &str) -> Result<()> {
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        let paths = glob::glob_with(pattern, options).map_err(|cause| Error::BadGlob {
            pattern: pattern.to_owned(),
            source: cause,
        })?;
        let mut files = Vec::new();
        for path in paths {
            let path = path
                .map_err(|cause| Error::io(cause.path(), io::Error::from(cause.error().kind())))?;
            let metadata = fs::metadata(&path).map_err(|cause| Error::io(&path, cause))?;
            if !metadata.is_dir() {
                files.push(InputFile::regular_file(path, &metadata, None)?);
            } else if self.selection.ignores(&path) {
                self.ignore(&path);
            } else {
                let (below, ignored) = Folder::read(&path, self.selection)?.chosen()?;
                files.extend(below);
                self.ignored.extend(ignored);
            }
        }
        self.add_matching(pattern, files)
    }

    /// Adds the files or objects that match a pattern, in natural order.
    fn add_matching(&mut self, pattern: &str, mut files: Vec<InputFile>) -> Result<()> {
        if files.is_empty() {
            return Err(Error::NothingMatches {
                pattern: pattern.to_owned(),
            });
        }
        files.sort_by_cached_key(|file| path_key(&file.path));
        // A pattern may match both a folder and the files in it.
        files.dedup_by(|previous, next| previous.path == next.path);
        let (ignored, files): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|file| self.selection.ignores(&file.path));
        ignored.iter().for_each(|file| self.ignore(&file.path));
        self.files.extend(files);
        Ok(())
    }
}

/// Rejects two paths to the same file. Two hard links to a file are allowed.
fn reject_duplicates(files: &[InputFile]) -> Result<()> {
    let mut inodes: Vec<_> = files.iter().map(|file| file.inode).collect();
    inodes.sort_unstable();
    let is_repeated = |pair: &[_]| (pair[0] == pair[1]).then_some(pair[0]);
    let repeated: HashSet<_> = inodes.windows(2).filter_map(is_repeated).collect();
    let mut seen = HashMap::new();
    for file in files.iter().filter(|file| repeated.contains(&file.inode)) {
        let path = &file.path;
        let canonical = if is_url(path) {
            path.clone()
        } else {
            path.canonicalize()
                .map_err(|cause| Error::io(path, cause))?
        };
        if let Some(first) = seen.insert(canonical, path) {
            return Err(Error::DuplicateInput {
                path: path.clone(),
                first: first.clone(),
            });
        }
    }
    Ok(())
}
