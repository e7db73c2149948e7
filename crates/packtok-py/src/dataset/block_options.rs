//! The arguments of `Blocks`, as the caller passes them and as they are pickled: files, packing
//! and dtype.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use numpy::{PyArrayDescr, PyArrayDescrMethods};
use packtok_dataset::Error as DatasetError;
use packtok_dataset::Result;
use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::{self, Entry, FileFormat};
use packtok_dataset::items::items::Packing;
use packtok_dataset::items::token_stream::TokenStream;
use packtok_dataset::plans::plan::BlockPlan;
use packtok_dataset::plans::split::{Side, SplitRuns};
use packtok_pack::pbin::TokenWidth;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::boundary::error::dataset_error;
use crate::boundary::monitor::watched_planning;
use crate::boundary::views;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(raw_entries, module)?)?;
    module.add_function(wrap_pyfunction!(largest_ids, module)?)
}

/// The files: one of the first three fields, and the recorded fingerprint of a manifest.
pub(crate) struct Sources {
    pub(crate) paths: Option<Vec<PathBuf>>,
    pub(crate) manifest: Option<PathBuf>,
    pub(crate) entries: Option<Vec<EntryTuple>>,
    pub(crate) fingerprint: Option<String>,
}

/// An [`Entry`] in its pickled form; the last item is whether the file is of raw tokens.
pub(crate) type EntryTuple = (OsString, u64, u64, u64, u64, Option<u32>, Option<u32>, bool);

impl Sources {
    /// Opens the files; also returns the manifest that lists them.
    pub(crate) fn open(self, verify: bool) -> PyResult<(Files, Option<PathBuf>)> {
        let files = match (self.paths, &self.manifest, self.entries) {
            (Some(paths), None, None) => Files::open(&paths, verify),
            (None, Some(path), None) => listed(path, self.fingerprint.as_deref(), verify),
            (None, None, Some(entries)) => {
                Files::listed(entries.into_iter().map(entry_of).collect(), verify)
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
fn listed(path: &Path, fingerprint: Option<&str>, verify: bool) -> Result<Files> {
    let entries = manifest::read_manifest(path)?;
    if let Some(expected) = fingerprint {
        let found = packtok_jobs::hex(&manifest::fingerprint(&entries));
        if found != expected {
            return Err(DatasetError::ManifestReplaced {
                path: path.into(),
                found,
                expected: expected.to_owned(),
            });
        }
    }
    Files::listed(entries, verify)
}

/// Describes files of raw tokens of `token_bytes` each, without the zeros at their ends.
///
/// Returns the `entries` of `Blocks`. Reads each file backwards from its end to its last token.
#[pyfunction]
fn raw_entries(py: Python<'_>, paths: Vec<PathBuf>, token_bytes: u32) -> PyResult<Vec<EntryTuple>> {
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
fn largest_ids(
    py: Python<'_>,
    entries: Vec<EntryTuple>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(u32, u32, u32)> {
    let entries: Vec<Entry> = entries.into_iter().map(entry_of).collect();
    let found = watched_planning(py, on_progress, |monitor| {
        packtok_dataset::files::largest_ids::largest_ids(&entries, monitor)
    })?;
    Ok((found.of_1_byte, found.of_2_bytes, found.of_4_bytes))
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
        entry.format == FileFormat::Raw,
    )
}

fn entry_of(tuple: EntryTuple) -> Entry {
    let (path, file_bytes, token_bytes, documents, tokens, trailer_crc32c, index_crc32c, is_raw) =
        tuple;
    Entry {
        path: path.into(),
        file_bytes,
        token_bytes,
        documents,
        tokens,
        trailer_crc32c,
        index_crc32c,
        format: if is_raw {
            FileFormat::Raw
        } else {
            FileFormat::Pbin
        },
    }
}

/// The options that divide tokens into items, as the caller passes them.
pub(crate) struct PackingOptions {
    pub(crate) packing: String,
    pub(crate) block_size: Option<u64>,
    pub(crate) context_length: Option<u64>,
    pub(crate) overlap: u64,
    pub(crate) by_file: bool,
    pub(crate) plan_path: Option<PathBuf>,
    pub(crate) split_path: Option<PathBuf>,
    pub(crate) side: Option<String>,
    pub(crate) separator: Option<u32>,
}

impl PackingOptions {
    /// The selected documents of `files`.
    pub(crate) fn stream(&self, files: Files) -> PyResult<TokenStream> {
        let (path, side) = match (&self.split_path, self.side.as_deref()) {
            (None, None) => return Ok(TokenStream::new(files)),
            (Some(path), Some("train")) => (path, Side::Train),
            (Some(path), Some("validation")) => (path, Side::Validation),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "split_path and side {:?} do not match, expected a split and \"train\" or \"validation\"",
                    self.side
                )));
            }
        };
        let runs = SplitRuns::open(path, &files.fingerprint(), side).map_err(dataset_error)?;
        TokenStream::selected(files, runs).map_err(dataset_error)
    }

    /// The packing of `stream`.
    pub(crate) fn parse(&self, stream: &TokenStream) -> PyResult<Packing> {
        let missing =
            |name: &str| PyTypeError::new_err(format!("packing {:?} needs {name}", self.packing));
        let block_size = || self.block_size.ok_or_else(|| missing("block_size"));
        match self.packing.as_str() {
            "fixed" => Ok(Packing::Fixed {
                block_size: block_size()?,
                overlap: self.overlap,
                by_file: self.by_file,
            }),
            "chunks" => Ok(Packing::Chunks {
                chunk_size: self
                    .context_length
                    .ok_or_else(|| missing("context_length"))?,
                overlap: self.overlap,
                by_file: self.by_file,
                separator: self.separator,
            }),
            "rows" => Ok(Packing::Rows {
                context_length: self
                    .context_length
                    .ok_or_else(|| missing("context_length"))?,
                by_file: self.by_file,
                separator: self.separator,
            }),
            "document" => Ok(Packing::Document {
                block_size: block_size()?,
            }),
            "planned" => {
                let path = self
                    .plan_path
                    .as_ref()
                    .ok_or_else(|| missing("plan_path"))?;
                let plan = BlockPlan::open(path, &stream.fingerprint()).map_err(dataset_error)?;
                Ok(Packing::Planned(plan))
            }
            "whole" => Ok(Packing::Whole),
            other => Err(PyValueError::new_err(format!(
                "packing is {other:?}, expected \"fixed\", \"rows\", \"chunks\", \"document\", \"planned\" or \"whole\""
            ))),
        }
    }

    /// Adds the arguments that recreate these options.
    pub(crate) fn add_arguments(&self, options: &Bound<'_, PyDict>) -> PyResult<()> {
        options.set_item("packing", &self.packing)?;
        options.set_item("block_size", self.block_size)?;
        options.set_item("context_length", self.context_length)?;
        options.set_item("overlap", self.overlap)?;
        options.set_item("by_file", self.by_file)?;
        options.set_item("side", &self.side)?;
        options.set_item("separator", self.separator)?;
        options.set_item(
            "split_path",
            self.split_path.as_deref().map(Path::as_os_str),
        )?;
        options.set_item("plan_path", self.plan_path.as_deref().map(Path::as_os_str))
    }
}

/// The dtype of the items' arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// The token width of the files.
    File,
    U8,
    U16,
    U32,
    I32,
    I64,
}

