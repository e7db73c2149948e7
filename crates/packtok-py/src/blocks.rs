//! `Blocks`: the items of one or many pbins as views and as batches, for Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use numpy::{PyArray1, PyArrayDescr, PyArrayDescrMethods, PyReadonlyArray1};
use packtok_core::Result;
use packtok_core::pbin::{AccessPattern, Replace, TokenWidth};
use packtok_core::sampling::batch::{Batch, Filling, context_length, fill};
use packtok_core::sampling::files::Files;
use packtok_core::sampling::items::{Items, Packing};
use packtok_core::sampling::manifest::{self, Entry};
use packtok_core::sampling::plan::Plan;
use packtok_core::sampling::split::{Runs, Side};
use packtok_core::sampling::stream::Stream;
use packtok_core::sampling::{Id, SamplingError};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyTuple};

use crate::arrays::{IdArray, Shape, borrow_mask};
use crate::error::core_error;
use crate::views;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBlocks>()?;
    module.add_function(wrap_pyfunction!(fill_from, module)?)?;
    module.add_function(wrap_pyfunction!(write_manifest, module)?)
}

/// The items of one or many pbins, as read-only NumPy arrays and as batches.
///
/// `packing` says what an item is: `"fixed"`, `block_size` tokens across documents, the last `overlap` of
/// which are the first of the next item; `"document"`, one document cut after `block_size` tokens; `"planned"`,
/// what the plan at `plan_path` puts together; `"whole"`, one document. Rows of batches have `context_length`
/// inputs: one fewer than `block_size`, whose last token is only a label, or as many as the plan's blocks have.
///
/// With `split_path` and `side` ("train" or "validation") the documents are those of one side of a split.
///
/// Item `i` is a view in the width of the files, which copies nothing and outlives this object; a copy, read-only
/// too, where the item is not one piece of one file or `dtype` is another. Slices give lists of items.
///
/// Pickles as what it was made from; whoever unpickles it and finds other files is told which.
#[pyclass(frozen, name = "Blocks", module = "packtok._packtok")]
pub(crate) struct PyBlocks {
    pub(crate) items: Items,
    made_from: MadeFrom,
    packing: PackingOptions,
    dtype: Dtype,
    verify: bool,
    fingerprint: OnceLock<String>,
}

/// Where the files came from.
enum MadeFrom {
    Paths,
    Manifest(PathBuf),
}

/// How tokens become items, as the caller said it.
struct PackingOptions {
    packing: String,
    block_size: Option<u64>,
    overlap: u64,
    by_file: bool,
    plan_path: Option<PathBuf>,
    split_path: Option<PathBuf>,
    side: Option<String>,
}

/// Type of the items' arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dtype {
    File,
    U8,
    U16,
    U32,
    I32,
    I64,
}

/// An [`Entry`] as it is pickled.
type EntryTuple = (OsString, u64, u64, u64, u64, Option<u32>, Option<u32>);

#[pymethods]
impl PyBlocks {
    /// Opens `paths`, or lists what `manifest` lists and opens no file before it is needed.
    ///
    /// `entries` and `fingerprint` are what unpickling gives: the files as they were seen before.
    #[new]
    #[pyo3(signature = (paths=None, *, manifest=None, packing, block_size=None, overlap=0, by_file=false,
                        plan_path=None, split_path=None, side=None, dtype=None, verify=false, entries=None, fingerprint=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
    fn new(
        py: Python<'_>,
        paths: Option<Vec<PathBuf>>,
        manifest: Option<PathBuf>,
        packing: String,
        block_size: Option<u64>,
        overlap: u64,
        by_file: bool,
        plan_path: Option<PathBuf>,
        split_path: Option<PathBuf>,
        side: Option<String>,
        dtype: Option<Bound<'_, PyAny>>,
        verify: bool,
        entries: Option<Vec<EntryTuple>>,
        fingerprint: Option<String>,
    ) -> PyResult<Self> {
        let packing = PackingOptions {
            packing,
            block_size,
            overlap,
            by_file,
            plan_path,
            split_path,
            side,
        };
        let dtype = dtype.map_or(Ok(Dtype::File), |dtype| parse_dtype(&dtype))?;
        let (files, made_from) = py.detach(|| match (paths, manifest, entries) {
            (Some(paths), None, None) => Ok((Files::open(&paths, verify), MadeFrom::Paths)),
            (None, None, Some(entries)) => {
                let entries = entries.into_iter().map(entry_of).collect();
                Ok((Files::listed(entries, verify), MadeFrom::Paths))
            }
            (None, Some(path), None) => {
                let files = listed(&path, fingerprint.as_deref(), verify);
                Ok((files, MadeFrom::Manifest(path)))
            }
            _ => Err(PyTypeError::new_err(
                "give either paths or a manifest, not both",
            )),
        })?;
        let stream = packing.stream(files.map_err(core_error)?)?;
        let parsed = packing.parse(&stream)?;
        let items = Items::new(stream, parsed).map_err(core_error)?;
        Ok(Self {
            items,
            made_from,
            packing,
            dtype,
            verify,
            fingerprint: OnceLock::new(),
        })
    }

