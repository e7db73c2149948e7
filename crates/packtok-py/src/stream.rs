//! `Stream`: a running stream, and the functions and samples of Python in it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use packtok_core::corpus::{Source, expand};
use packtok_core::pipeline::PipelineError;
use packtok_core::shard::Shard;
use packtok_core::stream::{
    ForeignSample, Function, LaneStates, Objects, RecipeSpec, Sample, Samples, SourceRecord,
    Stream, StreamError, StreamState, Value,
};
use packtok_core::{Error, Result};
use packtok_tokenizer::Tokenizer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::choice::choice;
use crate::error::core_error;
use crate::json;
use crate::plugin::lock;
use crate::tokenizer::PyTokenizer;

/// The first exception that was raised in Python and is not passed on yet.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// Calls of Python by threads of streams that have not returned.
static NUM_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Time that a call has to return before the interpreter ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Counts a call from before it attaches until after it has detached.
struct Calling;

impl Calling {
    fn new() -> Self {
        NUM_CALLS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        NUM_CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until no thread of a stream runs Python code. The interpreter must not end before, because it
/// aborts if such a thread returns later.
#[pyfunction]
fn wait_for_stream_calls(py: Python<'_>) {
    py.detach(|| {
        let started = Instant::now();
        while NUM_CALLS.load(Ordering::SeqCst) > 0 && started.elapsed() < END_TIME {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// The samples of a batch that is not stacked, and the columns of the sample itself.
type RowsAndColumns<'py> = (Option<Bound<'py, PyList>>, Bound<'py, PyAny>);

/// A position, and those in lanes.
type PositionAndLanes<'py> = (Bound<'py, PyBytes>, HashMap<u64, Bound<'py, PyBytes>>);

/// Keeps an exception for the caller and returns the error that stands for it.
fn keep(py: Python<'_>, raised: &Raised, error: PyErr) -> Error {
    let text = error.value(py).to_string();
    lock(raised).get_or_insert(error);
    Error::Stream(StreamError::Function(text))
}

/// A running stream; used by `packtok.stream`.
#[pyclass(frozen, name = "Stream", module = "packtok._packtok")]
pub(crate) struct PyStream {
    stream: Mutex<Option<Stream>>,
    raised: Raised,
    /// Ends a thread that waits for the next sample.
    is_closing: Arc<AtomicBool>,
    /// Its threads exist in this process only.
    process: u32,
}

#[pymethods]
impl PyStream {
    /// Starts the stream of `recipe`, a list of nodes as JSON, whose numbered objects are `objects`.
    ///
    /// Begins at `state` if it is given.
    #[new]
    #[pyo3(signature = (recipe, objects, *, num_threads, state=None))]
    fn new(
        py: Python<'_>,
        recipe: &str,
        objects: Vec<Py<PyAny>>,
        num_threads: usize,
        state: Option<(Vec<u8>, LaneStates)>,
    ) -> PyResult<Self> {
        let spec: RecipeSpec = serde_json::from_str(recipe)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let raised = Raised::default();
        let objects = PyObjects {
            objects,
            raised: Arc::clone(&raised),
        };
        let signals = Arc::clone(&raised);
        let is_closing = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&is_closing);
        let tick = move || {
            if closing.load(Ordering::Relaxed) {
                return Err(Error::Pipeline(PipelineError::Cancelled));
            }
            Python::attach(|py| py.check_signals()).map_err(|error| {
                lock(&signals).get_or_insert(error);
                Error::Pipeline(PipelineError::Cancelled)
            })
        };
        let started = py.detach(|| {
            let recipe = spec.recipe(&objects)?;
            let state = state.map(|(position, lanes)| StreamState { position, lanes });
            Stream::new(recipe, num_threads, state.as_ref(), Arc::new(tick))
        });
        let this = Self {
            stream: Mutex::new(None),
            raised,
            is_closing,
            process: std::process::id(),
        };
        let stream = started.map_err(|error| this.error(error))?;
        *lock(&this.stream) = Some(stream);
        Ok(this)
    }

    /// The next sample as a tuple of rows and columns; `None` at the end.
    ///
    /// Rows are the samples of a batch whose columns cannot be arrays of two dimensions, else
    /// `None`. Ids are arrays of int64.
    #[pyo3(signature = (*, stacked))]
    fn next<'py>(&self, py: Python<'py>, stacked: bool) -> PyResult<Option<RowsAndColumns<'py>>> {
        let next = py.detach(|| self.with(|stream| stream.next_sample()));
        let sample = next?.map_err(|error| self.error(error))?;
        let Some(mut sample) = sample else {
            return Ok(None);
        };
        let Some(rows) = sample.rows.take() else {
            return Ok(Some((None, to_python(py, sample)?)));
        };
        if stacked && let Some(columns) = stack(py, &rows)? {
            add_columns(py, &columns, &sample)?;
            return Ok(Some((None, columns.into_any())));
        }
        let rows = rows.into_iter().map(|row| to_python(py, row));
        let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?;
        Ok(Some((Some(rows), to_python(py, sample)?)))
    }

    /// Passes over the next samples; returns how many there were.
    fn skip(&self, py: Python<'_>, count: u64) -> PyResult<u64> {
        for passed in 0..count {
            let next = py.detach(|| self.with(|stream| stream.next_sample()));
            if next?.map_err(|error| self.error(error))?.is_none() {
                return Ok(passed);
            }
        }
        Ok(count)
    }

    /// The state before the next sample: the position, and those in the lanes that are read.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<PositionAndLanes<'py>> {
        let state = py.detach(|| self.with(|stream| stream.state()))?;
        let lanes = state.lanes.iter();
        let lanes = lanes.map(|(&lane, position)| (lane, PyBytes::new(py, position)));
        Ok((PyBytes::new(py, &state.position), lanes.collect()))
    }

    /// What was left out so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = py.detach(|| self.with(|stream| stream.counts()))?;
        json::to_python(py, &counts)
    }

    /// Ends the stream and its threads.
    fn close(&self, py: Python<'_>) {
        self.is_closing.store(true, Ordering::Relaxed);
        py.detach(|| drop(lock(&self.stream).take()));
    }
}

impl PyStream {
    /// Works with the stream. The caller must be detached: a function that the stream calls waits for the GIL.
    fn with<T>(&self, work: impl FnOnce(&mut Stream) -> T) -> PyResult<T> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this stream was started before the process was forked; start it in the new process",
            ));
        }
        match &mut *lock(&self.stream) {
            Some(stream) => Ok(work(stream)),
            None => Err(closed()),
        }
    }

    /// The exception for an error: that of Python if it was raised there.
    fn error(&self, error: Error) -> PyErr {
        if self.is_closing.load(Ordering::Relaxed) {
            return closed();
        }
        lock(&self.raised)
            .take()
            .unwrap_or_else(|| core_error(error))
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the stream is closed")
}

