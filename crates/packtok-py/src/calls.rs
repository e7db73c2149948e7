//! Calls of Python by threads of streams, and the exceptions that they raise.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use packtok_core::pipeline::PipelineError;
use packtok_core::stream::StreamError;
use packtok_core::{Error, Result};
use pyo3::prelude::*;

use crate::plugin::lock;

/// The first exception that was raised in Python and is not passed on yet.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// Keeps an exception for the caller and returns the error that stands for it.
pub(crate) fn keep(py: Python<'_>, raised: &Raised, error: PyErr) -> Error {
    let mut text = error.value(py).to_string();
    if text.is_empty() {
        text = error.get_type(py).to_string();
    }
    lock(raised).get_or_insert(error);
    Error::Stream(StreamError::Function(text))
}

/// Calls of Python by threads of streams that have not returned.
static NUM_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Counts a call from before it attaches until after it has detached.
pub(crate) struct Calling;

impl Calling {
    pub(crate) fn new() -> Self {
        NUM_CALLS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        NUM_CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls Python on a thread that the interpreter does not know.
///
/// # Errors
/// The interpreter has ended; or the error of `call`.
pub(crate) fn attached<T>(call: impl FnOnce(Python<'_>) -> Result<T>) -> Result<T> {
    let _calling = Calling::new();
    let ended = || Err(Error::Pipeline(PipelineError::Cancelled));
    Python::try_attach(call).unwrap_or_else(ended)
}

/// Waits until no thread of a stream runs Python code, or for an interruption. The interpreter must
/// not end before, because it aborts if such a thread returns later.
#[pyfunction]
fn wait_for_stream_calls(py: Python<'_>) -> PyResult<()> {
    while NUM_CALLS.load(Ordering::SeqCst) > 0 {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        py.check_signals()?;
    }
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(wait_for_stream_calls, module)?)
}
