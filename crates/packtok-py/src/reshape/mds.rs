//! Folders of samples in MDS format: `MdsWriter`, `MdsReader`, and their markers.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use packtok_dataset::files::mds_folder::MdsFolder;
use packtok_dataset::order::context_masks::ContextMasks;
use packtok_formats::mds::{
    Columns, Compression, Dtype, Encoding, Finished, Hash, Marker, Options, ShardEntry, Value,
    Writer,
};
use packtok_reshape::import::{ImportOptions, import};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::boundary::error::{dataset_error, formats_error};
use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values::{from_python, to_python};
use crate::boundary::views::lend_array;

/// Writes samples into the shard files of a folder, byte for byte as mosaicml-streaming's `MDSWriter` does.
///
/// `columns` maps names to encodings: `str`, `bytes`, `int`, a number type such as `float32`, `ndarray` with an optional dtype and
/// shape (`ndarray:uint16:2,8`), `str_int`, `str_float`, `str_decimal` or `json`. `pkl` is refused. Shard files are published one by
/// one; `finish` publishes `index.json`, which makes the folder a dataset. In a `with` statement, an exception removes the shard
/// files. `compression` is `zstd` or `zstd:LEVEL`. A first sample larger than `size_limit` is not preceded by an empty shard, as
/// MDSWriter's is.
#[pyclass(frozen, name = "MdsWriter", module = "packtok._packtok")]
pub(crate) struct PyMdsWriter {
    folder: PathBuf,
    columns: Columns,
    /// `None` after the writer has finished.
    writer: Mutex<Option<Writer>>,
}

#[pymethods]
impl PyMdsWriter {
    #[new]
    #[pyo3(signature = (folder, columns, *, size_limit=Some(1 << 26), hashes=vec!["sha256".to_owned(), "xxh64".to_owned()], compression=None, first_shard=0))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        columns: &Bound<'_, PyDict>,
        size_limit: Option<u64>,
        hashes: Vec<String>,
        compression: Option<&str>,
        first_shard: u64,
    ) -> PyResult<Self> {
        let named: Vec<(String, String)> = columns
            .iter()
            .map(|(name, encoding)| Ok((name.extract()?, encoding.extract()?)))
            .collect::<PyResult<_>>()?;
        let pairs = named.iter().map(|(name, encoding)| (&**name, &**encoding));
        let columns = Columns::new(pairs).map_err(formats_error)?;
        let options = Options {
            first_shard,
            ..options_of(size_limit, &hashes, compression)?
        };
        let writer = py
            .detach(|| Writer::create(&folder, columns.clone(), options))
            .map_err(formats_error)?;
        Ok(Self {
            folder,
            columns,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Writes a sample: a value for each column.
    ///
    /// Raises `ValueError` or `TypeError` with the name of the column if a value does not fit. In
    /// that case the sample is not written.
    fn write(&self, sample: &Bound<'_, PyDict>) -> PyResult<()> {
        let names = self.columns.all().iter();
        let owned = names
            .map(|column| {
                let value = sample.get_item(&column.name)?.ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "the sample has no value of column {:?}",
                        column.name
                    ))
                })?;
                Owned::of(&column.name, &column.encoding, &value)
            })
            .collect::<PyResult<Vec<_>>>()?;
        if sample.len() != owned.len() {
            return Err(self.surplus(sample));
        }
        let values = owned
            .iter()
            .map(Owned::value)
            .collect::<PyResult<Vec<_>>>()?;
        let mut writer = self.lock();
        open(&self.folder, &mut writer)?
            .write(&values)
            .map_err(formats_error)
    }

    /// Number of samples that were written.
    #[getter]
    fn num_samples(&self) -> PyResult<u64> {
        let mut writer = self.lock();
        Ok(open(&self.folder, &mut writer)?.num_samples())
    }

    /// Publishes the last shard, then the marker, if there is one, and the index. Returns the shards as the index lists them.
    ///
    /// `marker` becomes `packtok.json`; `docs/reference/mds_folders.md` describes its keys, and `version` and `index_sha256` are filled in. With
    /// `publish_index=False`, only the shards are published: `publish_mds_index` later writes one index for several writers.
    #[pyo3(signature = (*, marker=None, publish_index=true))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        marker: Option<&Bound<'py, PyDict>>,
        publish_index: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let marker = marker.map(marker_of).transpose()?;
        let Some(writer) = self.lock().take() else {
            return Err(ended(&self.folder));
        };
        let finished = py
            .detach(|| {
                let finished = writer.finish()?;
                if publish_index {
                    finished.publish(marker)?;
                }
                Ok(finished)
            })
            .map_err(formats_error)?;
        to_python(py, &finished.entries)
    }

    /// Removes the shard files that were published.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        match self.lock().take() {
            Some(writer) => py.detach(|| writer.discard()).map_err(formats_error),
            None => Ok(()),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, _error, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _error: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() {
            return self.discard(py);
        }
        if self.lock().is_some() {
            self.finish(py, None, true)?;
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("MdsWriter({:?})", self.folder.display())
    }
}