    /// Number of items.
    fn __len__(&self) -> usize {
        self.items.len() as usize
    }

    /// Item `item` as an array, or a list of arrays for a slice; negative ones count from the end.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = item.cast::<PySlice>() {
            return Self::slice(slf, slice);
        }
        let item = item.extract::<i64>().map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(slf.py()) {
                PyIndexError::new_err(format!("item {item} is out of range"))
            } else {
                error
            }
        })?;
        let i = slf.get().items.ordinal(item).map_err(core_error)?;
        Self::array(slf, i)
    }

    /// Writes the rows of `items` into arrays of shape (len(items), context_length), without the GIL.
    ///
    /// `input_ids`, `labels`, `position_ids` and `document_ids` are int64 or int32, `loss_mask` is bool. Gives
    /// `None`, or with `segments` the boundaries of the documents in the rows laid end to end, as int32, and
    /// the length of the longest.
    #[pyo3(signature = (items, *, input_ids, labels=None, position_ids=None, document_ids=None, loss_mask=None,
                        pad_token_id=0, ignore_index=-100, aligned=false, segments=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
    fn fill<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyAny>,
        input_ids: &Bound<'py, PyAny>,
        labels: Option<&Bound<'py, PyAny>>,
        position_ids: Option<&Bound<'py, PyAny>>,
        document_ids: Option<&Bound<'py, PyAny>>,
        loss_mask: Option<&Bound<'py, PyAny>>,
        pad_token_id: i32,
        ignore_index: i32,
        aligned: bool,
        segments: bool,
    ) -> PyResult<Option<Boundaries<'py>>> {
        let items = self.ordinals(items)?;
        let rows: Vec<_> = items.into_iter().map(|i| (&self.items, i)).collect();
        let filling = Filling {
            pad_token_id,
            ignore_index,
            aligned,
            segments,
        };
        let ids = [Some(input_ids), labels, position_ids, document_ids];
        fill_rows(py, &rows, self.context_length()?, filling, ids, loss_mask)
    }

    /// The documents that `item` has tokens of: (path, document in that file, start, stop), the last two
    /// counted in tokens from the document's start.
    fn locate(&self, item: i64) -> PyResult<Vec<(OsString, u64, u64, u64)>> {
        let i = self.items.ordinal(item).map_err(core_error)?;
        let files = self.items.stream().files();
        let parts = self.items.locate(i).map_err(core_error)?;
        let told = parts.into_iter().map(|part| {
            let path = files.path(part.file).as_os_str().to_owned();
            (path, part.document, part.tokens.start, part.tokens.end)
        });
        Ok(told.collect())
    }

    /// Tells the system how the files will be read: "normal", "sequential" or "random".
    fn advise(&self, pattern: &str) -> PyResult<()> {
        let pattern = match pattern {
            "normal" => AccessPattern::Normal,
            "sequential" => AccessPattern::Sequential,
            "random" => AccessPattern::Random,
            other => {
                return Err(PyValueError::new_err(format!(
                    "pattern is {other:?}, expected \"normal\", \"sequential\" or \"random\""
                )));
            }
        };
        let files = self.items.stream().files();
        files.advise(pattern).map_err(core_error)
    }

    /// Asks the system to read the pages of `items`, and does not wait for them.
    fn prefetch(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let items = self.ordinals(items)?;
        py.detach(|| items.iter().try_for_each(|&i| self.items.prefetch(i)))
            .map_err(core_error)
    }

    /// Number of inputs in a row of a batch.
    #[getter]
    fn context_length(&self) -> PyResult<u64> {
        let context_length = self.items.context_length();
        context_length.ok_or_else(|| core_error(SamplingError::NoRows.into()))
    }

    /// Number of tokens, those of items and those that are in none.
    #[getter]
    fn num_tokens(&self) -> u64 {
        self.items.stream().num_tokens()
    }

    /// Number of documents.
    #[getter]
    fn num_documents(&self) -> u64 {
        self.items.stream().num_documents()
    }

    /// Number of tokens that are in no item.
    #[getter]
    fn num_dropped_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.items.num_dropped_tokens())
            .map_err(core_error)
    }

    /// Number of inputs that are padding, in batches of all items.
    #[getter]
    fn num_padding_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.items.num_padding_tokens())
            .map_err(core_error)
    }

    /// dtype of the items.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        match self.dtype {
            Dtype::File => views::dtype(py, self.width()),
            Dtype::U8 => numpy::dtype::<u8>(py),
            Dtype::U16 => numpy::dtype::<u16>(py),
            Dtype::U32 => numpy::dtype::<u32>(py),
            Dtype::I32 => numpy::dtype::<i32>(py),
            Dtype::I64 => numpy::dtype::<i64>(py),
        }
    }

    /// Id that closes documents, if the first file says so.
    #[getter]
    fn eod_id(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let files = self.items.stream().files();
        let metadata = py
            .detach(|| Ok(files.reader(0)?.metadata()?))
            .map_err(core_error)?;
        Ok(metadata.and_then(|metadata| metadata.eod.as_ref().map(|eod| eod.id)))
    }

    /// SHA-256, in hex, of the files' names, lengths and trailers' checksums, and of the split.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.fingerprint
            .get_or_init(|| manifest::hex(&self.items.stream().fingerprint()))
    }

    /// Paths of the files, in order.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        let entries = self.items.stream().files().entries();
        entries.map(|entry| entry.path.clone()).collect()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        match &self.made_from {
            MadeFrom::Manifest(path) => {
                options.set_item("manifest", path.as_os_str())?;
                let files = self.items.stream().files();
                options.set_item("fingerprint", manifest::hex(&files.fingerprint()))?;
            }
            MadeFrom::Paths => {
                let entries = self.items.stream().files().entries();
                let entries: Vec<EntryTuple> = entries.map(tuple_of).collect();
                options.set_item("entries", entries)?;
            }
        }
        let packing = &self.packing;
        options.set_item("packing", &packing.packing)?;
        options.set_item("block_size", packing.block_size)?;
        options.set_item("overlap", packing.overlap)?;
        options.set_item("by_file", packing.by_file)?;
        options.set_item(
            "plan_path",
            packing.plan_path.as_deref().map(Path::as_os_str),
        )?;
        options.set_item("verify", self.verify)?;
        if self.dtype != Dtype::File {
            options.set_item("dtype", self.dtype(py))?;
        }
        Ok((PyTuple::empty(py), options))
    }

    fn __repr__(&self) -> String {
        let files = self.items.stream().files();
        format!(
            "Blocks({:?}, files={}, items={}, tokens={})",
            files.path(0),
            files.len(),
            self.items.len(),
            self.num_tokens()
        )
    }
}

