//! Rows of batches: from items of one or many sources into the caller's arrays.

use numpy::{PyArray1, PyReadonlyArray1};
use packtok_sampling::items::batch::{Batch, Filling, context_length, fill};
use packtok_sampling::items::items::Items;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrays::{IdArray, Shape, borrow_mask};
use crate::blocks::PyBlocks;
use crate::error::sampling_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fill_from, module)?)
}

/// As `Blocks.fill`, but row i is item `items[i]` of `blocks[sources[i]]`.
#[pyfunction]
#[pyo3(signature = (blocks, sources, items, *, input_ids, labels=None, position_ids=None, document_ids=None,
                    loss_mask=None, pad_token_id=0, ignore_index=-100, aligned=false, segments=false))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
fn fill_from<'py>(
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
) -> PyResult<Option<Boundaries<'py>>> {
    let blocks: Vec<&Items> = blocks.iter().map(|blocks| &blocks.get().items).collect();
    let row = |(&source, &item): (&i64, &i64)| {
        let source = usize::try_from(source)
            .ok()
            .and_then(|source| blocks.get(source));
        let source = *source.ok_or_else(|| PyIndexError::new_err("a source is out of range"))?;
        Ok((source, source.ordinal(item).map_err(sampling_error)?))
    };
    let (sources, items) = (sources.as_array(), items.as_array());
    let rows = sources.iter().zip(items.iter()).map(row);
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    let context_length = context_length(blocks.iter().copied()).map_err(sampling_error)?;
    let filling = Filling {
        pad_token_id,
        ignore_index,
        aligned,
        segments,
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

/// Boundaries of segments, and the length of the longest.
pub(crate) type Boundaries<'py> = (Bound<'py, PyArray1<i32>>, i32);

/// Writes `rows` into the arrays of ids, in the order of the batch's fields, and the mask.
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
    let segments = py
        .detach(|| fill(rows, filling, &mut batch))
        .map_err(sampling_error)?;
    Ok(segments.map(|found| (PyArray1::from_vec(py, found.cu_seqlens), found.max_seqlen)))
}
