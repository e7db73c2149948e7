//! `Blocks`: the items of one or many pbins as views and as batches.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::{PyArray1, PyArrayDescr, PyArrayMethods};
use packtok_dataset::items::batch::Filling;
use packtok_dataset::items::items::Items;
use packtok_dataset::items::{Id, LossMarkers};
use packtok_pack::pbin::{AccessPattern, TokenWidth};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyTuple};

use crate::boundary::error::dataset_error;
use crate::boundary::token_formats::ReadAs;
use crate::boundary::views;
use crate::dataset::block_options::{Dtype, PackingOptions};
use crate::dataset::files::{EntryTuple, Sources};
use crate::dataset::rows::{Boundaries, fill_rows};

/// The items of one or many pbins, as NumPy arrays and as batches.
///
/// `packing` defines an item. `"fixed"`: `block_size` tokens across documents, of which the last
/// `overlap` are the first of the next item. `"rows"`: `context_length` inputs and the label of the
/// last one, which is also the first input of the next item. `"chunks"`: `context_length` tokens, all
/// inputs, of which the last `overlap` are the first of the next item; chunks at the end are shorter.
/// `separator` is the id that ends every document in files that do not record them. `"document"`: one document, truncated
/// to `block_size` tokens. `"planned"`: the documents that the plan at `plan_path` combines.
/// `"whole"`: one complete document. Rows of batches have `context_length` inputs: `block_size -
/// 1`, because the last token is only a label, or the length of the plan's blocks.
///
/// With `split_path` and `side` ("train" or "validation"), only the documents on one side of a
/// split are used.
///
/// Item `i` is a read-only view in the token width of the files, without a copy, and it outlives
/// this object. If an item is not contiguous in one file, it is a read-only copy. With `dtype` it
/// is a writable copy of that type; `"index"` is int32, or int64 for files with 4 bytes per token,
/// the types that torch's embeddings accept. Slices return lists of items.
///
/// Pickles as its arguments. Unpickling raises an error that names the file if a file has changed.
#[pyclass(frozen, name = "Blocks", module = "packtok._packtok")]
pub(crate) struct PyBlocks {
    pub(crate) items: Items,
    /// The manifest that lists the files, if any.
    manifest: Option<PathBuf>,
    packing: PackingOptions,
    dtype: Dtype,
    verify: bool,
    read_as: Option<ReadAs>,
    fingerprint: OnceLock<String>,
}

#[pymethods]
impl PyBlocks {
    /// Opens `paths`, or reads `manifest` and opens its files at first use.
    ///
    /// `read_as` has format, type of ids and boundaries of the files, as `PbinReader` takes them.
    /// `entries` and `fingerprint` come from unpickling and describe the files at the time of
    /// pickling. `entries` may also come from `raw_entries`.
    #[new]
    #[pyo3(signature = (paths=None, *, manifest=None, packing, block_size=None, context_length=None, overlap=0, by_file=false,
                        plan_path=None, split_path=None, side=None, separator=None, dtype=None, verify=false, entries=None, fingerprint=None, read_as=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
    fn new(
        py: Python<'_>,
        paths: Option<Vec<PathBuf>>,
        manifest: Option<PathBuf>,
        packing: String,
        block_size: Option<u64>,
        context_length: Option<u64>,
        overlap: u64,
        by_file: bool,
        plan_path: Option<PathBuf>,
        split_path: Option<PathBuf>,
        side: Option<String>,
        separator: Option<u32>,
        dtype: Option<Bound<'_, PyAny>>,
        verify: bool,
        entries: Option<Vec<EntryTuple>>,
        fingerprint: Option<String>,
        read_as: Option<ReadAs>,
    ) -> PyResult<Self> {
        let packing = PackingOptions {
            packing,
            block_size,
            context_length,
            overlap,
            by_file,
            plan_path,
            split_path,
            side,
            separator,
        };
        let sources = Sources {
            paths,
            manifest,
            entries,
            fingerprint,
            read_as: read_as.clone(),
        };
        let (files, manifest) = py.detach(|| sources.open(verify))?;
        let dtype = dtype.map_or(Ok(Dtype::File), |dtype| Dtype::parse(&dtype, files.width()))?;
        let stream = packing.stream(files)?;
        let parsed = packing.parse(&stream)?;
        let items = Items::new(stream, parsed).map_err(dataset_error)?;
        Ok(Self {
            items,
            manifest,
            packing,
            dtype,
            verify,
            read_as,
            fingerprint: OnceLock::new(),
        })
    }

    /// Number of items.
    fn __len__(&self) -> usize {
        self.items.len() as usize
    }

