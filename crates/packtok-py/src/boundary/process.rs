//! The CPUs of this process, and the output of its panics.

use std::panic;

use pyo3::prelude::*;

/// Number of CPUs available to this process, according to its affinity and cgroup limits.
#[pyfunction]
pub(crate) fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Silences panics of the libraries for tokenizers and tables that are converted to errors.
pub(crate) fn hush_contained() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_contained =
            packtok_tokenizer::is_panic_contained() || packtok_formats::table::is_panic_contained();
        if !is_contained {
            print(info);
        }
    }));
}