impl PyBlocks {
    fn width(&self) -> TokenWidth {
        self.items.stream().files().width()
    }

    fn slice<'py>(
        slf: &Bound<'py, Self>,
        slice: &Bound<'py, PySlice>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let indices = slice.indices(slf.get().items.len() as isize)?;
        let list = PyList::empty(slf.py());
        let mut i = indices.start;
        for _ in 0..indices.slicelength {
            list.append(Self::array(slf, i as u64)?)?;
            i += indices.step;
        }
        Ok(list.into_any())
    }

    /// Item `i`, which is below the number of items.
    fn array<'py>(slf: &Bound<'py, Self>, i: u64) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        if this.dtype == Dtype::File
            && let Some(bytes) = this.items.one_piece(i).map_err(core_error)?
        {
            // SAFETY: the bytes are whole tokens of a map of the files; the class is frozen and files that are
            // open stay so, so the map lives as long as the object.
            return Ok(unsafe { views::lend(slf.as_any(), this.width(), bytes) });
        }
        match (this.dtype, this.width()) {
            (Dtype::U8, _) | (Dtype::File, TokenWidth::U8) => this.copied::<u8>(py, i),
            (Dtype::U16, _) | (Dtype::File, TokenWidth::U16) => this.copied::<u16>(py, i),
            (Dtype::U32, _) | (Dtype::File, TokenWidth::U32) => this.copied::<u32>(py, i),
            (Dtype::I32, _) => this.copied::<i32>(py, i),
            (Dtype::I64, _) => this.copied::<i64>(py, i),
        }
    }

    fn copied<'py, T>(&self, py: Python<'py>, i: u64) -> PyResult<Bound<'py, PyAny>>
    where
        T: Id + numpy::Element + Default,
    {
        let ids = py
            .detach(|| self.items.copied::<T>(i))
            .map_err(core_error)?;
        Ok(views::own(py, ids))
    }

    /// Ordinals of items given as any iterable of integers.
    fn ordinals(&self, items: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let ordinal = |item| self.items.ordinal(item).map_err(core_error);
        if let Ok(items) = items.extract::<PyReadonlyArray1<'_, i64>>() {
            return items.as_array().iter().map(|&item| ordinal(item)).collect();
        }
        let items = items.try_iter()?;
        items.map(|item| ordinal(item?.extract::<i64>()?)).collect()
    }
}

