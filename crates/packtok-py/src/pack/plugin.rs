//! Source plug-ins written in Python. A separate thread produces the documents of a part.
//!
//! One thread runs all Python code of a part, because objects such as connections may belong to a
//! thread. The thread collects documents into batches and waits without the GIL while the queue is
//! full, so tokenizing never waits for the GIL.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use packtok_corpus::field::NoText;
use packtok_corpus::{CHUNK_BYTES, DocumentBatch, Documents, Error, PartOfCorpus, Plugin, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple};

use crate::boundary::calls::{ends_program, lock};

/// Documents of a batch at most.
const BATCH_DOCUMENTS: usize = 512;
/// Time after which a batch is handed over, however small it is.
const BATCH_TIME: Duration = Duration::from_millis(100);
/// Batches that wait in the queue.
const QUEUED_BATCHES: usize = 2;
/// Time that the plug-in has to end its current document after the run has ended.
const STOP_TIME: Duration = Duration::from_secs(5);

/// A plug-in in Python: an object with `name`, `is_resumable`, `parts(corpus)` and
/// `open(corpus, part, start)`.
pub(crate) struct PyPlugin {
    object: Py<PyAny>,
    name: String,
    is_resumable: bool,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// The first exception that ends the program.
    interruption: Arc<Mutex<Option<PyErr>>>,
}

impl PyPlugin {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        Ok(Arc::new(Self {
            name: object.getattr("name")?.extract()?,
            is_resumable: object.getattr("is_resumable")?.extract()?,
            object: object.clone().unbind(),
            queues: Mutex::default(),
            interruption: Arc::default(),
        }))
    }

    /// Ends the threads of this plug-in. Must be called when the run is over: a thread in Python must
    /// not outlive the interpreter.
    pub(crate) fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            for queue in lock(&self.queues)
                .drain(..)
                .filter_map(|queue| queue.upgrade())
            {
                queue.close();
                queue.wait_for_producer();
            }
        });
    }

    /// The exception of the run: an exception of this plug-in that ends the program, with the
    /// notes of `error`; otherwise `error`.
    pub(crate) fn error_or(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let Some(interruption) = lock(&self.interruption).take() else {
            return error;
        };
        let notes = error.value(py).getattr_opt("__notes__");
        let noted = notes.and_then(|notes| match notes {
            Some(notes) => interruption.value(py).setattr("__notes__", notes),
            None => Ok(()),
        });
        match noted {
            Ok(()) => interruption,
            Err(failed) => {
                failed.set_cause(py, Some(interruption));
                failed
            }
        }
    }

    fn error(&self, py: Python<'_>, place: String, error: PyErr) -> Error {
        if ends_program(py, &error) {
            lock(&self.interruption).get_or_insert(error);
            return packtok_jobs::Error::Cancelled.into();
        }
        Error::Plugin {
            plugin: self.name.clone(),
            place,
            cause: cause(py, &error),
        }
    }
}

/// The type and the message of an exception, and where it was raised.
fn cause(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map(|name| name.to_string());
    let message = error.value(py).to_string();
    let mut text = kind.unwrap_or_default();
    if !message.is_empty() {
        text = format!("{text}: {message}");
    }
    let place = || -> PyResult<String> {
        let mut last = error.traceback(py).map(Bound::into_any);
        while let Some(next) = last.as_ref().map(|tb| tb.getattr("tb_next")).transpose()? {
            if next.is_none() {
                break;
            }
            last = Some(next);
        }
        let Some(last) = last else {
            return Ok(String::new());
        };
        let line: u64 = last.getattr("tb_lineno")?.extract()?;
        let code = last.getattr("tb_frame")?.getattr("f_code")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        Ok(format!(" ({file}, line {line})"))
    };
    text + &place().unwrap_or_default()
}

impl Plugin for PyPlugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_resumable(&self) -> bool {
        self.is_resumable
    }

    fn parts(&self, corpus: &str) -> Result<Option<Vec<String>>> {
        Python::attach(|py| {
            let parts = self.object.call_method1(py, "parts", (corpus,));
            parts
                .and_then(|parts| parts.extract(py))
                .map_err(|error| self.error(py, format!("parts of {corpus}"), error))
        })
    }

    fn open(
        &self,
        part: PartOfCorpus<'_>,
        start: u64,
        max_document_bytes: u64,
    ) -> Result<Box<dyn Documents>> {
        let queue = Arc::new(Queue::default());
        lock(&self.queues).retain(|queue| queue.strong_count() > 0);
        lock(&self.queues).push(Arc::downgrade(&queue));
        let producer = Producer {
            plugin: Self {
                object: Python::attach(|py| self.object.clone_ref(py)),
                name: self.name.clone(),
                is_resumable: self.is_resumable,
                queues: Mutex::default(),
                interruption: Arc::clone(&self.interruption),
            },
            corpus: part.corpus.to_owned(),
            part: part.name.map(str::to_owned),
            start,
            max_document_bytes,
            queue: Arc::clone(&queue),
        };
        lock(&queue.state).is_producing = true;
        let started = std::thread::Builder::new()
            .name("packtok-source".to_owned())
            .spawn(move || producer.run());
        if let Err(source) = started {
            lock(&queue.state).is_producing = false;
            return Err(Error::Jobs(packtok_jobs::Error::Threads {
                purpose: "the thread of a source plug-in",
                source,
            }));
        }
        Ok(Box::new(Consumer(queue)))
    }
}

/// Batches on their way from the producing thread to the reader.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// `None` marks the end.
    batches: VecDeque<Result<Option<DocumentBatch>>>,
    /// The consumer needs no more batches.
    is_closed: bool,
    /// The producing thread runs.
    is_producing: bool,
}

