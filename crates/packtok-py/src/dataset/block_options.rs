//! The arguments of `Blocks`, as the caller passes them and as they are pickled: packing and
//! dtype.

use std::path::{Path, PathBuf};

use numpy::{PyArrayDescr, PyArrayDescrMethods};
use packtok_dataset::files::file_set::Files;
use packtok_dataset::items::items::Packing;
use packtok_dataset::items::token_stream::TokenStream;
use packtok_dataset::plans::plan::BlockPlan;
use packtok_dataset::plans::split::{Side, SplitRuns};
use packtok_pack::pbin::TokenWidth;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::boundary::error::dataset_error;
use crate::boundary::views;

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
        let requested = PyArrayDescr::new(dtype.py(), dtype)?;
        let known = [Self::U8, Self::U16, Self::U32, Self::I32, Self::I64];
        let is_requested = |known: &Self| {
            let descr = known.descr(dtype.py(), TokenWidth::U32);
            descr.is_equiv_to(&requested)
        };
        known.into_iter().find(is_requested).ok_or_else(|| {
            PyValueError::new_err(format!(
                "dtype is {requested}, expected uint8, uint16, uint32, int32 or int64"
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
