//! Files at URLs that packtok does not support, read through `packtok.stream.remote`.

use std::ops::Range;
use std::sync::Arc;

use packtok_store::{Bytes, Error, ForeignFile, ForeignFiles, Object, Result};
use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::boundary::calls::{Calling, Raised, ends_program};

/// The files that an object of Python finds.
pub(crate) fn files(object: Py<PyAny>, raised: &Raised) -> packtok_corpus::ForeignFiles {
    packtok_corpus::ForeignFiles::new(Arc::new(PyFiles(PyCaller {
        object: Some(object),
        raised: Some(raised.clone()),
    })))
}

/// Makes `packtok.stream.remote` the default reader for URLs that packtok does not support.
pub(crate) fn use_for_all() {
    let caller = PyCaller {
        object: None,
        raised: None,
    };
    packtok_corpus::ForeignFiles::new(Arc::new(PyFiles(caller))).use_for_all();
}

/// A Python object whose methods are called for a URL.
struct PyCaller {
    /// `None` for the object that all corpora share, which is imported on first use.
    object: Option<Py<PyAny>>,
    /// Keeps an interruption for the caller; `None` if the caller polls for signals.
    raised: Option<Raised>,
}

impl PyCaller {
    /// Calls a method and converts its result.
    fn call<T>(&self, url: &str, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let _calling = Calling::new();
        let called = Python::try_attach(|py| {
            let object = match &self.object {
                Some(object) => Ok(object.bind(py).clone()),
                None => py
                    .import("packtok.stream.remote")
                    .and_then(|module| module.getattr("ALL_FILES")),
            };
            object
                .and_then(|object| call(&object))
                .map_err(|error| self.error(py, url, error))
        });
        called.unwrap_or_else(|| {
            Err(Error::Refused {
                url: url.to_owned(),
                reason: "Python has ended".to_owned(),
            })
        })
    }

    /// Converts an exception to an error whose text contains no credentials.
    fn error(&self, py: Python<'_>, url: &str, error: PyErr) -> Error {
        let url = url.to_owned();
        if error.is_instance_of::<PyFileNotFoundError>(py) {
            return Error::Absent { url };
        }
        let (error, is_changed) = match error.value(py).hasattr("is_changed") {
            Ok(is_changed) => (error, is_changed),
            Err(failed) => (failed, false),
        };
        if is_changed {
            return Error::Changed { url };
        }
        let reason = error.value(py).to_string();
        if ends_program(py, &error) {
            match &self.raised {
                Some(raised) => raised.interrupt(error),
                // The next poll finds it.
                None => drop(
                    py.import("_thread")
                        .and_then(|thread| thread.call_method0("interrupt_main")),
                ),
            }
        }
        Error::Refused { url, reason }
    }
}

struct PyFiles(PyCaller);

impl ForeignFiles for PyFiles {
    fn object(&self, url: &str) -> Result<Object> {
        let (bytes, version) = self
            .0
            .call(url, |files| files.call_method1("status", (url,))?.extract())?;
        Ok(object(url.to_owned(), bytes, version))
    }

    fn matching(&self, pattern: &str) -> Result<Vec<Object>> {
        self.listed("matching", pattern)
    }

    fn list(&self, folder: &str) -> Result<Vec<Object>> {
        self.listed("below", folder)
    }

    fn open(&self, url: &str) -> Result<(Object, Arc<dyn ForeignFile>)> {
        let (file, bytes, version) = self.0.call(url, |files| {
            let file = files.call_method1("open", (url,))?;
            let bytes = file.getattr("bytes")?.extract()?;
            let version = file.getattr("version")?.extract()?;
            Ok((file.unbind(), bytes, version))
        })?;
        let file = PyFile {
            url: url.to_owned(),
            caller: PyCaller {
                object: Some(file),
                raised: self.0.raised.clone(),
            },
        };
        Ok((object(url.to_owned(), bytes, version), Arc::new(file)))
    }
}

impl PyFiles {
    fn listed(&self, method: &str, url: &str) -> Result<Vec<Object>> {
        let files: Vec<(String, u64)> = self
            .0
            .call(url, |files| files.call_method1(method, (url,))?.extract())?;
        let files = files.into_iter();
        Ok(files.map(|(url, bytes)| object(url, bytes, None)).collect())
    }
}

fn object(url: String, bytes: u64, version: Option<String>) -> Object {
    Object {
        url,
        bytes,
        version,
    }
}

/// An open file.
struct PyFile {
    url: String,
    caller: PyCaller,
}

impl ForeignFile for PyFile {
    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes: PyBackedBytes = self.caller.call(&self.url, |file| {
            let bytes = file.call_method1("read", (range.start, range.end))?;
            Ok(bytes.extract()?)
        })?;
        Ok(Bytes::from_owner(bytes))
    }

    fn close(&self) {
        // `close` only starts closing, and its errors have no consequence.
        let close = |file: &Bound<'_, PyAny>| file.call_method0("close").map(drop);
        drop(self.caller.call(&self.url, close));
    }
}
