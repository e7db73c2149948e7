//! `Stream`: a running stream, and the functions and samples of Python in it.

mod samples;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use packtok_corpus::{ForeignFiles, Source, expand_with};
use packtok_jobs::Shard;
use packtok_stream::{Error, Result};
use packtok_stream::{
    Function, LaneStates, LocatedRow, Objects, Sample, SampleKey, SampleOrigin, Samples, Spec,
    Stream, StreamState, take_located,
};
use packtok_tokenizer::Tokenizer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use self::samples::{Dict, sample_of, stack, to_python};
use crate::boundary::calls::{Calling, Raised, attached, ends_program, keep, lock};
use crate::boundary::error::{corpus_error, stream_error};
use crate::boundary::values;
use crate::pack::scans::selection;
use crate::store::foreign;
use crate::tokenizer::PyTokenizer;

/// The first exception that kept outputs out of a state.
type NotPacked = Arc<Mutex<Option<PyErr>>>;

/// A position, and the positions in the lanes.
type PositionAndLanes<'py> = (Bound<'py, PyBytes>, HashMap<u64, Bound<'py, PyBytes>>);

/// Path, offset and description of a document, if it is from a file; the first of its tokens and
/// the end of its tokens.
type DocumentOfRow = (Option<(String, u64, String)>, Option<(u64, u64)>);

/// A running stream; used by `packtok.stream`.
#[pyclass(frozen, name = "Stream", module = "packtok._packtok")]
pub(crate) struct PyStream {
    stream: Mutex<Option<Stream>>,
    raised: Raised,
    /// The reason why outputs could not be stored in a state.
    not_packed: NotPacked,
    /// The documents of the last sample, for each row of it.
    located: Mutex<Vec<LocatedRow>>,
    /// Ends a thread that waits for the next sample.
    is_closing: Arc<AtomicBool>,
    /// The process that created the stream. Its threads only exist in this process.
    process: u32,
}

#[pymethods]
impl PyStream {
    /// Starts the stream of `spec`, a list of steps as JSON. `objects` are its numbered objects.
    ///
    /// Begins at `state`, if set.
    #[new]
    #[pyo3(signature = (spec, objects, *, num_threads, state=None))]
    fn new(
        py: Python<'_>,
        spec: &str,
        objects: Vec<Py<PyAny>>,
        num_threads: usize,
        state: Option<(Vec<u8>, LaneStates)>,
    ) -> PyResult<Self> {
        let spec = Spec::from_json(spec).map_err(stream_error)?;
        let (raised, not_packed) = (Raised::default(), NotPacked::default());
        let objects = PyObjects {
            objects,
            raised: raised.clone(),
            not_packed: Arc::clone(&not_packed),
        };
        let signals = raised.clone();
        let is_closing = Arc::new(AtomicBool::new(false));
        let closing = Arc::clone(&is_closing);
        let tick = move || {
            if closing.load(Ordering::Relaxed) {
                return Err(Error::from(packtok_jobs::Error::Cancelled));
            }
            Python::attach(|py| py.check_signals()).map_err(|error| {
                signals.interrupt(error);
                Error::from(packtok_jobs::Error::Cancelled)
            })
        };
        let started = py.detach(|| {
            let state = state.map(|(position, lanes)| StreamState { position, lanes });
            Stream::new(&spec, &objects, num_threads, state.as_ref(), Arc::new(tick))
        });
        let this = Self {
            stream: Mutex::new(None),
            raised,
            not_packed,
            located: Mutex::default(),
            is_closing,
            process: std::process::id(),
        };
        let stream = started.map_err(|error| this.error(error))?;
        *lock(&this.stream) = Some(stream);
        Ok(this)
    }

