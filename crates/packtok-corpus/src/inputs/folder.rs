//! Expands a folder into the data files of one format and one split.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry, File, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::Format;
use crate::detect::format::FORMATS;
use crate::detect::reject_json_lines;
use crate::error::{Error, Result};
use crate::inputs::file_name::{DETAILS, FileName, NotData};
use crate::inputs::ignored::{Ignored, IgnoredReason, Unread};
use crate::inputs::input_file::InputFile;
use crate::inputs::natural::name_key;
#[cfg(feature = "remote")]
use crate::inputs::natural::path_key;
use crate::inputs::selection::Selection;
use crate::inputs::split::{all_splits, splits};

/// Name of the plan file in a folder of shards.
pub const PLAN_OF_SHARDS: &str = "plan.jsonl";
/// Name of the tokenizer file in a folder of shards.
pub const TOKENIZER_OF_SHARDS: &str = "tokenizer.json";

/// The files below a folder, classified by their names.
pub(crate) struct Folder<'a> {
    path: &'a Path,
    selection: &'a Selection,
    files: Vec<InputFile>,
    ignored: Vec<Ignored>,
    /// Data that packtok does not read, and the reasons.
    unread: Vec<(PathBuf, Unread)>,
    /// A token file of the folder, if there is any.
    tokens: Option<PathBuf>,
}

impl<'a> Folder<'a> {
    fn new(path: &'a Path, selection: &'a Selection) -> Self {
        Self {
            path,
            selection,
            files: Vec::new(),
            ignored: Vec::new(),
            unread: Vec::new(),
            tokens: None,
        }
    }

    /// The files in a folder and its subfolders, in natural order.
    ///
    /// # Errors
    /// The folder cannot be listed, or a file cannot be read.
    pub(crate) fn read(path: &'a Path, selection: &'a Selection) -> Result<Self> {
        let mut folder = Self::new(path, selection);
        folder.walk(path, &mut Vec::new())?;
        Ok(folder)
    }

    /// The objects below a URL, in natural order.
    #[cfg(feature = "remote")]
    pub(crate) fn of_objects(
        url: &'a Path,
        selection: &'a Selection,
        objects: Vec<InputFile>,
    ) -> Self {
        let mut folder = Self::new(url, selection);
        for object in objects {
            folder.add_object(object);
        }
        folder.files.sort_by_cached_key(|file| path_key(&file.path));
        folder.ignored.sort_by(|a, b| a.path.cmp(&b.path));
        folder.unread.sort_by(|a, b| a.0.cmp(&b.0));
        folder
    }

    #[cfg(feature = "remote")]
    fn add_object(&mut self, object: InputFile) {
        let path = object.path.clone();
        let below = path.strip_prefix(self.path).unwrap_or(&path);
        let folders = || below.ancestors().skip(1);
        let is_hidden = |path: &Path| path.file_name().is_some_and(starts_with_dot);
        if folders().any(is_hidden) {
            return;
        }
        let mut paths = below.ancestors().map(|ancestor| self.path.join(ancestor));
        if paths.any(|path| path != self.path && self.selection.ignores(&path)) {
            self.ignored
                .push(Ignored::new(path, IgnoredReason::Pattern));
            return;
        }
        let name = below.file_name().unwrap_or_default().as_encoded_bytes();
        if let Some(format) = self.judge(&path, FileName::of(name)) {
            self.files.push(InputFile {
                format: Some(format),
                ..object
            });
        }
    }

    /// As [`Folder::chosen`], for an input, which must have at least one file.
    ///
    /// # Errors
    /// As [`Folder::chosen`]; or there is no file to read.
    pub(crate) fn required(self) -> Result<(Vec<InputFile>, Vec<Ignored>)> {
        if self.files.is_empty() && self.unread.is_empty() {
            Err(self.without_files())
        } else {
            self.chosen()
        }
    }

