//! `Mixture`: determines the source and the item at each position of several mixed sources.

use std::num::NonZeroU64;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use packtok_dataset::items::LossMarkers;
use packtok_dataset::items::batch::{Filling, context_length};
use packtok_dataset::items::items::Items;
use packtok_dataset::order::mixture::Mixture;
use packtok_dataset::order::passes::Passes;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::boundary::error::dataset_error;
use crate::dataset::blocks::PyBlocks;
use crate::dataset::rows::{Boundaries, fill_rows};

/// An endless sequence of items of several sources, each in exact proportion to its weight.
///
/// Among the first k items, every source has its share to within one item, for every k. Each
/// source is repeated endlessly: with a seed, in a different order each time; otherwise,
/// sequentially.
#[pyclass(frozen, name = "Mixture", module = "packtok._packtok")]
pub(crate) struct PyMixture {
    mixture: Mixture,
    passes: Passes,
}

/// Arrays of int64.
type Numbers<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl PyMixture {
    /// A mixture of sources with these `weights` and numbers of items `lengths`.
    #[new]
    #[pyo3(signature = (weights, *, lengths, seed))]
    fn new(weights: Vec<u64>, lengths: Vec<u64>, seed: Option<u64>) -> PyResult<Self> {
        let num_items: Option<Vec<_>> = lengths.iter().copied().map(NonZeroU64::new).collect();
        match num_items {
            Some(num_items) if num_items.len() == weights.len() => Ok(Self {
                mixture: Mixture::new(&weights).map_err(dataset_error)?,
                passes: Passes::new(num_items, seed),
            }),
            _ => Err(PyValueError::new_err(format!(
                "lengths are {lengths:?}, expected {} positive numbers",
                weights.len()
            ))),
        }
    }

    /// For each of `items`, its source and the item of that source; ascending items are fastest.
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

    /// Number of items of each source among the first `num_items`.
    fn counts(&self, py: Python<'_>, num_items: u64) -> Vec<u64> {
        py.detach(|| self.mixture.counts(num_items))
    }

    fn __repr__(&self) -> String {
        format!("Mixture(sources={})", self.mixture.num_sources())
    }
}

/// Like `Blocks.fill`, but row i is item `items[i]` of `blocks[sources[i]]`.
#[pyfunction]
#[pyo3(signature = (blocks, sources, items, *, input_ids, labels=None, position_ids=None, document_ids=None,
                    loss_mask=None, pad_token_id=0, ignore_index=-100, aligned=false, segments=false,
                    loss_markers=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn fill_from<'py>(
    py: Python<'py>,
    blocks: Vec<Bound<'py, PyBlocks>>,
    sources: PyReadonlyArray1<'py, i64>,
    items: PyReadonlyArray1<'py, i64>,
    input_ids: &Bound<'py, PyAny>,
    labels: Option<&Bound<'py, PyAny>>,
    position_ids: Option<&Bound<'py, PyAny>>,
    document_ids: Option<&Bound<'py, PyAny>>,
    loss_mask: Option<&Bound<'py, PyAny>>,
    pad_token_id: i32,
    ignore_index: i32,
    aligned: bool,
    segments: bool,
    loss_markers: Option<(u32, u32)>,
) -> PyResult<Option<Boundaries<'py>>> {
    let blocks: Vec<&Items> = blocks.iter().map(|blocks| &blocks.get().items).collect();
    let row = |(&source, &item): (&i64, &i64)| {
        let source = usize::try_from(source)
            .ok()
            .and_then(|source| blocks.get(source));
        let source = *source.ok_or_else(|| PyIndexError::new_err("a source is out of range"))?;
        Ok((source, source.ordinal(item).map_err(dataset_error)?))
    };
    let (sources, items) = (sources.as_array(), items.as_array());
    let rows = sources.iter().zip(items.iter()).map(row);
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    let context_length = context_length(blocks.iter().copied()).map_err(dataset_error)?;
    let filling = Filling {
        pad_token_id,
        ignore_index,
        aligned,
        segments,
        number_padding: false,
        loss_markers: loss_markers.map(|(begin, end)| LossMarkers { begin, end }),
    };
    let ids = [Some(input_ids), labels, position_ids, document_ids];
    fill_rows(
        py,
        &rows,
        context_length.unwrap_or(0),
        filling,
        ids,
        loss_mask,
    )
}