fn options_of(
    size_limit: Option<u64>,
    hashes: &[String],
    compression: Option<&str>,
) -> PyResult<Options> {
    let hashes = hashes.iter().map(|name| Hash::parse(name));
    Ok(Options {
        size_limit,
        hashes: hashes.collect::<Result<_, _>>().map_err(formats_error)?,
        compression: compression
            .map(Compression::parse)
            .transpose()
            .map_err(formats_error)?,
        first_shard: 0,
    })
}

impl PyMdsWriter {
    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        // A panic while writing leaves a writer that can still be discarded.
        self.writer
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn surplus(&self, sample: &Bound<'_, PyDict>) -> PyErr {
        let mut keys = sample.keys().iter().map(|key| key.to_string());
        let unknown = keys.find(|key| self.columns.position(key).is_none());
        PyValueError::new_err(format!(
            "the sample has a value for {:?}, which is not a column",
            unknown.unwrap_or_default()
        ))
    }
}

fn open<'a>(
    folder: &Path,
    writer: &'a mut MutexGuard<'_, Option<Writer>>,
) -> PyResult<&'a mut Writer> {
    writer.as_mut().ok_or_else(|| ended(folder))
}

fn ended(folder: &Path) -> PyErr {
    PyValueError::new_err(format!("{}: the writer has ended", folder.display()))
}