    /// The files that the folder stands for, and the ignored files.
    ///
    /// # Errors
    /// A file looks like data and cannot be read; the files have several formats; some files have
    /// no split; or no file has the requested split.
    pub(crate) fn chosen(mut self) -> Result<(Vec<InputFile>, Vec<Ignored>)> {
        if !self.unread.is_empty() {
            let files = self.unread.iter();
            return Err(Error::UnreadData {
                path: self.path.into(),
                files: files.map(|(path, why)| (self.below(path), *why)).collect(),
            });
        }
        self.retain_one_format()?;
        self.retain_split()?;
        Ok((self.files, self.ignored))
    }

    /// The error for a folder without files to read.
    fn without_files(&self) -> Error {
        let path = self.path.to_owned();
        let is_metadata = |ignored: &Ignored| ignored.reason == IgnoredReason::Metadata;
        match &self.tokens {
            Some(file) if self.ignored.iter().all(is_metadata) => Error::FolderOfTokens {
                file: self.below(file),
                path,
            },
            _ => Error::EmptyFolder {
                format: self.selection.format,
                ignored: (self.ignored.iter())
                    .map(|ignored| (self.below(&ignored.path), ignored.reason.clone()))
                    .collect(),
                path,
            },
        }
    }

    fn below(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.path).unwrap_or(path).to_owned()
    }

    /// Records the class of a file; returns the format if the file is to be read.
    fn judge(&mut self, path: &Path, name: FileName) -> Option<Format> {
        let wanted = self.selection.format;
        let is_other = |format| wanted.is_some_and(|wanted| wanted != format);
        let reason = match name {
            FileName::Data(format) if is_other(format) => IgnoredReason::Format,
            FileName::Data(format) => return Some(format),
            FileName::Unread(_, Some(format)) if is_other(format) => IgnoredReason::Format,
            FileName::Unread(Unread::Format, None) if wanted.is_some() => IgnoredReason::Format,
            FileName::Unread(why, _) => {
                self.unread.push((path.to_owned(), why));
                return None;
            }
            FileName::Ignored(reason) => reason.into(),
            FileName::Tokens => {
                self.tokens.get_or_insert_with(|| path.to_owned());
                return None;
            }
            FileName::Other => return None,
        };
        self.ignored.push(Ignored::new(path, reason));
        None
    }

    /// Collects the files below `folder` in order. `ancestors` contains the parent folders with
    /// links resolved, so that a cycle of links is not followed.
    fn walk(&mut self, folder: &Path, ancestors: &mut Vec<PathBuf>) -> Result<()> {
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
        if is_of_shards(&entries) {
            let reason = IgnoredReason::Metadata;
            self.ignored.push(Ignored::new(folder, reason));
            entries.clear();
        }
        let described = described_names(&entries);
        for mut entry in entries {
            if described.contains(&entry.entry.file_name()) {
                entry.name = FileName::Ignored(NotData::Metadata);
            }
            self.add_entry(&entry, &opened, ancestors)?;
        }
        ancestors.pop();
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: &Entry,
        folder: &File,
        ancestors: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let path = entry.entry.path();
        if self.selection.ignores(&path) {
            self.ignored
                .push(Ignored::new(path, IgnoredReason::Pattern));
            return Ok(());
        }
        let metadata = entry.metadata(&path);
        if metadata.as_ref().is_ok_and(Metadata::is_dir) {
            return if starts_with_dot(&entry.entry.file_name()) {
                Ok(())
            } else {
                self.walk(&path, ancestors)
            };
        }
        let Some(format) = self.judge(&path, entry.name) else {
            // The entry may be a dangling link.
            return Ok(());
        };
        let metadata = metadata.map_err(|cause| Error::io(&path, cause))?;
        let name = entry.entry.file_name();
        self.files.push(InputFile {
            format: Some(format),
            ..InputFile::regular_file(path, &metadata, Some((folder, &name)))?
        });
        Ok(())
    }

    /// Keeps the files of one format.
    ///
    /// Plain texts are treated as notes on the corpus, unless they outnumber its other files.
    fn retain_one_format(&mut self) -> Result<()> {
        let is_text = |file: &InputFile| file.format == Some(Format::Text);
        let num_texts = self.files.iter().filter(|file| is_text(file)).count();
        if 2 * num_texts <= self.files.len() {
            let notes = self.files.extract_if(.., |file| is_text(file));
            self.ignored
                .extend(notes.map(|file| Ignored::new(file.path, IgnoredReason::Note)));
        }
        let count = |format: Format| {
            let of_format = self.files.iter();
            let of_format = of_format.filter(|file| file.format == Some(format));
            (format, of_format.count())
        };
        let mut counts: Vec<_> = FORMATS.into_iter().map(count).collect();
        counts.retain(|(_, count)| *count > 0);
        if counts.len() > 1 {
            let path = self.path.to_owned();
            return Err(Error::MixedFolder { path, counts });
        }
        if let (Some(first), [(format, _)]) = (self.files.first(), &counts[..]) {
            reject_json_lines(&first.clone().source(*format), *format)?;
        }
        Ok(())
    }

    /// Keeps the files of the requested split.
    fn retain_split(&mut self) -> Result<()> {
        let Some(wanted) = self.selection.split.as_deref() else {
            return Ok(());
        };
        if self.files.is_empty() {
            return Ok(());
        }
        let names = self.files.iter().map(|file| self.below(&file.path));
        let names: Vec<_> = names.map(|name| name.display().to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let of_files = splits(&names);
        self.check_splits(wanted, &names, &of_files)?;
        let files = std::mem::take(&mut self.files);
        for (file, splits) in files.into_iter().zip(of_files) {
            if splits.contains(&wanted) {
                self.files.push(file);
            } else {
                let reason = IgnoredReason::Split(splits.join(", "));
                self.ignored.push(Ignored::new(file.path, reason));
            }
        }
        Ok(())
    }

    /// Checks that every file has a split and that the requested split exists.
    fn check_splits(&self, wanted: &str, names: &[&str], of_files: &[Vec<&str>]) -> Result<()> {
        let path = self.path.to_owned();
        let known = all_splits(of_files);
        let unsplit = names.iter().zip(of_files);
        let unsplit = unsplit.filter(|(_, splits)| splits.is_empty());
        let files: Vec<_> = unsplit.map(|(name, _)| PathBuf::from(name)).collect();
        if !files.is_empty() {
            return Err(Error::FilesOfNoSplit { path, files, known });
        }
        if known.iter().any(|split| split == wanted) {
            Ok(())
        } else {
            Err(Error::NoSplit {
                path,
                split: wanted.to_owned(),
                known,
            })
        }
    }
}

