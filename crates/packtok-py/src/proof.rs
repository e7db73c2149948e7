//! Tokenizers that Python is given: their engine was held against the reference once on this machine.

use packtok_bpe::Tokenizer;
use packtok_core::user_cache;
use packtok_core::verify::prove;
use pyo3::prelude::*;

use crate::monitor::watched;
use crate::operations::available_cpus;

/// The tokenizer, served by an engine that gave the reference's ids for all texts that are built in; that is noted
/// in `engines` in the user's cache.
pub(crate) fn proven(py: Python<'_>, tokenizer: Tokenizer) -> PyResult<Tokenizer> {
    let folder = user_cache().map(|cache| cache.join("engines"));
    watched(py, None, |monitor| {
        prove(&tokenizer, folder.as_deref(), available_cpus(), monitor)
    })?;
    Ok(tokenizer)
}