    /// Item `item` as an array, or a list of arrays for a slice. Negative numbers count from the
    /// end.
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
        let i = slf.get().items.ordinal(item).map_err(dataset_error)?;
        Self::array(slf, i)
    }

    /// Writes the rows of `items` into arrays of shape (len(items), context_length), without the
    /// GIL.
    ///
    /// `input_ids`, `labels`, `position_ids` and `document_ids` are int64, int32, uint32 or uint16,
    /// `loss_mask` is bool. The document of padding is −1 or, with `number_padding`, the number after
    /// that of the last document. With `loss_markers`, only labels after the first of the two tokens
    /// and before the second one in their document count. Returns `None`, or with `segments` the boundaries of the documents in the concatenated
    /// rows, as int32, and the length of the longest one.
    #[pyo3(signature = (items, *, input_ids, labels=None, position_ids=None, document_ids=None, loss_mask=None,
                        pad_token_id=0, ignore_index=-100, aligned=false, segments=false, number_padding=false,
                        loss_markers=None))]
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
        number_padding: bool,
        loss_markers: Option<(u32, u32)>,
    ) -> PyResult<Option<Boundaries<'py>>> {
        let items = self.ordinals(items)?;
        let rows: Vec<_> = items.into_iter().map(|i| (&self.items, i)).collect();
        let filling = Filling {
            pad_token_id,
            ignore_index,
            aligned,
            segments,
            number_padding,
            loss_markers: loss_markers.map(|(begin, end)| LossMarkers { begin, end }),
        };
        let ids = [Some(input_ids), labels, position_ids, document_ids];
        fill_rows(py, &rows, self.context_length()?, filling, ids, loss_mask)
    }

    /// Checks that training can apply the columns that say how tokens count in the loss.
    fn check_loss_columns(&self) -> PyResult<()> {
        let files = self.items.stream().files();
        files.check_loss_columns().map_err(dataset_error)
    }

    /// The documents whose tokens `item` contains, as (path, document in that file, start, stop).
    /// The last two are token positions in the document.
    fn locate(&self, item: i64) -> PyResult<Vec<(OsString, u64, u64, u64)>> {
        let i = self.items.ordinal(item).map_err(dataset_error)?;
        let files = self.items.stream().files();
        let parts = self.items.locate(i).map_err(dataset_error)?;
        let parts_of_files = parts.into_iter().map(|part| {
            let path = files.path(part.file).as_os_str().to_owned();
            (path, part.document, part.tokens.start, part.tokens.end)
        });
        Ok(parts_of_files.collect())
    }

    /// Advises the system how the files will be read: "normal", "sequential" or "random".
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
        files.advise(pattern).map_err(dataset_error)
    }

    /// Asks the system to read the pages of `items` asynchronously.
    fn prefetch(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let items = self.ordinals(items)?;
        py.detach(|| items.iter().try_for_each(|&i| self.items.prefetch(i)))
            .map_err(dataset_error)
    }

    /// Number of inputs in a row of a batch.
    #[getter]
    fn context_length(&self) -> PyResult<u64> {
        let context_length = self.items.context_length();
        context_length.ok_or_else(|| dataset_error(packtok_dataset::Error::NoRows))
    }

    /// Number of tokens, including tokens that belong to no item.
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
            .map_err(dataset_error)
    }

    /// Number of padding inputs in batches of all items.
    #[getter]
    fn num_padding_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.items.num_padding_tokens())
            .map_err(dataset_error)
    }

    /// Bytes per token in the files: 1, 2 or 4.
    #[getter]
    fn token_bytes(&self) -> u64 {
        self.width().bytes()
    }

    /// dtype of the items.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.dtype.descr(py, self.width())
    }

    /// EOD id, if the first file records it.
    #[getter]
    fn eod_id(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let files = self.items.stream().files();
        let metadata = py
            .detach(|| Ok(files.token_file(0)?.metadata()?))
            .map_err(dataset_error)?;
        Ok(metadata.and_then(|metadata| metadata.eod.as_ref().map(|eod| eod.id)))
    }

    /// SHA-256 in hex of the files' names, lengths and checksums, and of the split. The data of files that
    /// record neither documents nor checksums is read once for it.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let stream = self.items.stream();
        let fingerprint = py
            .detach(|| stream.content_fingerprint())
            .map_err(dataset_error)?;
        Ok(self
            .fingerprint
            .get_or_init(|| packtok_jobs::hex(&fingerprint)))
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
        let files = self.items.stream().files();
        Sources::add_arguments(files, self.manifest.as_deref(), &options)?;
        self.packing.add_arguments(&options)?;
        options.set_item("verify", self.verify)?;
        options.set_item("read_as", self.read_as.clone())?;
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

    /// Item `i`, which must be below the number of items.
    fn array<'py>(slf: &Bound<'py, Self>, i: u64) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        if this.dtype == Dtype::File
            && let Some(bytes) = this.items.one_piece(i).map_err(dataset_error)?
        {
            // SAFETY: the bytes are complete tokens of a map of the files. The class is frozen and
            // open files stay open, so the map lives as long as the object.
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
            .map_err(dataset_error)?;
        // A copy that replaces a view is read-only too. Otherwise, the layout of the files would
        // determine which items are writable.
        Ok(match self.dtype {
            Dtype::File => views::own_read_only(py, ids),
            _ => PyArray1::from_vec(py, ids).into_any(),
        })
    }

    /// Item numbers from any iterable of integers.
    fn ordinals(&self, items: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let ordinal = |item| self.items.ordinal(item).map_err(dataset_error);
        if let Ok(items) = items.cast::<PyArray1<i64>>() {
            let items = items.try_readonly()?;
            return items.as_array().iter().map(|&item| ordinal(item)).collect();
        }
        let items = items.try_iter()?;
        items.map(|item| ordinal(item?.extract::<i64>()?)).collect()
    }
}
