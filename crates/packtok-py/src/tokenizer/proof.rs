//! Compares the engine of a tokenizer with the reference engine, once per machine, before Python
//! receives the tokenizer.

use std::sync::{Mutex, PoisonError};

use packtok_pack::verify::prove;
use packtok_store::user_cache;
use packtok_tokenizer::Tokenizer;
use pyo3::prelude::*;

use crate::boundary::monitor::watched;
use crate::boundary::process::available_cpus;

/// The function called while an engine is being checked.
static ON_CHECK: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Sets a function that is called, like progress functions, while an engine is compared with the
/// reference engine; None removes it.
#[pyfunction]
pub(crate) fn on_engine_check(callback: Option<Py<PyAny>>) {
    let mut on_check = ON_CHECK.lock().unwrap_or_else(PoisonError::into_inner);
    let previous = std::mem::replace(&mut *on_check, callback);
    // Dropping a Python object may run Python code, which may call this function.
    drop(on_check);
    drop(previous);
}

/// The tokenizer, served by an engine that returned the ids of the reference engine for all
/// built-in texts. The result is recorded in `engines` in the user's cache.
pub(crate) fn proven(py: Python<'_>, tokenizer: Tokenizer) -> PyResult<Tokenizer> {
    let folder = user_cache().map(|cache| cache.join("engines"));
    let on_check = ON_CHECK.lock().unwrap_or_else(PoisonError::into_inner);
    let on_check_now = on_check.as_ref().map(|callback| callback.clone_ref(py));
    drop(on_check);
    watched(py, on_check_now, |monitor| {
        prove(&tokenizer, folder.as_deref(), available_cpus(), monitor)
    })?;
    Ok(tokenizer)
}