    /// The next sample; `None` at the end. A batch is a dict of arrays in memory that `allocate`
    /// returns. If its samples cannot be stacked, or without `allocate`, it is a `Rows` object of
    /// Python.
    ///
    /// `allocate` is called with the dtypes and shapes of the columns of a batch. It returns a
    /// pair for each: the object in the batch, and the array of its memory.
    #[pyo3(signature = (allocate=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        allocate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let sample = self.next_sample(py)?;
        // A function that is called with several samples may have been interrupted at a sample
        // after this one.
        self.check_interruption(py)?;
        let Some(mut sample) = sample else {
            return Ok(None);
        };
        *lock(&self.located) = take_located(&mut sample);
        let stacked = match (allocate, &sample.rows) {
            (Some(allocate), Some(rows)) => stack(py, rows, &sample, allocate),
            _ => Ok(None),
        };
        let converted = match stacked {
            Ok(Some(batch)) => Ok(batch),
            Ok(None) => to_python(py, sample),
            Err(error) => Err(error),
        };
        // A stream that lost a sample must not continue.
        if let Err(error) = &converted {
            let reason = error.to_string();
            py.detach(|| self.with(|stream| stream.fail(reason)))?;
        }
        converted.map(Some)
    }

    /// Ends the stream with a reason that every later call of `next` raises. Does nothing if the
    /// stream has ended or if this thread is using it.
    fn fail(&self, py: Python<'_>, reason: String) {
        if self.process != std::process::id() || self.raised.is_user() {
            return;
        }
        py.detach(|| {
            if let Some(stream) = &mut *lock(&self.stream) {
                stream.fail(reason);
            }
        });
    }

    /// Skips the next `count` samples; returns the number of samples skipped.
    fn skip(&self, py: Python<'_>, count: u64) -> PyResult<u64> {
        lock(&self.located).clear();
        for passed in 0..count {
            if self.next_sample(py)?.is_none() {
                return Ok(passed);
            }
            py.check_signals()?;
        }
        Ok(count)
    }

    /// The state before the next sample: the position, and the positions in the lanes that are
    /// read.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<PositionAndLanes<'py>> {
        let state = py.detach(|| self.with(|stream| stream.state()))?;
        self.check_interruption(py)?;
        if let Some(error) = lock(&self.not_packed).take() {
            return Err(error);
        }
        let lanes = state.lanes.iter();
        let lanes = lanes.map(|(&lane, position)| (lane, PyBytes::new(py, position)));
        Ok((PyBytes::new(py, &state.position), lanes.collect()))
    }

    /// The documents of the last sample: for each row, paths and offsets, and the range of the
    /// document's tokens that the row contains.
    fn located(&self) -> Vec<Vec<DocumentOfRow>> {
        let document = |place: &SampleOrigin| {
            let path = place.path().to_string_lossy().into_owned();
            (path, place.offset, place.to_string())
        };
        let documents_of = |row: &LocatedRow| match row {
            LocatedRow::Document(place) => vec![(place.as_ref().map(document), None)],
            LocatedRow::Row(parts) => {
                let parts = parts.iter().map(|(part, len)| {
                    let tokens = (part.start, part.start + u64::from(*len));
                    (part.place.as_ref().map(document), Some(tokens))
                });
                parts.collect()
            }
        };
        lock(&self.located).iter().map(documents_of).collect()
    }

    /// Counts of the documents and tokens that were dropped so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = py.detach(|| self.with(|stream| stream.counts()))?;
        values::to_python(py, &counts)
    }

    /// Ends the stream and its threads.
    fn close(&self, py: Python<'_>) {
        self.is_closing.store(true, Ordering::Relaxed);
        // If this thread is using the stream, the stream ends at the next poll.
        if !self.raised.is_user() {
            py.detach(|| drop(lock(&self.stream).take()));
        }
    }
}

impl PyStream {
    fn next_sample(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        let next = py.detach(|| self.with(|stream| stream.next_sample()));
        next?.map_err(|error| self.error(error))
    }

    /// Raises an interruption that the interrupted call did not report, and ends the stream.
    fn check_interruption(&self, py: Python<'_>) -> PyResult<()> {
        let Some(interruption) = self.raised.take_interruption() else {
            return Ok(());
        };
        let reason = interruption.to_string();
        py.detach(|| self.with(|stream| stream.fail(reason)))?;
        Err(interruption)
    }

