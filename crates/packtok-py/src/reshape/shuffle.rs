//! The functions that turn token files into other files. Each converts the arguments, calls
//! `packtok-reshape` without the GIL and converts the result.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use packtok_pack::pbin::{ChunkInfo, ShuffleGenerator};
use packtok_reshape::filter::Filter;
use packtok_reshape::shuffle::{self, Budget, Seed, Shuffle, ShuffleOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::boundary::error::reshape_error;
use crate::boundary::monitor::watched_reshaping;
use crate::boundary::values::{self, choice};

/// Shuffles the documents of pbins or the lines of JSONL files into one file and returns a report.
///
/// `kind` is `"pbin"` or `"jsonl"`; `generator` is `"python"`, `"numpy"` or `"packtok"`; `seed` is
/// hexadecimal; `chunk` is a pair of number and count. `memory` is a pair: the size up to which
/// files are shuffled in memory, and the size of buckets on disk.
#[pyfunction]
#[pyo3(signature = (*, kind, inputs, output, existing, generator, seed, is_seed_given, chunk, on_progress, memory = None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn shuffle_files<'py>(
    py: Python<'py>,
    kind: &str,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    existing: &str,
    generator: &str,
    seed: &str,
    is_seed_given: bool,
    chunk: Option<(u64, u64)>,
    on_progress: Option<Py<PyAny>>,
    memory: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = ShuffleOptions {
        inputs,
        output,
        existing: choice("existing", existing)?,
        shuffle: described(generator, seed)?,
        is_seed_given,
        chunk: chunk.map(|(index, count)| ChunkInfo { index, count }),
        budget: budget(memory),
    };
    let call = match kind {
        "jsonl" => shuffle::shuffle_lines,
        _ => shuffle::shuffle_pbins,
    };
    let report = watched_reshaping(py, on_progress, |monitor| call(&options, monitor))?;
    values::to_python(py, &report)
}

pub(crate) fn budget(memory: Option<(u64, u64)>) -> Budget {
    let Some((in_memory_bytes, bucket_bytes)) = memory else {
        return Budget::default();
    };
    Budget {
        in_memory_bytes,
        bucket_bytes: bucket_bytes.max(1),
        buffer_bytes: bucket_bytes,
        inline_bytes: bucket_bytes,
    }
}

fn described(generator: &str, seed: &str) -> PyResult<Shuffle> {
    let seed = Seed::from_hex(seed)
        .ok_or_else(|| PyValueError::new_err(format!("seed: {seed:?} is not hexadecimal")))?;
    Ok(Shuffle {
        generator: choice::<ShuffleGenerator>("generator", generator)?,
        seed,
    })
}

/// The files of a list: one path per line, relative to `root`, with `extension` as suffix.
#[pyfunction]
pub(crate) fn read_file_list(
    py: Python<'_>,
    list: PathBuf,
    root: PathBuf,
    extension: &str,
) -> PyResult<Vec<PathBuf>> {
    py.detach(|| shuffle::read_list(Path::new(&list), &root, extension))
        .map_err(reshape_error)
}

/// The order of `len` documents for a generator and a hexadecimal seed.
#[pyfunction]
pub(crate) fn shuffled_order(
    py: Python<'_>,
    generator: &str,
    seed: &str,
    len: u32,
) -> PyResult<Vec<u32>> {
    let shuffle = described(generator, seed)?;
    py.detach(|| shuffle.order(len, &mut || Ok(())))
        .map_err(reshape_error)
}

/// The hexadecimal seed of a chunk, for a global seed in decimal.
#[pyfunction]
pub(crate) fn chunk_seed(global_seed: &str, chunk_id: u64) -> String {
    Seed::of_chunk(global_seed, chunk_id).to_hex()
}

/// A pbin that is being filtered: `decide` takes or leaves out the next documents.
#[pyclass(name = "PbinFilter", module = "packtok._packtok", frozen)]
pub(crate) struct PyPbinFilter {
    /// `None` after `finish`.
    filter: Mutex<Option<Filter>>,
    path: PathBuf,
}

#[pymethods]
impl PyPbinFilter {
    #[new]
    #[pyo3(signature = (input, output, *, existing))]
    fn new(py: Python<'_>, input: PathBuf, output: PathBuf, existing: &str) -> PyResult<Self> {
        let existing = choice("existing", existing)?;
        let filter = py
            .detach(|| Filter::start(&input, &output, existing))
            .map_err(reshape_error)?;
        Ok(Self {
            filter: Mutex::new(Some(filter)),
            path: output,
        })
    }

    /// Decides on the next documents. Documents whose flag is not 0 are selected.
    fn decide(&self, py: Python<'_>, flags: &[u8]) -> PyResult<()> {
        let flags: Vec<bool> = flags.iter().map(|&flag| flag != 0).collect();
        py.detach(|| match self.lock().as_mut() {
            Some(filter) => filter.decide(&flags).map_err(reshape_error),
            None => Err(finished()),
        })
    }

    /// Number of documents taken so far.
    #[getter]
    fn num_taken(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().as_ref().map_or(0, Filter::num_taken))
    }

    /// Publishes the output and returns a report.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = py.detach(|| match self.lock().take() {
            Some(filter) => filter.finish().map_err(reshape_error),
            None => Err(finished()),
        })?;
        values::to_python(py, &report)
    }

    fn __repr__(&self) -> String {
        format!("PbinFilter({:?})", self.path)
    }
}

impl PyPbinFilter {
    fn lock(&self) -> MutexGuard<'_, Option<Filter>> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the filter is finished")
}
