//! `PbinReader`: zero-copy views of a pbin or of a token file in another format.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArrayDescr};
use packtok_dataset::files::checked_file::CheckedFile;
use packtok_formats::TokenFile;
use packtok_pack::pbin::{Dialect, Reader};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::boundary::error::{dataset_error, formats_error, pbin_error};
use crate::boundary::token_formats::open_options;
use crate::boundary::{values, views};
use crate::dataset::origin::{OriginSources, PyOrigin};

/// A pbin, memory-mapped. Item `i` is document `i` as a read-only NumPy view, including EOD.
///
/// Files of other formats, as `packtok convert` names them, are read in the same way: without
/// metadata, and with uint32 views of ids that are wider.
///
/// Views have the token width of the file (uint8, uint16 or uint32), copy nothing and outlive the
/// reader. Pickles as its arguments.
#[pyclass(frozen, name = "PbinReader", module = "packtok")]
pub(crate) struct PyPbinReader {
    /// The path or URL that the caller passed.
    path: PathBuf,
    /// The other arguments of the caller: format, type of the ids, boundaries.
    options: [Option<String>; 3],
    file: CheckedFile,
    sources: OriginSources,
}

/// The arguments of [`PyPbinReader::new`].
type Arguments = (PathBuf, Option<String>, Option<String>, Option<String>);

impl PyPbinReader {
    fn file(&self) -> &TokenFile {
        self.file.token_file()
    }

    /// The file as a pbin, the only format with metadata, sources and origins.
    fn pbin(&self) -> Option<&Reader> {
        match self.file() {
            TokenFile::Pbin(reader) => Some(reader),
            TokenFile::Raw(_) | TokenFile::Npy(_) | TokenFile::Flat(_) => None,
        }
    }

    /// The number of document `i`; negative `i` counts from the end.
    fn position(&self, i: i64) -> PyResult<u64> {
        let num_documents = self.file().num_documents();
        let position = match i {
            0.. => i as u64,
            // If `i` counts back past the first document, this wraps to a number past the end,
            // which the check below rejects.
            _ => num_documents.wrapping_sub(i.unsigned_abs()),
        };
        if position < num_documents {
            Ok(position)
        } else {
            Err(PyIndexError::new_err(format!(
                "{}: document {i} is out of range, the file has {num_documents}",
                self.path.display()
            )))
        }
    }

    /// Bytes of the file. If they must be fetched first, waits without the GIL.
    fn read<'a>(
        &'a self,
        py: Python<'_>,
        call: impl FnOnce(&'a CheckedFile) -> packtok_dataset::Result<&'a [u8]> + Send,
    ) -> PyResult<&'a [u8]> {
        let called = if self.file.is_ready() {
            call(&self.file)
        } else {
            py.detach(|| call(&self.file))
        };
        called.map_err(dataset_error)
    }
}