    /// Calls `work` with the stream. The caller must have released the GIL, because a function
    /// that the stream calls waits for the GIL.
    fn with<T>(&self, work: impl FnOnce(&mut Stream) -> T) -> PyResult<T> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this stream was started before the process was forked; start it in the new process",
            ));
        }
        if self.raised.is_user() {
            return Err(PyRuntimeError::new_err(
                "the stream is in use by this thread, which a signal handler or a function of the stream interrupts; set a flag there, and call this after next has returned",
            ));
        }
        let mut stream = lock(&self.stream);
        self.raised.set_user(Some(std::thread::current().id()));
        let result = match &mut *stream {
            Some(stream) => Ok(work(stream)),
            None => Err(closed()),
        };
        self.raised.set_user(None);
        result
    }

    /// The exception for an error: the original exception if Python raised it.
    fn error(&self, error: Error) -> PyErr {
        if let Some(interruption) = self.raised.take_interruption() {
            return interruption;
        }
        if self.is_closing.load(Ordering::Relaxed) {
            return closed();
        }
        let raised = self.raised.take(&error);
        raised.unwrap_or_else(|| stream_error(error))
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the stream is closed")
}

/// The objects of a stream.
struct PyObjects {
    objects: Vec<Py<PyAny>>,
    raised: Raised,
    not_packed: NotPacked,
}

impl Objects for PyObjects {
    fn tokenizer(&self, number: usize) -> Result<Tokenizer> {
        Python::attach(|py| {
            let tokenizer = self.objects[number].bind(py).cast::<PyTokenizer>();
            let tokenizer = tokenizer.map_err(|error| keep(py, &self.raised, error.into()))?;
            Ok(tokenizer.get().inner.clone())
        })
    }

    fn function(&self, number: usize) -> Result<Arc<dyn Function>> {
        let callable = self.callable(number);
        let keeps = Python::attach(|py| {
            let keeps = callable.object.bind(py).getattr("keeps_outputs");
            let keeps = keeps.and_then(|keeps| keeps.is_truthy());
            keeps.map_err(|error| keep(py, &self.raised, error))
        });
        Ok(Arc::new(PyFunction {
            keeps_outputs: keeps?,
            callable,
        }))
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

    fn files(&self, number: usize) -> ForeignFiles {
        let object = Python::attach(|py| self.objects[number].clone_ref(py));
        foreign::files(object, &self.raised)
    }
}

impl PyObjects {
    fn callable(&self, number: usize) -> PyCallable {
        PyCallable {
            object: Python::attach(|py| self.objects[number].clone_ref(py)),
            raised: self.raised.clone(),
            not_packed: Arc::clone(&self.not_packed),
        }
    }
}

/// An object of Python: a function of lists of samples, or a source with `next` and `seek`.
struct PyCallable {
    object: Py<PyAny>,
    raised: Raised,
    not_packed: NotPacked,
}

struct PyFunction {
    callable: PyCallable,
    keeps_outputs: bool,
}

impl Function for PyFunction {
    fn call(&self, samples: Vec<Sample>, keys: &[SampleKey]) -> (Vec<Option<Sample>>, Result<()>) {
        let PyCallable { object, raised, .. } = &self.callable;
        let _calling = Calling::new();
        let called = Python::try_attach(|py| {
            let call = || -> PyResult<_> {
                let samples = samples.into_iter().map(|sample| to_python(py, sample));
                let samples = PyList::new(py, samples.collect::<PyResult<Vec<_>>>()?)?;
                let (results, error): (Vec<Option<Py<PyAny>>>, Option<Py<PyAny>>) =
                    object.call1(py, (samples, keys))?.extract(py)?;
                let results = results
                    .into_iter()
                    .map(|result| result.map(|dict| sample_of(py, dict, raised)));
                let ended = match error {
                    None => Ok(()),
                    Some(error) => Err(PyErr::from_value(error.into_bound(py))),
                };
                Ok((results.collect(), ended))
            };
            let (results, ended) = call().unwrap_or_else(|error| (Vec::new(), Err(error)));
            (results, ended.map_err(|error| keep(py, raised, error)))
        });
        called.unwrap_or_else(|| (Vec::new(), Err(Error::from(packtok_jobs::Error::Cancelled))))
    }

    fn keeps_outputs(&self) -> bool {
        self.keeps_outputs
    }

