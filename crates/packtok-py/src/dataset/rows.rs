//! Rows of batches: writes them into the caller's arrays.

use numpy::PyArray1;
use packtok_dataset::items::batch::{Batch, Filling, Segments, fill};
use packtok_dataset::items::items::Items;
use pyo3::prelude::*;

use crate::boundary::arrays::{IdArray, Shape, borrow_mask};
use crate::boundary::error::dataset_error;

/// Boundaries of segments, and the length of the longest segment.
pub(crate) type Boundaries<'py> = (Bound<'py, PyArray1<i32>>, i32);

/// Writes `rows` as [`fill_arrays`] does.
pub(crate) fn fill_rows<'py>(
    py: Python<'py>,
    rows: &[(&Items, u64)],
    context_length: u64,
    filling: Filling,
    ids: [Option<&Bound<'py, PyAny>>; 4],
    loss_mask: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Boundaries<'py>>> {
    let shape = Shape {
        num_rows: rows.len(),
        context_length: context_length as usize,
    };
    fill_arrays(py, shape, ids, loss_mask, |batch| {
        fill(rows, filling, batch)
    })
}

/// Calls `fill` with a batch of the mask and the id arrays. The arrays are in the order of the
/// batch's fields.
pub(crate) fn fill_arrays<'py>(
    py: Python<'py>,
    shape: Shape,
    ids: [Option<&Bound<'py, PyAny>>; 4],
    loss_mask: Option<&Bound<'py, PyAny>>,
    fill: impl FnOnce(&mut Batch<'_>) -> packtok_dataset::Result<Option<Segments>> + Send,
) -> PyResult<Option<Boundaries<'py>>> {
    let names = ["input_ids", "labels", "position_ids", "document_ids"];
    let mut arrays = [const { None }; 4];
    for ((place, name), array) in arrays.iter_mut().zip(names).zip(ids) {
        *place = array
            .map(|array| IdArray::borrow(name, array, shape))
            .transpose()?;
    }
    let [input_ids, labels, position_ids, document_ids] = &mut arrays;
    let mut loss_mask = loss_mask
        .map(|array| borrow_mask("loss_mask", array, shape))
        .transpose()?;
    let input_ids = input_ids.as_mut().expect("every caller gives input_ids");
    let mut batch = Batch {
        input_ids: input_ids.ids()?,
        labels: labels.as_mut().map(IdArray::ids).transpose()?,
        position_ids: position_ids.as_mut().map(IdArray::ids).transpose()?,
        document_ids: document_ids.as_mut().map(IdArray::ids).transpose()?,
        loss_mask: loss_mask
            .as_mut()
            .map(|mask| mask.as_slice_mut())
            .transpose()?,
    };
    let segments = py.detach(|| fill(&mut batch)).map_err(dataset_error)?;
    Ok(segments.map(|segments| {
        (
            PyArray1::from_vec(py, segments.cu_seqlens),
            segments.max_seqlen,
        )
    }))
}