impl Dtype {
    /// Parses `dtype`, which may be anything that NumPy accepts.
    ///
    /// `"index"` is the signed type of indices for torch's embeddings, for files of `width`:
    /// int32, or int64 if an id may exceed it.
    pub(crate) fn parse(dtype: &Bound<'_, PyAny>, width: TokenWidth) -> PyResult<Self> {
        if dtype.cast::<PyString>().is_ok_and(|name| name == "index") {
            return Ok(match width {
                TokenWidth::U8 | TokenWidth::U16 => Self::I32,
                TokenWidth::U32 => Self::I64,
            });
        }
        let asked = PyArrayDescr::new(dtype.py(), dtype)?;
        let known = [Self::U8, Self::U16, Self::U32, Self::I32, Self::I64];
        let is_asked = |known: &Self| {
            let descr = known.descr(dtype.py(), TokenWidth::U32);
            descr.is_equiv_to(&asked)
        };
        known.into_iter().find(is_asked).ok_or_else(|| {
            PyValueError::new_err(format!(
                "dtype is {asked}, expected uint8, uint16, uint32, int32 or int64"
            ))
        })
    }

    /// NumPy's dtype, for files of `width`.
    pub(crate) fn descr(self, py: Python<'_>, width: TokenWidth) -> Bound<'_, PyArrayDescr> {
        match self {
            Self::File => views::dtype(py, width),
            Self::U8 => numpy::dtype::<u8>(py),
            Self::U16 => numpy::dtype::<u16>(py),
            Self::U32 => numpy::dtype::<u32>(py),
            Self::I32 => numpy::dtype::<i32>(py),
            Self::I64 => numpy::dtype::<i64>(py),
        }
    }
}
