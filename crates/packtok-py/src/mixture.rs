//! `Mixture`: which item of which source comes when several are mixed.

use std::num::NonZeroU64;

use numpy::{IntoPyArray, PyArray1};
use packtok_sampling::order::mixture::Mixture;
use packtok_sampling::order::passes::Passes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::sampling_error;

/// An endless sequence of items of several sources, each in exact proportion to its weight.
///
/// Among the first k items every source has its share to within one item, for every k. Each source is gone
/// through again and again: with a seed in another order each time, without one from its first item.
#[pyclass(frozen, name = "Mixture", module = "packtok._packtok")]
pub(crate) struct PyMixture {
    mixture: Mixture,
    passes: Passes,
}

/// Arrays of int64.
type Numbers<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl PyMixture {
    /// A mixture of as many sources as there are `weights`, which have `lengths` items.
    #[new]
    #[pyo3(signature = (weights, *, lengths, seed))]
    fn new(weights: Vec<u64>, lengths: Vec<u64>, seed: Option<u64>) -> PyResult<Self> {
        let num_items: Option<Vec<_>> = lengths.iter().copied().map(NonZeroU64::new).collect();
        match num_items {
            Some(num_items) if num_items.len() == weights.len() => Ok(Self {
                mixture: Mixture::new(&weights).map_err(sampling_error)?,
                passes: Passes::new(num_items, seed),
            }),
            _ => Err(PyValueError::new_err(format!(
                "lengths are {lengths:?}, expected {} positive numbers",
                weights.len()
            ))),
        }
    }

    /// For each of `items` its source and which item of that source it is; ascending items are fastest.
    fn draws<'py>(&self, py: Python<'py>, items: Vec<u64>) -> (Numbers<'py>, Numbers<'py>) {
        let (sources, positions) = py.detach(|| {
            let draws = self.mixture.draws(items);
            let positions = self.passes.items(&draws).into_iter();
            let sources = draws.iter().map(|draw| draw.source as i64);
            (
                sources.collect::<Vec<_>>(),
                positions
                    .map(|position| position as i64)
                    .collect::<Vec<_>>(),
            )
        });
        (sources.into_pyarray(py), positions.into_pyarray(py))
    }

    /// How many of the first `num_items` items each source gives.
    fn counts(&self, py: Python<'_>, num_items: u64) -> Vec<u64> {
        py.detach(|| self.mixture.counts(num_items))
    }

    fn __repr__(&self) -> String {
        format!("Mixture(sources={})", self.mixture.num_sources())
    }
}