/// A value that was taken from Python.
enum Owned<'py> {
    Bytes(Bound<'py, PyBytes>),
    Str(Bound<'py, PyString>),
    Int(i64),
    Scalar(Dtype, Bound<'py, PyUntypedArray>),
    Array(Dtype, Vec<u64>, Bound<'py, PyUntypedArray>),
}

impl<'py> Owned<'py> {
    fn of(column: &str, encoding: &Encoding, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let wrong = |expected: &str| wrong_type(column, value, expected);
        Ok(match encoding {
            Encoding::Bytes | Encoding::Pickle => {
                Self::Bytes(value.cast().map_err(|_| wrong("bytes"))?.clone())
            }
            Encoding::Str => Self::Str(value.cast().map_err(|_| wrong("str"))?.clone()),
            Encoding::Int => Self::Int(value.extract().map_err(|_| wrong("an int of 64 bits"))?),
            Encoding::StrInt | Encoding::StrFloat | Encoding::StrDecimal => Self::Str(value.str()?),
            Encoding::Json => {
                let text = py.import("json")?.call_method1("dumps", (value,))?;
                Self::Str(text.cast_into()?)
            }
            Encoding::Scalar(dtype) => {
                let number = py.import("numpy")?.getattr(dtype.name())?.call1((value,))?;
                let array = py.import("numpy")?.call_method1("asarray", (number,))?;
                Self::Scalar(*dtype, array.cast_into()?)
            }
            Encoding::Array { .. } => {
                let array = value
                    .cast::<PyUntypedArray>()
                    .map_err(|_| wrong("a NumPy array"))?;
                let dtype = dtype_of(array)
                    .ok_or_else(|| wrong("an array of integers or floats of 8 to 64 bits"))?;
                let dims = array.shape().iter().map(|&dim| dim as u64).collect();
                Self::Array(dtype, dims, plain(array)?)
            }
        })
    }

    fn value(&self) -> PyResult<Value<'_>> {
        Ok(match self {
            Self::Bytes(bytes) => Value::Bytes(bytes.as_bytes()),
            Self::Str(text) => Value::Str(text.to_str()?),
            Self::Int(number) => Value::Int(*number),
            Self::Scalar(dtype, array) => Value::Scalar(*dtype, bytes_of(array)),
            Self::Array(dtype, dims, array) => {
                Value::Array(*dtype, (&**dims).into(), bytes_of(array))
            }
        })
    }
}

fn wrong_type(column: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let description = match value.cast::<PyUntypedArray>() {
        Ok(array) => format!("an array of {}", array.dtype()),
        Err(_) => match value.get_type().name() {
            Ok(name) => format!("of type {name}"),
            Err(error) => return error,
        },
    };
    PyTypeError::new_err(format!(
        "column {column:?}: the value is {description}, expected {expected}"
    ))
}

fn dtype_of(array: &Bound<'_, PyUntypedArray>) -> Option<Dtype> {
    let dtype = array.dtype();
    let all = [
        (b'u', [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]),
        (b'i', [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]),
        (b'f', [Dtype::F16, Dtype::F16, Dtype::F32, Dtype::F64]),
    ];
    let (_, types) = all.into_iter().find(|(kind, _)| *kind == dtype.kind())?;
    types
        .into_iter()
        .find(|candidate| candidate.bytes() == dtype.itemsize() as u64)
}

/// `array`, or a copy of it that is C-contiguous in the byte order of this machine.
fn plain<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let dtype = array.dtype();
    if array.is_c_contiguous() && dtype.is_native_byteorder() != Some(false) {
        return Ok(array.clone());
    }
    let native = dtype.call_method1("newbyteorder", ("=",))?;
    let numpy = array.py().import("numpy")?;
    Ok(numpy
        .call_method1("ascontiguousarray", (array, native))?
        .cast_into()?)
}

/// The bytes of a C-contiguous array.
fn bytes_of<'a>(array: &'a Bound<'_, PyUntypedArray>) -> &'a [u8] {
    let len = array.len() * array.dtype().itemsize();
    if len == 0 {
        return &[];
    }
    // SAFETY: `plain` returned the array, so its elements, which are numbers, are consecutive; the array lives as long as the
    // reference. A thread that changes the array meanwhile races as it would with NumPy's own copies.
    unsafe { std::slice::from_raw_parts((*array.as_array_ptr()).fields.data.cast::<u8>(), len) }
}

/// Reads the samples of an MDS folder, at a path or URL.
///
/// A sample is a dict; arrays are read-only views of the mapped file, valid as long as they are referenced, and may be unaligned.
/// Sizes and positions are always checked; with `verify`, a hash of each shard is checked when it is first used. `pkl` columns are
/// refused, because reading a pickle can execute code.
#[pyclass(frozen, name = "MdsReader", module = "packtok._packtok")]
pub(crate) struct PyMdsReader {
    pub(crate) folder: MdsFolder,
    verify: bool,
}

#[pymethods]
impl PyMdsReader {
    #[new]
    #[pyo3(signature = (folder, *, verify=true))]
    fn new(py: Python<'_>, folder: PathBuf, verify: bool) -> PyResult<Self> {
        let folder = py
            .detach(|| MdsFolder::open(&folder, verify))
            .map_err(dataset_error)?;
        Ok(Self { folder, verify })
    }

    fn __len__(&self) -> usize {
        self.folder.index().num_samples() as usize
    }

    /// Sample `i`; negative `i` counts from the end.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, i: i64) -> PyResult<Bound<'py, PyDict>> {
        let this = slf.get();
        let py = slf.py();
        let number = position(&this.folder, i)?;
        let index = this.folder.index();
        let (shard, _) = index.find(number).unwrap_or_default();
        let sample = py
            .detach(|| this.folder.sample(number))
            .map_err(dataset_error)?;
        let values = sample.values().map_err(formats_error)?;
        let dict = PyDict::new(py);
        for (column, value) in index.columns(shard).all().iter().zip(values) {
            // SAFETY: the values are in shards of the reader, which keeps them mapped as long as it lives.
            let value = unsafe { to_object(slf.as_any(), &column.encoding, &value) }?;
            dict.set_item(&column.name, value)?;
        }
        Ok(dict)
    }

    /// The names and encodings of the columns of the first shard; empty without shards.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if !self.folder.index().shards().is_empty() {
            for column in self.folder.index().columns(0).all() {
                dict.set_item(&column.name, &column.encoding_text)?;
            }
        }
        Ok(dict)
    }

    /// The shards as the index lists them.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.folder.index().shards())
    }

    /// The description of the samples from the folder's `packtok.json`; None if the folder has no
    /// such file.
    #[getter]
    fn marker<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.folder.marker())
    }

    /// The path or URL.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.folder().to_owned()
    }

    /// Checks the sizes and all hashes of every shard, and the bounds and types of every value.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.folder.verify()).map_err(dataset_error)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (PathBuf, bool))> {
        let reopen = slf
            .py()
            .import("packtok._packtok")?
            .getattr("_reopen_mds")?;
        Ok((reopen, (slf.get().folder(), slf.get().verify)))
    }

    fn __repr__(&self) -> String {
        format!("MdsReader({:?})", self.folder.folder().display())
    }
}

/// Opens a pickled reader again.
#[pyfunction]
pub(crate) fn _reopen_mds(py: Python<'_>, folder: PathBuf, verify: bool) -> PyResult<PyMdsReader> {
    PyMdsReader::new(py, folder, verify)
}

/// The number of sample `i`; negative `i` counts from the end.
fn position(folder: &MdsFolder, i: i64) -> PyResult<u64> {
    let num_samples = folder.index().num_samples();
    let number = match i {
        0.. => i as u64,
        // Wraps to a number past the end if it counts back past the first sample.
        _ => num_samples.wrapping_sub(i.unsigned_abs()),
    };
    if number < num_samples {
        return Ok(number);
    }
    Err(PyIndexError::new_err(format!(
        "{}: sample {i} is out of range, the folder has {num_samples}",
        folder.folder().display()
    )))
}

