//! Callbacks into Python during long calls: signal checks (Ctrl-C) and progress.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use packtok_jobs::Progress;
use packtok_pack::{Error, KEPT, Result};
use packtok_reshape::convert::Kept;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::boundary::error::{dataset_error, pack_error, reshape_error};
use crate::boundary::values;

/// Interval between two signal checks, and so the maximum delay of Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between two calls of the progress function.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Note on an interruption that came too late to have an effect.
const WHOLE_NOTE: &str = "the pbin was already complete";

/// The same for an output of any format.
const COMPLETE_NOTE: &str = "the output was already complete";

/// Asks Python regularly whether to continue.
struct Watch {
    on_progress: Option<Py<PyAny>>,
    last_check: Instant,
    last_report: Option<Instant>,
    raised: Option<PyErr>,
}

impl Watch {
    fn new(on_progress: Option<Py<PyAny>>) -> Self {
        Self {
            on_progress,
            last_check: Instant::now(),
            last_report: None,
            raised: None,
        }
    }

    /// Checks for signals and reports progress; `Break` after a Python exception.
    fn check(&mut self, progress: &Progress) -> ControlFlow<()> {
        if self.last_check.elapsed() < SIGNAL_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.last_check = Instant::now();
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            self.report(py, progress)
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn report(&mut self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        let Some(on_progress) = &self.on_progress else {
            return Ok(());
        };
        if self
            .last_report
            .is_some_and(|last_report| last_report.elapsed() < PROGRESS_INTERVAL)
        {
            return Ok(());
        }
        self.last_report = Some(Instant::now());
        let numbers = PyDict::new(py);
        numbers.set_item("bytes_read", progress.bytes_read)?;
        numbers.set_item("total_bytes", progress.total_bytes)?;
        numbers.set_item("documents", progress.documents)?;
        if let Some(samples) = progress.samples {
            numbers.set_item("samples", samples)?;
        }
        numbers.set_item("tokens", progress.tokens)?;
        numbers.set_item("resumed_bytes", progress.resumed_bytes)?;
        on_progress.call1(py, (numbers,))?;
        Ok(())
    }

    /// The Python exception if it ended the call; otherwise `error`.
    fn error_or(self, error: PyErr) -> PyErr {
        self.raised.unwrap_or(error)
    }
}

/// Runs `call` without the GIL, with signal checks and progress.
pub(crate) fn watched<R: Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<R> + Send,
) -> PyResult<R> {
    match watched_to_its_end(py, on_progress, call)? {
        (_, Some(raised)) => Err(raised),
        (result, None) => Ok(result),
    }
}

/// [`watched`], with the exception that was raised too late to end the call.
fn watched_to_its_end<R: Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<R> + Send,
) -> PyResult<(R, Option<PyErr>)> {
    let mut watch = Watch::new(on_progress);
    let outcome = py.detach(|| call(&mut |progress| watch.check(progress)));
    match outcome {
        Ok(result) => Ok((result, watch.raised)),
        // Every exception, whatever its cause, gets a note that the finished work is kept.
        Err(Error::Kept { source }) => {
            let error = watch.error_or(pack_error(*source));
            Err(with_note(py, error, KEPT))
        }
        Err(error) => Err(watch.error_or(pack_error(error))),
    }
}

/// Runs `call`, which plans or splits, like [`watched`].
pub(crate) fn watched_planning<R: Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut packtok_jobs::Monitor<'_>) -> packtok_dataset::Result<R> + Send,
) -> PyResult<R> {
    let mut watch = Watch::new(on_progress);
    let outcome = py.detach(|| call(&mut |progress| watch.check(progress)));
    match (outcome, watch.raised) {
        (_, Some(raised)) => Err(raised),
        (outcome, None) => outcome.map_err(dataset_error),
    }
}

/// Runs `call`, which reshapes token files, like [`watched`]. If an interruption comes too late, a
/// note says that the file is complete.
pub(crate) fn watched_reshaping<R: Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> packtok_reshape::Result<R> + Send,
) -> PyResult<R> {
    let mut watch = Watch::new(on_progress);
    let outcome = py.detach(|| call(&mut |progress| watch.check(progress)));
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return Err(watch.error_or(reshape_error(error))),
    };
    match watch.raised.map_or_else(|| py.check_signals(), Err) {
        Ok(()) => Ok(report),
        Err(error) => Err(with_note(py, error, COMPLETE_NOTE)),
    }
}

/// Runs `call`, which passes what an output will keep to its first argument before it writes, so that
/// `on_start` is called with it. An exception of `on_start` is the result, and stops the call.
pub(crate) fn with_start<R>(
    on_start: Option<&Py<PyAny>>,
    call: impl FnOnce(&mut (dyn FnMut(&Kept) -> ControlFlow<()> + Send)) -> PyResult<R>,
) -> PyResult<R> {
    let mut raised = None;
    let mut started = |kept: &Kept| {
        let Some(on_start) = on_start else {
            return ControlFlow::Continue(());
        };
        let called = Python::attach(|py| {
            let kept = values::to_python(py, kept)?;
            on_start.call1(py, (kept,)).map(drop)
        });
        match called {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let outcome = call(&mut started);
    match raised {
        Some(error) => Err(error),
        None => outcome,
    }
}

/// [`watched`] for a call that writes a pbin. If an interruption comes too late, a note says that
/// the file is complete.
pub(crate) fn watched_writing<R: Send>(
    py: Python<'_>,
    on_progress: Option<Py<PyAny>>,
    call: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<R> + Send,
) -> PyResult<R> {
    let (report, raised) = watched_to_its_end(py, on_progress, call)?;
    match raised.map_or_else(|| py.check_signals(), Err) {
        Ok(()) => Ok(report),
        Err(error) => Err(with_note(py, error, WHOLE_NOTE)),
    }
}

fn with_note(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    match error.value(py).call_method1("add_note", (note,)) {
        Ok(_) => error,
        Err(failed) => failed,
    }
}