impl Queue {
    /// Adds a batch when there is room; returns false if the consumer needs no more batches.
    fn push(&self, batch: Result<Option<DocumentBatch>>) -> bool {
        let is_full = |state: &mut State| state.batches.len() >= QUEUED_BATCHES && !state.is_closed;
        let waited = self.changed.wait_while(lock(&self.state), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.batches.push_back(batch);
        self.changed.notify_all();
        !state.is_closed
    }

    fn pop(&self) -> Result<Option<DocumentBatch>> {
        let is_empty =
            |state: &mut State| state.batches.is_empty() && !state.is_closed && state.is_producing;
        let waited = self.changed.wait_while(lock(&self.state), is_empty);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return Err(packtok_jobs::Error::Cancelled.into());
        }
        let batch = state.batches.pop_front();
        self.changed.notify_all();
        // Without an end, the producing thread has panicked.
        batch.unwrap_or(Err(Error::Jobs(packtok_jobs::Error::WorkerDied)))
    }

    fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    fn wait_for_producer(&self) {
        let is_producing = |state: &mut State| state.is_producing;
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.state), STOP_TIME, is_producing);
        drop(waited);
    }
}

/// The reader's end of a queue.
struct Consumer(Arc<Queue>);

impl Documents for Consumer {
    fn next(&mut self) -> Result<Option<DocumentBatch>> {
        self.0.pop()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The thread that runs the Python code of a part.
struct Producer {
    plugin: PyPlugin,
    corpus: String,
    part: Option<String>,
    start: u64,
    max_document_bytes: u64,
    queue: Arc<Queue>,
}

/// Notifies the queue that its producer has ended, also after a panic.
struct Ending(Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        lock(&self.0.state).is_producing = false;
        self.0.changed.notify_all();
    }
}

impl Producer {
    fn run(self) {
        let _ending = Ending(Arc::clone(&self.queue));
        // Attached once, because thread-local values of Python end with the attachment.
        Python::try_attach(|py| {
            if let Err(error) = self.produce(py) {
                py.detach(|| self.queue.push(Err(error)));
            }
            drop(self);
        });
    }

    /// The position of document `number`, from 0; without a number, of the part.
    fn place(&self, number: Option<u64>) -> String {
        let part = PartOfCorpus {
            corpus: &self.corpus,
            name: self.part.as_deref(),
        };
        match number {
            None => part.to_string(),
            Some(number) => format!("{part}: document {}", number + 1),
        }
    }

    fn produce(&self, py: Python<'_>) -> Result<()> {
        let opened = (self.plugin.object.bind(py))
            .call_method1("open", (&self.corpus, &self.part, self.start))
            .and_then(|documents| documents.try_iter());
        let mut documents =
            opened.map_err(|error| self.plugin.error(py, self.place(None), error))?;
        let mut number = self.start;
        loop {
            let (batch, end) = self.collect(&mut documents, &mut number);
            let is_wanted = py.detach(|| {
                (batch.num_documents() == 0 || self.queue.push(Ok(Some(batch))))
                    && !self.queue.is_closed()
            });
            match end {
                _ if !is_wanted => return Ok(()),
                None => {}
                Some(Ok(())) => {
                    py.detach(|| self.queue.push(Ok(None)));
                    return Ok(());
                }
                Some(Err(error)) => {
                    return Err(self.plugin.error(py, self.place(Some(number)), error));
                }
            }
        }
    }

    /// The next batch. Also returns the end of the documents, if they ended after the batch.
    fn collect(
        &self,
        documents: &mut Bound<'_, PyIterator>,
        number: &mut u64,
    ) -> (DocumentBatch, Option<PyResult<()>>) {
        let mut batch = DocumentBatch::default();
        let started = Instant::now();
        while batch.num_documents() < BATCH_DOCUMENTS && batch.len_bytes() < CHUNK_BYTES {
            match documents.next() {
                None => return (batch, Some(Ok(()))),
                Some(document) => {
                    let added = document.and_then(|document| self.add(&document, &mut batch));
                    if let Err(error) = added {
                        return (batch, Some(Err(error)));
                    }
                }
            }
            *number += 1;
            if started.elapsed() >= BATCH_TIME || self.queue.is_closed() {
                break;
            }
        }
        (batch, None)
    }

    fn add(&self, document: &Bound<'_, PyAny>, batch: &mut DocumentBatch) -> PyResult<()> {
        if let Ok(text) = document.cast::<PyString>() {
            match text.to_str() {
                Ok(text) => batch.push_text(text.as_bytes(), self.max_document_bytes),
                Err(_) => batch.push_text(&bytes_of(text)?, self.max_document_bytes),
            }
        } else if let Ok(bytes) = document.cast::<PyBytes>() {
            batch.push_text(bytes.as_bytes(), self.max_document_bytes);
        } else {
            batch.push_no_text(NoText::OtherType(type_of(document)));
        }
        Ok(())
    }
}

/// The bytes of a text. A lone surrogate becomes invalid UTF-8, which makes the document a bad
/// document.
pub(crate) fn bytes_of(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// The type of a document that is no text, for the message.
pub(crate) fn type_of(document: &Bound<'_, PyAny>) -> &'static str {
    match () {
        () if document.is_none() => "None",
        () if document.is_instance_of::<PyDict>() => "a dict",
        () if document.is_instance_of::<PyList>() => "a list",
        () if document.is_instance_of::<PyTuple>() => "a tuple",
        () if document.is_instance_of::<PyBool>() => "a bool",
        () if document.is_instance_of::<PyInt>() => "an int",
        () if document.is_instance_of::<PyFloat>() => "a float",
        () => "an object of another type",
    }
}