/// The objects of a recipe.
struct PyObjects {
    objects: Vec<Py<PyAny>>,
    raised: Raised,
}

impl Objects for PyObjects {
    fn tokenizer(&self, number: usize) -> Result<Tokenizer> {
        Python::attach(|py| {
            let tokenizer = self.objects[number].bind(py).cast::<PyTokenizer>();
            let tokenizer = tokenizer.map_err(|error| keep(py, &self.raised, error.into()))?;
            Ok(tokenizer.get().inner.clone())
        })
    }

    fn function(&self, number: usize) -> Arc<dyn Function> {
        Arc::new(self.callable(number))
    }

    fn samples(&self, number: usize, lane: Option<Shard>) -> Result<Box<dyn Samples>> {
        let mut samples = self.callable(number);
        if let Some(lane) = lane {
            samples.object = Python::attach(|py| {
                let part = (lane.index(), lane.count());
                let divided = samples.object.call_method1(py, "lane", part);
                divided.map_err(|error| keep(py, &self.raised, error))
            })?;
        }
        Ok(Box::new(samples))
    }
}

impl PyObjects {
    fn callable(&self, number: usize) -> PyCallable {
        PyCallable {
            object: Python::attach(|py| self.objects[number].clone_ref(py)),
            raised: Arc::clone(&self.raised),
        }
    }
}

