//! Rewrites the folders of CEPE's scripts, whose columns are pickles, as folders without pickles.
//!
//! Each folder is read twice: first to determine the type and the shape of each column, then to
//! write the columns. The output is filled under a temporary name and renamed when all folders are
//! written.

mod imported_columns;
pub(crate) mod pickled;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use packtok_dataset::files::mds_folder::MdsFolder;
use packtok_formats::mds::{Columns, Dtype, INDEX_FILE, Options, Writer};
use packtok_jobs::Monitor;
use packtok_pbin::file_system::{Locked, try_lock};
use serde::Serialize;

pub use pickled::{Array, PickleFault, Pickled, parse};

use crate::error::{Error, Result};
use crate::import::imported_columns::{ColumnValue, ImportedColumns, SampleLocation};
use crate::shuffle::meter::Meter;

/// Options for rewriting folders.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The type of token ids; `None` for the narrower of uint16 and uint32 that fits all ids of a
    /// folder.
    pub ids: Option<Dtype>,
    /// Options for writing the folders.
    pub mds: Options,
}

/// A folder that was rewritten.
#[derive(Debug, Clone, Serialize)]
pub struct ImportedFolder {
    /// Path of the folder below the output.
    pub folder: PathBuf,
    /// Number of samples.
    pub samples: u64,
    /// The columns with their encodings.
    pub columns: Vec<(String, String)>,
    /// Bytes of the shard files that were read.
    pub bytes_before: u64,
    /// Bytes of the shard files that were written.
    pub bytes_after: u64,
}

/// Rewrites the MDS folder `old`, or all MDS folders below it, as `new`.
///
/// # Errors
/// There is no MDS folder; `new` exists; a column contains values other than numbers, texts and
/// bytes; a file is damaged or cannot be written.
pub fn import(
    old: &Path,
    new: &Path,
    options: &ImportOptions,
    monitor: &mut Monitor<'_>,
) -> Result<Vec<ImportedFolder>> {
    let mut folders = Vec::new();
    find_folders(old, Path::new(""), &mut folders)?;
    if folders.is_empty() {
        return Err(Error::NoMdsFolders { path: old.into() });
    }
    if new.symlink_metadata().is_ok() {
        return Err(Error::ImportExists { path: new.into() });
    }
    let work = WorkFolder::create(old, new)?;
    let opened = folders.iter().map(|folder| {
        // Uncompressed shards are read without a check of their hashes: the scripts write none. A
        // compressed shard is decompressed into the cache, where its hashes are checked if the index
        // has any.
        MdsFolder::open_pickled(&below(old, folder)).map_err(Error::from)
    });
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let total = opened.iter().map(bytes_of).sum::<u64>();
    let mut meter = Meter::new(monitor, 2 * total);
    let mut reports = Vec::new();
    for (folder, source) in folders.iter().zip(&opened) {
        reports.push(rewrite(
            source,
            folder,
            &below(&work.path, folder),
            options,
            &mut meter,
        )?);
    }
    work.publish(new)?;
    Ok(reports)
}

/// `folder` joined to `base`. An empty `folder` adds no slash.
fn below(base: &Path, folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        base.into()
    } else {
        base.join(folder)
    }
}

fn bytes_of(folder: &MdsFolder) -> u64 {
    folder
        .index()
        .shards()
        .iter()
        .map(|entry| entry.stored().bytes)
        .sum()
}

/// Adds the paths of folders with an index, in the order of their names, below `old`.
fn find_folders(old: &Path, path: &Path, folders: &mut Vec<PathBuf>) -> Result<()> {
    let folder = below(old, path);
    if folder.join(INDEX_FILE).is_file() {
        folders.push(path.into());
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
        let entry = entry.map_err(Error::io(&folder))?;
        // Links are not followed, because they may form a cycle.
        if entry.file_type().map_err(Error::io(&folder))?.is_dir() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    for name in names {
        find_folders(old, &path.join(name), folders)?;
    }
    Ok(())
}

fn rewrite(
    source: &MdsFolder,
    folder: &Path,
    to: &Path,
    options: &ImportOptions,
    meter: &mut Meter<'_, '_>,
) -> Result<ImportedFolder> {
    let num_samples = source.index().num_samples();
    let bytes = bytes_of(source);
    let mut imported = ImportedColumns::default();
    for_each_sample(source, bytes, meter, |location, values| {
        imported.add(location, values)
    })?;
    let columns = imported.columns(source.folder(), options.ids)?;
    let named = columns
        .iter()
        .map(|(name, encoding)| (&**name, &**encoding));
    let written = Columns::new(named)?;
    let mut writer = Writer::create(to, written, options.mds.clone())?;
    for_each_sample(source, bytes, meter, |location, values| {
        imported.write(location, values, options.ids, &mut writer)
    })?;
    let finished = writer.finish()?;
    finished.publish(None)?;
    Ok(ImportedFolder {
        folder: folder.into(),
        samples: num_samples,
        columns,
        bytes_before: bytes,
        bytes_after: finished.bytes(),
    })
}

/// Passes every sample to `each`, as names, encodings and values.
fn for_each_sample(
    source: &MdsFolder,
    bytes: u64,
    meter: &mut Meter<'_, '_>,
    mut each: impl FnMut(SampleLocation<'_>, &[ColumnValue<'_>]) -> Result<()>,
) -> Result<()> {
    let index = source.index();
    let mut sample = 0;
    for (number, entry) in index.shards().iter().enumerate() {
        let shard = source.open_alone(number)?;
        for i in 0..shard.num_samples() {
            let values = shard.sample(i)?.values()?;
            let columns = index.columns(number).all().iter();
            let named: Vec<_> = columns.zip(values).collect();
            each(
                SampleLocation {
                    folder: source.folder(),
                    sample,
                },
                &named,
            )?;
            sample += 1;
            if sample % 64 == 0 {
                meter.add(0, 64)?;
            }
        }
        meter.add(entry.stored().bytes.min(bytes), 0)?;
    }
    Ok(())
}

/// The output under a temporary name, locked while this value exists.
struct WorkFolder {
    path: PathBuf,
    is_published: bool,
    _lock: File,
}

impl WorkFolder {
    fn create(old: &Path, new: &Path) -> Result<Self> {
        let name = new
            .file_name()
            .ok_or_else(|| Error::ImportExists { path: new.into() })?;
        let parent = new.parent().filter(|folder| !folder.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let inside = fs::canonicalize(parent).map_err(Error::io(parent))?;
        let outside = fs::canonicalize(old).map_err(Error::io(old))?;
        if inside.starts_with(outside) {
            return Err(Error::OutputWithinInput { path: new.into() });
        }
        let path = parent.join(format!(".{}.import.tmp", name.display()));
        fs::create_dir_all(&path).map_err(Error::io(&path))?;
        let lock = File::open(&path).map_err(Error::io(&path))?;
        if matches!(try_lock(&lock), Ok(Locked::Held)) {
            return Err(Error::OutputBusy { path: new.into() });
        }
        // Removes the files of a killed process.
        for entry in fs::read_dir(&path).map_err(Error::io(&path))? {
            let entry = entry.map_err(Error::io(&path))?.path();
            let removed = if entry.is_dir() {
                fs::remove_dir_all(&entry)
            } else {
                fs::remove_file(&entry)
            };
            removed.map_err(Error::io(&entry))?;
        }
        Ok(Self {
            path,
            is_published: false,
            _lock: lock,
        })
    }

    fn publish(mut self, new: &Path) -> Result<()> {
        // Fails if another process has made a folder with content meanwhile.
        fs::rename(&self.path, new).map_err(Error::io(new))?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