/// As `Blocks.fill`, but row i is item `items[i]` of `blocks[sources[i]]`.
#[pyfunction]
#[pyo3(signature = (blocks, sources, items, *, input_ids, labels=None, position_ids=None, document_ids=None,
                    loss_mask=None, pad_token_id=0, ignore_index=-100, aligned=false, segments=false))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
fn fill_from<'py>(
    py: Python<'py>,
    blocks: Vec<Bound<'py, PyBlocks>>,
    sources: PyReadonlyArray1<'py, i64>,
    items: PyReadonlyArray1<'py, i64>,
    input_ids: &Bound<'py, PyAny>,
    labels: Option<&Bound<'py, PyAny>>,
    position_ids: Option<&Bound<'py, PyAny>>,
    document_ids: Option<&Bound<'py, PyAny>>,
    loss_mask: Option<&Bound<'py, PyAny>>,
    pad_token_id: i32,
    ignore_index: i32,
    aligned: bool,
    segments: bool,
) -> PyResult<Option<Boundaries<'py>>> {
    let blocks: Vec<&Items> = blocks.iter().map(|blocks| &blocks.get().items).collect();
    let row = |(&source, &item): (&i64, &i64)| {
        let source = usize::try_from(source)
            .ok()
            .and_then(|source| blocks.get(source));
        let source = *source.ok_or_else(|| PyIndexError::new_err("a source is out of range"))?;
        Ok((source, source.ordinal(item).map_err(core_error)?))
    };
    let (sources, items) = (sources.as_array(), items.as_array());
    let rows = sources.iter().zip(items.iter()).map(row);
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    let context_length = context_length(blocks.iter().copied()).map_err(core_error)?;
    let filling = Filling {
        pad_token_id,
        ignore_index,
        aligned,
        segments,
    };
    let ids = [Some(input_ids), labels, position_ids, document_ids];
    fill_rows(
        py,
        &rows,
        context_length.unwrap_or(0),
        filling,
        ids,
        loss_mask,
    )
}

/// Boundaries of segments, and the length of the longest.
type Boundaries<'py> = (Bound<'py, PyArray1<i32>>, i32);

/// Writes `rows` into the arrays of ids, in the order of the batch's fields, and the mask.
fn fill_rows<'py>(
    py: Python<'py>,
    rows: &[(&Items, u64)],
    context_length: u64,
    filling: Filling,
    ids: [Option<&Bound<'py, PyAny>>; 4],
    loss_mask: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Boundaries<'py>>> {
    let shape = Shape {
        num_rows: rows.len(),
        context_length: context_length as usize,
    };
    let names = ["input_ids", "labels", "position_ids", "document_ids"];
    let mut arrays = [const { None }; 4];
    for ((place, name), array) in arrays.iter_mut().zip(names).zip(ids) {
        *place = array
            .map(|array| IdArray::borrow(name, array, shape))
            .transpose()?;
    }
    let [input_ids, labels, position_ids, document_ids] = &mut arrays;
    let mut loss_mask = loss_mask
        .map(|array| borrow_mask("loss_mask", array, shape))
        .transpose()?;
    let input_ids = input_ids.as_mut().expect("every caller gives input_ids");
    let mut batch = Batch {
        input_ids: input_ids.ids()?,
        labels: labels.as_mut().map(IdArray::ids).transpose()?,
        position_ids: position_ids.as_mut().map(IdArray::ids).transpose()?,
        document_ids: document_ids.as_mut().map(IdArray::ids).transpose()?,
        loss_mask: loss_mask
            .as_mut()
            .map(|mask| mask.as_slice_mut())
            .transpose()?,
    };
    let segments = py
        .detach(|| fill(rows, filling, &mut batch))
        .map_err(core_error)?;
    Ok(segments.map(|found| (PyArray1::from_vec(py, found.cu_seqlens), found.max_seqlen)))
}