/// Whether the folder is a folder of shards written by packtok.
fn is_of_shards(entries: &[Entry]) -> bool {
    let has = |name: &str| entries.iter().any(|entry| entry.entry.file_name() == name);
    has(PLAN_OF_SHARDS) && has(TOKENIZER_OF_SHARDS)
}

/// The names of metadata files, recognized by the file of details next to each.
fn described_names(entries: &[Entry]) -> HashSet<OsString> {
    let stem = |entry: &Entry| {
        let name = entry.entry.file_name().into_string().ok()?;
        name.strip_suffix(DETAILS)
            .map(|stem| format!("{stem}.json").into())
    };
    entries.iter().filter_map(stem).collect()
}

fn starts_with_dot(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// An entry of a folder that may be a corpus file or a subfolder.
struct Entry {
    entry: DirEntry,
    file_type: FileType,
    name: FileName,
    key: Vec<u8>,
}

impl Entry {
    fn of(entry: io::Result<DirEntry>) -> io::Result<Option<Self>> {
        let entry = entry?;
        let file_name = entry.file_name();
        let name = FileName::of(file_name.as_encoded_bytes());
        // Most file systems return the type with the listing, so this needs no system call.
        let file_type = entry.file_type()?;
        if name == FileName::Other && file_type.is_file() {
            return Ok(None);
        }
        Ok(Some(Self {
            entry,
            file_type,
            name,
            key: name_key(&file_name),
        }))
    }

    /// Metadata of the entry's target, looked up relative to the open folder if possible.
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if self.file_type.is_symlink() {
            fs::metadata(path)
        } else {
            self.entry.metadata()
        }
    }
}