/// An object of Python: a function of lists of samples, or a source with `next` and `seek`.
struct PyCallable {
    object: Py<PyAny>,
    raised: Raised,
}

impl Function for PyCallable {
    fn call(&self, samples: Vec<Sample>) -> (Vec<Option<Sample>>, Result<()>) {
        let _calling = Calling::new();
        let called = Python::try_attach(|py| {
            let call = || -> PyResult<_> {
                let samples = samples.into_iter().map(|sample| to_python(py, sample));
                let samples = PyList::new(py, samples.collect::<PyResult<Vec<_>>>()?)?;
                let (results, error): (Vec<Option<Py<PyAny>>>, Option<Py<PyAny>>) =
                    self.object.call1(py, (samples,))?.extract(py)?;
                let results = results.into_iter().map(|one| one.map(foreign));
                let ended = match error {
                    None => Ok(()),
                    Some(error) => Err(PyErr::from_value(error.into_bound(py))),
                };
                Ok((results.collect(), ended))
            };
            let (results, ended) = call().unwrap_or_else(|error| (Vec::new(), Err(error)));
            (
                results,
                ended.map_err(|error| keep(py, &self.raised, error)),
            )
        });
        called.unwrap_or_else(|| (Vec::new(), Err(Error::Pipeline(PipelineError::Cancelled))))
    }
}

impl Samples for PyCallable {
    fn next(&mut self, limit: usize) -> Result<Vec<Sample>> {
        let _calling = Calling::new();
        Python::attach(|py| {
            let samples = self.object.call_method1(py, "next", (limit,));
            let samples = samples.and_then(|samples| samples.extract::<Vec<Py<PyAny>>>(py));
            let samples = samples.map_err(|error| keep(py, &self.raised, error))?;
            Ok(samples.into_iter().map(foreign).collect())
        })
    }

    fn seek(&mut self, number: u64) -> Result<()> {
        Python::attach(|py| {
            let result = self.object.call_method1(py, "seek", (number,));
            result
                .map(drop)
                .map_err(|error| keep(py, &self.raised, error))
        })
    }
}

/// A dict of Python.
struct Dict(Py<PyAny>);

fn foreign(object: Py<PyAny>) -> Sample {
    Sample {
        foreign: Some(Box::new(Dict(object))),
        ..Sample::default()
    }
}

impl ForeignSample for Dict {
    fn text(&self, column: &str) -> Option<String> {
        Python::attach(|py| self.0.bind(py).get_item(column).ok()?.extract().ok())
    }

    fn ids(&self, column: &str) -> Option<Vec<u32>> {
        Python::attach(|py| {
            let tokens = py.import("packtok.stream.tokens").ok()?;
            let ids = tokens.getattr("ids_of").ok()?;
            let ids = ids.call1((self.0.bind(py).get_item(column).ok()?,)).ok()?;
            ids.cast::<PyArray1<u32>>().ok()?.to_vec().ok()
        })
    }

    fn set(&mut self, column: &str, value: &Value) {
        Python::attach(|py| {
            // A copy: the caller may still use its sample.
            let copied = self.0.bind(py).call_method0("copy");
            if let Ok(copied) = copied
                && copied.set_item(column, to_value(py, value)).is_ok()
            {
                self.0 = copied.unbind();
            }
        });
    }
}

