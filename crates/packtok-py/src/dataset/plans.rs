//! Plans and splits of pbins: finds or builds their files and returns the paths.

use std::path::PathBuf;

use packtok_dataset::planning::{self, HoldOutRule, Planner};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::boundary::monitor::watched_planning;
use crate::boundary::values::choice;
use crate::dataset::blocks::PyBlocks;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlannerName {
    BestFit,
    Megatron,
}

/// Path of the plan for all documents of `blocks`, regardless of their packing, for
/// `Blocks(plan_path=…)`.
///
/// `planner` is `"best_fit"`, whose blocks have at most `block_size` inputs, or `"megatron"`, whose
/// blocks have `block_size` consecutive tokens. Uses the first of `folders` that contains a valid
/// plan; otherwise one process builds it in the first writable folder while others wait.
/// `on_progress` receives the counts of `pack`, with zeros while waiting for another process.
/// Raises `OSError` if no folder is writable.
#[pyfunction]
#[pyo3(signature = (blocks, *, planner, block_size, folders, on_progress=None))]
pub(crate) fn find_or_plan(
    py: Python<'_>,
    blocks: &Bound<'_, PyBlocks>,
    planner: &str,
    block_size: u64,
    folders: Vec<PathBuf>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let planner = match choice("planner", planner)? {
        PlannerName::BestFit => Planner::BestFit {
            context_length: block_size,
        },
        PlannerName::Megatron => Planner::WholeDocuments { block_size },
    };
    let stream = blocks.get().items.stream();
    watched_planning(py, on_progress, |monitor| {
        planning::find_or_plan(stream, planner, &folders, monitor)
    })
}

/// Path of the split of the documents of `blocks`, for `Blocks(split_path=…, side=…)`.
///
/// One of three arguments selects the held-out documents: about a `fraction` of them, by the hash
/// of each document's tokens and `seed` (default 0); the `last` ones, a number if it is an int and
/// a fraction if it is a float; or all from `first_document` on. Otherwise as in `find_or_plan`.
#[pyfunction]
#[pyo3(signature = (blocks, *, fraction=None, seed=None, last=None, first_document=None, folders, on_progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn find_or_split(
    py: Python<'_>,
    blocks: &Bound<'_, PyBlocks>,
    fraction: Option<f64>,
    seed: Option<u64>,
    last: Option<Last>,
    first_document: Option<u64>,
    folders: Vec<PathBuf>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let rule = match (fraction, seed, last, first_document) {
        (Some(fraction), seed, None, None) => HoldOutRule::Hash {
            fraction,
            seed: seed.unwrap_or(0),
        },
        (None, None, Some(Last::Documents(num_documents)), None) => {
            HoldOutRule::Last { num_documents }
        }
        (None, None, Some(Last::Fraction(fraction)), None) => {
            HoldOutRule::LastFraction { fraction }
        }
        (None, None, None, Some(document)) => HoldOutRule::From { document },
        _ => {
            return Err(PyTypeError::new_err(
                "give exactly one of fraction (optionally with seed), last and first_document",
            ));
        }
    };
    let stream = blocks.get().items.stream();
    watched_planning(py, on_progress, |monitor| {
        planning::find_or_split(stream, rule, &folders, monitor)
    })
}

/// A number or fraction of the last documents. The variants are tried in this order, so that an int
/// is a number.
#[derive(FromPyObject)]
pub(crate) enum Last {
    Documents(u64),
    Fraction(f64),
}