#[pymethods]
impl PyPbinReader {
    /// Opens a path or URL; checks lengths and checksums of the trailer. The data of a URL is
    /// fetched and verified piece by piece when it is first read; the data of a path is not
    /// verified.
    ///
    /// `format`, `input_dtype` and `boundaries` say what a file of another format does not record, as
    /// those of `packtok.convert`.
    #[new]
    #[pyo3(signature = (path, format = None, input_dtype = None, boundaries = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        input_dtype: Option<String>,
        boundaries: Option<String>,
    ) -> PyResult<Self> {
        let options = [format, input_dtype, boundaries];
        let [format, dtype, boundaries] = options.each_ref().map(Option::as_deref);
        let open = open_options(format, dtype, boundaries)?;
        let file = py
            .detach(|| CheckedFile::open_with(&path, &open, false))
            .map_err(dataset_error)?;
        Ok(Self {
            path,
            options,
            file,
            sources: OriginSources::default(),
        })
    }

    /// Number of documents.
    fn __len__(&self) -> usize {
        self.file().num_documents() as usize
    }

    /// Document `i` as a read-only view; negative `i` counts from the end.
    fn __getitem__<'py>(slf: Bound<'py, Self>, i: i64) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let position = this.position(i)?;
        let bytes = this.read(slf.py(), |file| file.document(position))?;
        Ok(view(&slf, bytes))
    }

    /// Tokens `start..stop` of the data segment, across documents, as a read-only view.
    fn tokens<'py>(slf: Bound<'py, Self>, start: i128, stop: i128) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let (Ok(first), Ok(end)) = (u64::try_from(start), u64::try_from(stop)) else {
            return Err(PyIndexError::new_err(format!(
                "{}: no tokens {start}..{stop}, file has {}",
                this.path.display(),
                this.file().num_tokens()
            )));
        };
        let bytes = this.read(slf.py(), |file| file.tokens(first..end))?;
        Ok(view(&slf, bytes))
    }

    /// Path of the file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Number of tokens, including EODs.
    #[getter]
    fn num_tokens(&self) -> u64 {
        self.file().num_tokens()
    }

    /// CRC32C of the trailer, which identifies the contents; None without a trailer.
    #[getter]
    fn trailer_crc32c(&self) -> Option<u32> {
        self.file().content_crc32c()
    }

    /// Length of the data segment in bytes.
    #[getter]
    fn data_bytes(&self) -> u64 {
        self.file().data_bytes()
    }

    /// Length of the file in bytes.
    #[getter]
    fn file_bytes(&self) -> u64 {
        self.file().file_bytes()
    }

    /// dtype of the views: uint8, uint16 or uint32.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        views::dtype(py, self.file().width())
    }

    /// The program that wrote a pbin: "packtok", "modalities" or "modalities-legacy"; otherwise the
    /// format, as `packtok convert --to` names it.
    #[getter]
    fn dialect(&self) -> &'static str {
        match self.file() {
            TokenFile::Pbin(reader) => match reader.dialect() {
                Dialect::Packtok => "packtok",
                Dialect::Modalities => "modalities",
                Dialect::ModalitiesLegacy => "modalities-legacy",
            },
            file => file.format().name(),
        }
    }

    /// The meaning and origin of the ids; None if the file has no trailer, such as an NPY file.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let metadata = self.file().metadata().map_err(formats_error)?;
        metadata
            .map(|metadata| values::to_python(py, metadata))
            .transpose()
    }

    /// The corpus files, each with path, bytes and crc32c; empty if the file has no trailer.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sources = match self.pbin() {
            Some(reader) => py.detach(|| reader.sources()).map_err(pbin_error)?,
            None => Vec::new(),
        };
        values::to_python(py, &sources)
    }

    /// The origin of document `i`, as an `Origin`; negative `i` counts from the end. None if the
    /// file does not record origins, which `packtok pack --origins` does.
    fn origin(&self, py: Python<'_>, i: i64) -> PyResult<Option<PyOrigin>> {
        let position = self.position(i)?;
        match self.pbin() {
            Some(reader) => self.sources.origin(py, reader, position),
            None => Ok(None),
        }
    }

    /// Whether the file records which tokens count in the loss.
    #[getter]
    fn has_loss_mask(&self) -> bool {
        self.file().has_loss_mask()
    }

    /// Whether each token of document `i` counts in the loss where it is a label, as a bool array of its
    /// length; negative `i` counts from the end. None if the file does not record it, so that all do.
    fn loss_mask<'py>(
        &self,
        py: Python<'py>,
        i: i64,
    ) -> PyResult<Option<Bound<'py, PyArray1<bool>>>> {
        let position = self.position(i)?;
        let Some(mask) = self.file().loss_mask() else {
            return Ok(None);
        };
        let tokens = self
            .file()
            .document_tokens(position)
            .map_err(formats_error)?;
        let mut is_counted = Vec::new();
        mask.append_to(tokens, &mut is_counted)
            .map_err(formats_error)?;
        Ok(Some(PyArray1::from_vec(py, is_counted)))
    }

    /// The documents that came from source `source_index`, which are consecutive, as (first, last
    /// + 1); None if the file does not record origins.
    fn documents_of_source(&self, source_index: u64) -> PyResult<Option<(u64, u64)>> {
        let Some(reader) = self.pbin() else {
            return Ok(None);
        };
        let documents = reader
            .documents_of_source(source_index)
            .map_err(pbin_error)?;
        Ok(documents.map(|documents| (documents.start, documents.end)))
    }

    /// Number of tokens of each document, including EOD, as a uint64 array. Verifies the checksum of
    /// the document offsets first.
    fn document_lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let lengths = py.detach(|| packtok_pack::document_lengths(self.file()));
        Ok(lengths.map_err(formats_error)?.into_pyarray(py))
    }

    /// Histogram of document lengths as (min tokens, max tokens + 1, documents); buckets double in
    /// width.
    fn document_lengths_histogram(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, u64)>> {
        py.detach(|| packtok_pack::document_lengths_histogram(self.file()))
            .map_err(formats_error)
    }

    fn __reduce__(slf: Bound<'_, Self>) -> (Bound<'_, PyAny>, Arguments) {
        let this = slf.get();
        let [format, input_dtype, boundaries] = this.options.clone();
        let arguments = (this.path.clone(), format, input_dtype, boundaries);
        (slf.get_type().into_any(), arguments)
    }

    fn __repr__(&self) -> String {
        format!(
            "PbinReader({:?}, documents={}, tokens={})",
            self.path,
            self.file().num_documents(),
            self.file().num_tokens()
        )
    }
}

/// `bytes` of the reader's map as a read-only array in the file's token width.
fn view<'py>(slf: &Bound<'py, PyPbinReader>, bytes: &[u8]) -> Bound<'py, PyAny> {
    let width = slf.get().file().width();
    // SAFETY: the reader returns complete tokens of its map. The class is frozen, so the map is
    // never replaced.
    unsafe { views::lend(slf.as_any(), width, bytes) }
}
