//! The CPUs of this process.

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(available_cpus, module)?)
}

/// Number of CPUs available to this process, according to its affinity and cgroup limits.
#[pyfunction]
pub(crate) fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
