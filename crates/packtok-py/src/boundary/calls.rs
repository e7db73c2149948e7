//! Calls of Python by threads of streams, and the exceptions that they raise.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use packtok_stream::{Error, Result};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Keeps the exceptions that Python raised while the core ran, until they are raised again.
///
/// An error of the core that stands for an exception has the number of the exception. Numbers are
/// needed because threads that run ahead may raise further exceptions before the caller reaches
/// the sample of the first.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    exceptions: HashMap<u64, PyErr>,
    next_number: u64,
    /// An exception that ends the stream at once, such as `KeyboardInterrupt` and `SystemExit` of
    /// a signal handler.
    interruption: Option<PyErr>,
    /// The thread that uses the stream. Its exceptions may come from signal handlers.
    user: Option<ThreadId>,
}

impl Raised {
    /// Keeps an exception that ends the stream at once, whether or not the call that raised it
    /// fails.
    pub(crate) fn interrupt(&self, error: PyErr) {
        lock(&self.0).interruption.get_or_insert(error);
    }

    /// The exception that ends the stream at once.
    pub(crate) fn take_interruption(&self) -> Option<PyErr> {
        lock(&self.0).interruption.take()
    }

    /// The exception that `error` stands for.
    pub(crate) fn take(&self, error: &Error) -> Option<PyErr> {
        match error {
            Error::Caller { number, .. } => lock(&self.0).exceptions.remove(number),
            _ => None,
        }
    }

    /// Sets or clears the thread that uses the stream.
    pub(crate) fn set_user(&self, user: Option<ThreadId>) {
        lock(&self.0).user = user;
    }

    /// Whether this thread uses the stream.
    pub(crate) fn is_user(&self) -> bool {
        lock(&self.0).user == Some(std::thread::current().id())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an exception is meant to end the program instead of being handled, such as
/// `KeyboardInterrupt`.
pub(crate) fn ends_program(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

/// Keeps an exception for the caller and returns the error that stands for it.
pub(crate) fn keep(py: Python<'_>, raised: &Raised, error: PyErr) -> Error {
    let mut message = String::new();
    match error.value(py).str() {
        Ok(text) => message = text.to_string(),
        Err(failed) if ends_program(py, &failed) => raised.interrupt(failed),
        // The exception itself is raised, without this text.
        Err(_) => {}
    }
    if message.is_empty() {
        message = error.get_type(py).to_string();
    }
    // An exception on a thread of the stream is raised in the order of the samples.
    if ends_program(py, &error) && raised.is_user() {
        raised.interrupt(error.clone_ref(py));
    }
    let mut kept = lock(&raised.0);
    let number = kept.next_number;
    kept.next_number += 1;
    kept.exceptions.insert(number, error);
    Error::Caller { number, message }
}

/// Number of Python calls by threads of streams that have not returned yet.
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

/// Calls Python on a thread that the interpreter has not created.
///
/// # Errors
/// The interpreter has ended; or the error of `call`.
pub(crate) fn attached<T>(call: impl FnOnce(Python<'_>) -> Result<T>) -> Result<T> {
    let _calling = Calling::new();
    let ended = || Err(packtok_jobs::Error::Cancelled.into());
    Python::try_attach(call).unwrap_or_else(ended)
}

/// Waits until no thread of a stream runs Python code, or for an interruption. The interpreter
/// must not end before that, because it aborts if such a thread returns later.
#[pyfunction]
pub(crate) fn wait_for_stream_calls(py: Python<'_>) -> PyResult<()> {
    while NUM_CALLS.load(Ordering::SeqCst) > 0 {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        py.check_signals()?;
    }
    Ok(())
}