/// A value as a Python object.
///
/// # Safety
/// The value must lie in memory that stays mapped and unchanged as long as `owner` lives.
unsafe fn to_object<'py>(
    owner: &Bound<'py, PyAny>,
    encoding: &Encoding,
    value: &Value<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    Ok(match value {
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Str(text) => match encoding {
            Encoding::StrInt => py.import("builtins")?.call_method1("int", (text,))?,
            Encoding::StrFloat => py.import("builtins")?.call_method1("float", (text,))?,
            Encoding::StrDecimal => py.import("decimal")?.call_method1("Decimal", (text,))?,
            Encoding::Json => py.import("json")?.call_method1("loads", (text,))?,
            _ => PyString::new(py, text).into_any(),
        },
        Value::Scalar(dtype, bytes) => {
            // SAFETY: as this function requires.
            unsafe { lend_array(owner, *dtype, &[1], bytes) }?.get_item(0)?
        }
        // SAFETY: as this function requires.
        Value::Array(dtype, dims, bytes) => unsafe { lend_array(owner, *dtype, dims, bytes) }?,
    })
}

fn marker_of(marker: &Bound<'_, PyDict>) -> PyResult<Marker> {
    marker.set_item("version", 1)?;
    from_python(marker).map_err(|error| PyValueError::new_err(format!("marker: {error}")))
}

/// The content of a folder's `packtok.json`; None if the folder has no such file.
#[pyfunction]
pub(crate) fn mds_marker<'py>(
    py: Python<'py>,
    folder: PathBuf,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let marker = py
        .detach(|| Marker::of_folder(&folder))
        .map_err(formats_error)?;
    marker.map(|marker| to_python(py, &marker)).transpose()
}

/// Publishes `index.json` for shard files that several writers have put into `folder`, after
/// `packtok.json` if `marker` is set.
///
/// `shards` are the lists that `MdsWriter.finish` returned, in order.
#[pyfunction]
#[pyo3(signature = (folder, shards, *, marker=None))]
pub(crate) fn publish_mds_index(
    py: Python<'_>,
    folder: PathBuf,
    shards: &Bound<'_, PyAny>,
    marker: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let entries: Vec<ShardEntry> =
        from_python(shards).map_err(|error| PyValueError::new_err(format!("shards: {error}")))?;
    let marker = marker.map(marker_of).transpose()?;
    let num_samples = entries.iter().map(|entry| entry.samples).sum();
    let finished = Finished {
        folder,
        entries,
        num_samples,
    };
    py.detach(|| finished.publish(marker))
        .map_err(formats_error)
}

/// Rewrites the MDS folder `old`, or all folders below it, whose columns may be pickles of number
/// arrays, as `new` without pickles.
///
/// `dtype` is the type of token ids; by default the narrower of uint16 and uint32 that fits the
/// ids of a folder. Returns a dict for each folder.
#[pyfunction]
#[pyo3(signature = (old, new, *, dtype=None, size_limit=Some(1 << 26), compression=None, on_progress=None))]
pub(crate) fn import_mds<'py>(
    py: Python<'py>,
    old: PathBuf,
    new: PathBuf,
    dtype: Option<&str>,
    size_limit: Option<u64>,
    compression: Option<&str>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let hashes = ["sha256".to_owned(), "xxh64".to_owned()];
    let ids = match dtype {
        None => None,
        Some(name) => match Dtype::of_name(name) {
            Some(dtype @ (Dtype::U16 | Dtype::U32 | Dtype::I32 | Dtype::I64)) => Some(dtype),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "--dtype (dtype) is {name:?}, expected uint16, uint32, int32 or int64"
                )));
            }
        },
    };
    let options = ImportOptions {
        ids,
        mds: options_of(size_limit, &hashes, compression)?,
    };
    let folders = watched_reshaping(py, on_progress, |monitor| {
        import(&old, &new, &options, monitor)
    })?;
    to_python(py, &folders)
}

/// The number of masked tokens at the end of each context of a sample; None where the whole
/// context is masked.
///
/// A context is masked with probability `mask_prob`. A masked context is masked as a whole with
/// probability `mask_seq_prob`, otherwise 1 to `context_size` - 1 tokens are masked. The result
/// depends only on the arguments.
#[pyfunction]
#[pyo3(signature = (*, seed, epoch, sample, num_contexts, mask_prob, mask_seq_prob, context_size))]
pub(crate) fn context_masks(
    seed: u64,
    epoch: u64,
    sample: u64,
    num_contexts: usize,
    mask_prob: f64,
    mask_seq_prob: f64,
    context_size: u64,
) -> Vec<Option<u64>> {
    let masks = ContextMasks {
        seed,
        mask_prob,
        mask_seq_prob,
        context_size,
    };
    masks.of(epoch, sample, num_contexts)
}
