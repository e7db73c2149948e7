//! The files of `Blocks`: opened, described in their pickled form, and listed in manifests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use packtok_dataset::Error as DatasetError;
use packtok_dataset::Result;
use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::{self, Entry};
use packtok_formats::litdata::IndexedFolder;
use packtok_formats::{OpenOptions, TokenFormat, arrow_rows, dolma, mds};
use packtok_pack::pbin::{Replace, TokenWidth};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::boundary::error::dataset_error;
use crate::boundary::monitor::watched_planning;
use crate::boundary::token_formats::{ReadAs, format_of, options_of};

/// The names of the token files of a folder and the name of their format, if an index in the folder lists
/// them; otherwise None.
#[pyfunction]
pub(crate) fn indexed_files(folder: PathBuf) -> PyResult<Option<(&'static str, Vec<String>)>> {
    let named = |format: TokenFormat, names| Some((format.name(), names));
    let error = |error: packtok_formats::Error| dataset_error(error.into());
    // The larger indices first: they are of the same name.
    if let Some(names) = mds::shard_names(&folder).map_err(error)? {
        return Ok(named(TokenFormat::Mds, names));
    }
    if let Some(index) = IndexedFolder::open(&folder).map_err(error)? {
        return Ok(named(TokenFormat::Litdata, index.into_names()));
    }
    let names = arrow_rows::listed_names(&folder).map_err(error)?;
    Ok(names.and_then(|names| named(TokenFormat::Arrow, names)))
}

/// The name of the loss mask of a file of OLMo's tokens whose name without its ending is `prefix`.
#[pyfunction]
pub(crate) fn loss_mask_path(prefix: PathBuf) -> PathBuf {
    dolma::loss_mask_path(&prefix)
}

/// The files: one of the first three fields, and the recorded fingerprint of a manifest.
pub(crate) struct Sources {
    pub(crate) paths: Option<Vec<PathBuf>>,
    pub(crate) manifest: Option<PathBuf>,
    pub(crate) entries: Option<Vec<EntryTuple>>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) read_as: Option<ReadAs>,
}

/// An [`Entry`] in its pickled form; the last item is the name of the format.
pub(crate) type EntryTuple = (
    OsString,
    u64,
    u64,
    u64,
    u64,
    Option<u32>,
    Option<u32>,
    String,
);

impl Sources {
    /// Opens the files; also returns the manifest that lists them.
    pub(crate) fn open(self, verify: bool) -> PyResult<(Files, Option<PathBuf>)> {
        let options = options_of(&self.read_as.unwrap_or_default())?;
        let files = match (self.paths, &self.manifest, self.entries) {
            (Some(paths), None, None) => Files::open_with(&paths, &options, verify),
            (None, Some(path), None) => listed(path, self.fingerprint.as_deref(), &options, verify),
            (None, None, Some(entries)) => {
                let entries = entries.into_iter().map(entry_of).collect::<PyResult<_>>()?;
                Files::listed(entries, &options, verify)
            }
            _ => {
                return Err(PyTypeError::new_err(
                    "give either paths or a manifest, not both",
                ));
            }
        };
        Ok((files.map_err(dataset_error)?, self.manifest))
    }

    /// Adds the arguments that recreate `files`, listed in `manifest`.
    pub(crate) fn add_arguments(
        files: &Files,
        manifest: Option<&Path>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        match manifest {
            Some(path) => {
                options.set_item("manifest", path.as_os_str())?;
                options.set_item("fingerprint", packtok_jobs::hex(&files.fingerprint()))
            }
            None => {
                let entries: Vec<EntryTuple> = files.entries().map(tuple_of).collect();
                options.set_item("entries", entries)
            }
        }
    }
}

/// The files of a manifest, which must match `fingerprint` if it is set.
fn listed(
    path: &Path,
    fingerprint: Option<&str>,
    options: &OpenOptions,
    verify: bool,
) -> Result<Files> {
    let entries = manifest::read_manifest(path)?;
    if let Some(expected) = fingerprint {
        let current = packtok_jobs::hex(&manifest::fingerprint(&entries));
        if current != expected {
            return Err(DatasetError::ManifestReplaced {
                path: path.into(),
                found: current,
                expected: expected.to_owned(),
            });
        }
    }
    Files::listed(entries, options, verify)
}

/// Describes files of raw tokens of `token_bytes` each, without the zeros at their ends.
///
/// Returns the `entries` of `Blocks`. Reads each file backwards from its end to its last token.
#[pyfunction]
pub(crate) fn raw_entries(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    token_bytes: u32,
) -> PyResult<Vec<EntryTuple>> {
    let width = TokenWidth::from_bytes(token_bytes).ok_or_else(|| {
        PyValueError::new_err(format!("token_bytes is {token_bytes}, expected 1, 2 or 4"))
    })?;
    let entries = py.detach(|| {
        let entries = paths.iter().map(|path| Entry::of_raw(path, width));
        entries.collect::<Result<Vec<_>>>()
    });
    Ok(entries
        .map_err(dataset_error)?
        .iter()
        .map(tuple_of)
        .collect())
}

/// The largest id in files of raw tokens, assuming tokens of 1, 2 and 4 bytes.
///
/// `entries` is a result of [`raw_entries`]; the zeros at the ends of files are not read.
#[pyfunction]
pub(crate) fn largest_ids(
    py: Python<'_>,
    entries: Vec<EntryTuple>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(u32, u32, u32)> {
    let entries = entries
        .into_iter()
        .map(entry_of)
        .collect::<PyResult<Vec<Entry>>>()?;
    let largest = watched_planning(py, on_progress, |monitor| {
        packtok_dataset::files::largest_ids::largest_ids(&entries, monitor)
    })?;
    Ok((largest.of_1_byte, largest.of_2_bytes, largest.of_4_bytes))
}

fn tuple_of(entry: &Entry) -> EntryTuple {
    let path = entry.path.as_os_str().to_owned();
    (
        path,
        entry.file_bytes,
        entry.token_bytes,
        entry.documents,
        entry.tokens,
        entry.trailer_crc32c,
        entry.index_crc32c,
        entry.format.name().to_owned(),
    )
}

fn entry_of(tuple: EntryTuple) -> PyResult<Entry> {
    let (path, file_bytes, token_bytes, documents, tokens, trailer_crc32c, index_crc32c, format) =
        tuple;
    Ok(Entry {
        path: path.into(),
        file_bytes,
        token_bytes,
        documents,
        tokens,
        trailer_crc32c,
        index_crc32c,
        format: format_of(&format)?,
    })
}

/// Writes the entries of `paths`, listed under `names`, to the manifest at `output`; returns the
/// number of files, documents and tokens.
#[pyfunction]
#[pyo3(signature = (*, paths, names, output, replace, read_as))]
pub(crate) fn write_manifest(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    names: Vec<PathBuf>,
    output: PathBuf,
    replace: bool,
    read_as: ReadAs,
) -> PyResult<(usize, u64, u64)> {
    let options = options_of(&read_as)?;
    let replace = if replace {
        Replace::Existing
    } else {
        Replace::Never
    };
    py.detach(|| {
        let files = Files::open_with(&paths, &options, false)?;
        let named = files.entries().zip(names).map(|(entry, name)| Entry {
            path: name,
            ..entry.clone()
        });
        let entries: Vec<Entry> = named.collect();
        manifest::write_manifest(&output, &entries, replace)?;
        Ok((files.len(), files.num_documents(), files.num_tokens()))
    })
    .map_err(dataset_error)
}