    fn pack(&self, samples: &[&Sample]) -> Vec<u8> {
        Python::attach(|py| {
            let dicts = samples
                .iter()
                .filter_map(|sample| sample.foreign.as_deref())
                .filter_map(|foreign| (foreign as &dyn std::any::Any).downcast_ref::<Dict>());
            let object = self.callable.object.bind(py);
            let packed = PyList::new(py, dicts.map(|dict| dict.dict.bind(py)))
                .and_then(|dicts| object.call_method1("pack", (dicts,)))
                .and_then(|packed| packed.extract());
            packed.unwrap_or_else(|error| {
                if ends_program(py, &error) {
                    self.callable.raised.interrupt(error)
                } else {
                    // `PyStream::state` raises it.
                    lock(&self.callable.not_packed).get_or_insert(error);
                }
                Vec::new()
            })
        })
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Vec<Sample>> {
        Python::attach(|py| {
            let PyCallable { object, raised, .. } = &self.callable;
            let unpacked = object.call_method1(py, "unpack", (bytes,));
            let unpacked = unpacked.and_then(|dicts| dicts.extract::<Vec<Py<PyAny>>>(py));
            let unpacked = unpacked.map_err(|error| keep(py, raised, error))?;
            let unpacked = unpacked.into_iter();
            Ok(unpacked.map(|dict| sample_of(py, dict, raised)).collect())
        })
    }
}

impl Samples for PyCallable {
    fn next(&mut self, limit: usize) -> Result<Vec<Sample>> {
        attached(|py| {
            let samples = self.object.call_method1(py, "next", (limit,));
            let samples = samples.and_then(|samples| samples.extract::<Vec<Py<PyAny>>>(py));
            let samples = samples.map_err(|error| keep(py, &self.raised, error))?;
            let samples = samples.into_iter();
            Ok(samples
                .map(|dict| sample_of(py, dict, &self.raised))
                .collect())
        })
    }

    fn state(&mut self) -> Result<Option<Vec<u8>>> {
        attached(|py| {
            let state = self.object.call_method0(py, "state");
            let state = state.and_then(|state| state.extract::<Option<Vec<u8>>>(py));
            state.map_err(|error| keep(py, &self.raised, error))
        })
    }

    fn seek(&mut self, number: u64, state: Option<&[u8]>) -> Result<()> {
        attached(|py| {
            let result = self.object.call_method1(py, "seek", (number, state));
            result
                .map(drop)
                .map_err(|error| keep(py, &self.raised, error))
        })
    }
}

/// Checks the stream of `spec`, and returns what is known of it before it runs: `is_endless`,
/// `is_batched`, `is_distributed`, `has_endless_lanes` and `keeps_outputs`. A step that cannot
/// follow another is an error.
#[pyfunction]
pub(crate) fn check_stream<'py>(py: Python<'py>, spec: &str) -> PyResult<Bound<'py, PyAny>> {
    let spec = Spec::from_json(spec).map_err(stream_error)?;
    values::to_python(py, spec.flow())
}

/// The description of the stream of `spec` in a state: a list of dicts.
#[pyfunction]
pub(crate) fn describe_stream<'py>(py: Python<'py>, spec: &str) -> PyResult<Bound<'py, PyAny>> {
    let spec = Spec::from_json(spec).map_err(stream_error)?;
    values::to_python(py, &spec)
}

/// The paths and lengths in bytes of the files of the inputs. A missing or unreadable file is an
/// error.
///
/// `foreign` reads the URLs that packtok does not support. Files that match a glob of `ignore` are
/// left out. A folder stands for the files of `split`, or for all of its files.
#[pyfunction]
#[pyo3(signature = (inputs, format=None, foreign=None, ignore=None, split=None))]
pub(crate) fn corpus_files(
    py: Python<'_>,
    inputs: Vec<String>,
    format: Option<&str>,
    foreign: Option<Py<PyAny>>,
    ignore: Option<Vec<String>>,
    split: Option<&str>,
) -> PyResult<Vec<(String, u64)>> {
    let selection = selection(format, &ignore.unwrap_or_default(), split)?;
    let raised = Raised::default();
    let foreign = foreign.map(|object| foreign::files(object, &raised));
    let expansion = py.detach(|| expand_with(&inputs, &selection, foreign.as_ref()));
    if let Some(interruption) = raised.take_interruption() {
        return Err(interruption);
    }
    let expansion = expansion.map_err(corpus_error)?;
    let file = |source: Source| (source.path.to_string_lossy().into_owned(), source.bytes);
    Ok(expansion.sources.into_iter().map(file).collect())
}