/// Writes the entries of `paths`, told as `names`, to the manifest at `output`; gives files, documents, tokens.
#[pyfunction]
#[pyo3(signature = (*, paths, names, output, replace))]
fn write_manifest(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    names: Vec<PathBuf>,
    output: PathBuf,
    replace: bool,
) -> PyResult<(usize, u64, u64)> {
    let replace = match replace {
        true => Replace::Existing,
        false => Replace::Never,
    };
    py.detach(|| {
        let files = Files::open(&paths, false)?;
        let named = files.entries().zip(names).map(|(entry, name)| Entry {
            path: name,
            ..entry.clone()
        });
        let entries: Vec<Entry> = named.collect();
        manifest::write_manifest(&output, &entries, replace)?;
        Ok((files.len(), files.num_documents(), files.num_tokens()))
    })
    .map_err(core_error)
}

/// The files of a manifest, which must be the one of `fingerprint` if that is known.
fn listed(path: &std::path::Path, fingerprint: Option<&str>, verify: bool) -> Result<Files> {
    let entries = manifest::read_manifest(path)?;
    if let Some(expected) = fingerprint {
        let found = manifest::hex(&manifest::fingerprint(&entries));
        if found != expected {
            return Err(SamplingError::ManifestReplaced {
                path: path.into(),
                found,
                expected: expected.to_owned(),
            }
            .into());
        }
    }
    Files::listed(entries, verify)
}

impl PackingOptions {
    /// The documents of `files` that the options ask for.
    fn stream(&self, files: Files) -> PyResult<Stream> {
        let (path, side) = match (&self.split_path, self.side.as_deref()) {
            (None, None) => return Ok(Stream::new(files)),
            (Some(path), Some("train")) => (path, Side::Train),
            (Some(path), Some("validation")) => (path, Side::Validation),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "split_path and side {:?} do not go together, expected a split and \"train\" or \"validation\"",
                    self.side
                )));
            }
        };
        let runs = Runs::open(path, &files.fingerprint(), side).map_err(core_error)?;
        Stream::selected(files, runs).map_err(core_error)
    }

    /// What the options ask for, of `stream`.
    fn parse(&self, stream: &Stream) -> PyResult<Packing> {
        let missing =
            |name: &str| PyTypeError::new_err(format!("packing {:?} needs {name}", self.packing));
        let block_size = || self.block_size.ok_or_else(|| missing("block_size"));
        match self.packing.as_str() {
            "fixed" => Ok(Packing::Fixed {
                block_size: block_size()?,
                overlap: self.overlap,
                by_file: self.by_file,
            }),
            "document" => Ok(Packing::Document {
                block_size: block_size()?,
            }),
            "planned" => {
                let path = self
                    .plan_path
                    .as_ref()
                    .ok_or_else(|| missing("plan_path"))?;
                let plan = Plan::open(path, &stream.fingerprint()).map_err(core_error)?;
                Ok(Packing::Planned(plan))
            }
            "whole" => Ok(Packing::Whole),
            other => Err(PyValueError::new_err(format!(
                "packing is {other:?}, expected \"fixed\", \"document\", \"planned\" or \"whole\""
            ))),
        }
    }
}

fn parse_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let py = dtype.py();
    let asked = PyArrayDescr::new(py, dtype)?;
    let known = [
        (Dtype::U8, numpy::dtype::<u8>(py)),
        (Dtype::U16, numpy::dtype::<u16>(py)),
        (Dtype::U32, numpy::dtype::<u32>(py)),
        (Dtype::I32, numpy::dtype::<i32>(py)),
        (Dtype::I64, numpy::dtype::<i64>(py)),
    ];
    let found = known
        .into_iter()
        .find(|(_, known)| known.is_equiv_to(&asked));
    found.map(|(found, _)| found).ok_or_else(|| {
        PyValueError::new_err(format!(
            "dtype is {asked}, expected uint8, uint16, uint32, int32 or int64"
        ))
    })
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
    )
}

fn entry_of(tuple: EntryTuple) -> Entry {
    let (path, file_bytes, token_bytes, documents, tokens, trailer_crc32c, index_crc32c) = tuple;
    Entry {
        path: path.into(),
        file_bytes,
        token_bytes,
        documents,
        tokens,
        trailer_crc32c,
        index_crc32c,
    }
}