/// The paths and lengths in bytes of the files of a stream. A missing or unreadable file is an error.
#[pyfunction]
#[pyo3(signature = (inputs, format=None))]
fn stream_files(
    py: Python<'_>,
    inputs: Vec<String>,
    format: Option<String>,
) -> PyResult<Vec<(String, u64)>> {
    let format = format.map(|name| choice("format", &name)).transpose()?;
    let sources = py.detach(|| expand(&inputs, format)).map_err(core_error)?;
    let file = |source: Source| (source.path.to_string_lossy().into_owned(), source.bytes);
    Ok(sources.into_iter().map(file).collect())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStream>()?;
    module.add_function(wrap_pyfunction!(wait_for_stream_calls, module)?)?;
    module.add_function(wrap_pyfunction!(stream_files, module)?)
}

/// The dict of a sample.
fn to_python(py: Python<'_>, sample: Sample) -> PyResult<Bound<'_, PyAny>> {
    if let Some(foreign) = sample.foreign {
        let foreign: Box<dyn std::any::Any> = foreign;
        let dict = foreign.downcast::<Dict>();
        let dict = dict.map_err(|_| PyRuntimeError::new_err("a sample is not one of Python"))?;
        return Ok(dict.0.into_bound(py));
    }
    let dict = match &sample.record {
        Some(SourceRecord::JsonLine(line)) => {
            let loaded = py
                .import("json")?
                .call_method1("loads", (line.as_slice(),))?;
            loaded.cast_into::<PyDict>()?
        }
        record => {
            let dict = PyDict::new(py);
            if let Some(SourceRecord::Text(column, text)) = record {
                dict.set_item(&**column, String::from_utf8_lossy(text))?;
            }
            dict
        }
    };
    add_columns(py, &dict, &sample)?;
    Ok(dict.into_any())
}

fn add_columns(py: Python<'_>, dict: &Bound<'_, PyDict>, sample: &Sample) -> PyResult<()> {
    for (name, value) in &sample.columns {
        dict.set_item(&**name, to_value(py, value))?;
    }
    Ok(())
}

fn to_value<'py>(py: Python<'py>, value: &Value) -> Bound<'py, PyAny> {
    let array = |ids: Vec<i64>| ids.into_pyarray(py).into_any();
    match value {
        Value::Ids(ids) => array(ids.iter().map(|&id| i64::from(id)).collect()),
        Value::Ones(len) => array(vec![1; *len]),
        Value::Integer(number) => number
            .into_pyobject(py)
            .map_or_else(|never| match never {}, |number| number.into_any()),
    }
}

/// The columns of rows as arrays of two dimensions; `None` if they are not such rows.
fn stack<'py>(py: Python<'py>, rows: &[Sample]) -> PyResult<Option<Bound<'py, PyDict>>> {
    let mut columns: HashMap<&str, Vec<i64>> = HashMap::new();
    let first = &rows[0];
    let is_plain = |row: &Sample| row.foreign.is_none() && row.record.is_none();
    for row in rows {
        if !is_plain(row) || row.columns.len() != first.columns.len() {
            return Ok(None);
        }
        for ((name, value), (known, like)) in row.columns.iter().zip(&first.columns) {
            if name != known || value.num_tokens() != like.num_tokens() {
                return Ok(None);
            }
            let len = rows.len() * value.num_tokens().unwrap_or(1);
            let column = columns
                .entry(name)
                .or_insert_with(|| Vec::with_capacity(len));
            match value {
                Value::Ids(ids) => column.extend(ids.iter().map(|&id| i64::from(id))),
                Value::Ones(len) => column.resize(column.len() + len, 1),
                Value::Integer(number) => column.push(*number),
            }
        }
    }
    let dict = PyDict::new(py);
    for (name, value) in &first.columns {
        let Some(column) = columns.remove(&**name) else {
            return Ok(None);
        };
        let array = column.into_pyarray(py);
        match value.num_tokens() {
            Some(len) => dict.set_item(&**name, array.reshape([rows.len(), len])?)?,
            None => dict.set_item(&**name, array)?,
        }
    }
    Ok(Some(dict))
}
