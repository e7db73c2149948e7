//! `Permutation` and `Order`: the order of items in each epoch.

use std::num::NonZeroU64;

use numpy::{IntoPyArray, PyArray1};
use packtok_dataset::order::order::{EpochEnd, Order};
use packtok_dataset::order::permutation::Permutation;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::boundary::allocator::fallible;

/// The numbers `0..num_items` in an order defined by a seed and an epoch, without a list of them.
///
/// `permutation[i]` is the number at position i. The order is specific to packtok and never
/// changes; docs/reference/order_of_items.md specifies it.
#[pyclass(frozen, name = "Permutation", module = "packtok")]
pub(crate) struct PyPermutation {
    permutation: Permutation,
    seed: u64,
    epoch: u64,
}

#[pymethods]
impl PyPermutation {
    /// The permutation of `num_items` numbers, at least 1 and below 2**63, for this seed and epoch.
    #[new]
    fn new(num_items: i64, seed: u64, epoch: u64) -> PyResult<Self> {
        let num_items = positive("num_items", num_items)?;
        Ok(Self {
            permutation: Permutation::new(num_items, seed, epoch),
            seed,
            epoch,
        })
    }

    fn __len__(&self) -> usize {
        self.permutation.num_items().get() as usize
    }

    /// The number at position `i`; negative positions count from the end.
    fn __getitem__(&self, i: i64) -> PyResult<u64> {
        let num_items = self.permutation.num_items().get();
        let position = match i {
            0.. => i as u64,
            // If `i` counts back past the first number, this wraps to a position past the end,
            // which the check below rejects.
            _ => num_items.wrapping_sub(i.unsigned_abs()),
        };
        if position >= num_items {
            return Err(PyIndexError::new_err(format!(
                "position {i} is out of range, the permutation has {num_items} items"
            )));
        }
        Ok(self.permutation.at(position))
    }

    /// The numbers at positions start, start + step, …, `num` of them, as int64.
    ///
    /// Positions wrap: position `num_items` is position 0.
    fn fill<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        step: u64,
        num: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        filled(py, num, |out| self.permutation.fill(start, step, out))
    }

    fn __getnewargs__(&self) -> (u64, u64, u64) {
        (self.permutation.num_items().get(), self.seed, self.epoch)
    }

    fn __repr__(&self) -> String {
        format!(
            "Permutation({}, seed={}, epoch={})",
            self.permutation.num_items(),
            self.seed,
            self.epoch
        )
    }
}

/// The items of every epoch by position, divided into global batches.
#[pyclass(frozen, name = "Order", module = "packtok._packtok")]
pub(crate) struct PyOrder {
    order: Order,
}

#[pymethods]
impl PyOrder {
    /// `num_items` items, shuffled by `seed` or sequential; `at_epoch_end` is "drop", "carry",
    /// "pad" or "short".
    #[new]
    #[pyo3(signature = (num_items, *, seed, global_batch_size, at_epoch_end))]
    fn new(
        num_items: i64,
        seed: Option<u64>,
        global_batch_size: i64,
        at_epoch_end: &str,
    ) -> PyResult<Self> {
        let num_items = u64::try_from(num_items).map_err(|_| {
            PyValueError::new_err(format!("num_items is {num_items}, expected at least 0"))
        })?;
        let batch_len = positive("global_batch_size", global_batch_size)?;
        let order = Order::new(num_items, seed, batch_len, epoch_end(at_epoch_end)?);
        Ok(Self { order })
    }

    /// Number of positions of an epoch from position `skip` on.
    fn num_positions(&self, epoch: u64, skip: u64) -> u64 {
        self.order.num_positions(epoch, skip)
    }

    /// The epoch of global batch `step`, counted over all epochs, and its number in that epoch.
    fn epoch_of(&self, step: u64) -> PyResult<(u64, u64)> {
        self.order.epoch_of(step).ok_or_else(|| {
            PyIndexError::new_err(
                "an epoch has fewer items than a global batch, so it has no steps",
            )
        })
    }

    /// The items at positions start, start + step, …, `num` of them, as int64.
    fn items<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        start: u64,
        step: i64,
        num: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let step = positive("step", step)?;
        filled(py, num, |out| self.order.fill(epoch, start, step, out))
    }
}

fn epoch_end(name: &str) -> PyResult<EpochEnd> {
    match name {
        "drop" => Ok(EpochEnd::Drop),
        "carry" => Ok(EpochEnd::Carry),
        "pad" => Ok(EpochEnd::Pad),
        "short" => Ok(EpochEnd::Short),
        _ => Err(PyValueError::new_err(format!(
            "at_epoch_end is {name:?}, expected \"drop\", \"carry\", \"pad\" or \"short\""
        ))),
    }
}

/// A number that must be positive.
fn positive(name: &str, number: i64) -> PyResult<NonZeroU64> {
    u64::try_from(number)
        .ok()
        .and_then(NonZeroU64::new)
        .ok_or_else(|| PyValueError::new_err(format!("{name} is {number}, expected at least 1")))
}

/// An array of `num` numbers below 2**63, written by `fill` without the GIL.
fn filled(
    py: Python<'_>,
    num: usize,
    fill: impl Fn(&mut [u64]) + Send + Sync,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let mut numbers: Vec<u64> = Vec::new();
    // A failed allocation of this size would abort the process instead of raising an exception.
    if fallible(|| numbers.try_reserve_exact(num)).is_err() {
        return Err(PyMemoryError::new_err(format!(
            "cannot allocate {num} items at once"
        )));
    }
    numbers.resize(num, 0);
    py.detach(|| fill(&mut numbers));
    let numbers: Vec<i64> = numbers.into_iter().map(|number| number as i64).collect();
    Ok(numbers.into_pyarray(py))
}
