//! The order of items: epochs, global batches, and the handling of incomplete batches.
//!
//! A global batch is what all ranks consume in one step. Epoch `e` has positions `0, 1, 2, …`,
//! divided into global batches of `batch_len`; `permutation` maps positions to items. This module
//! is independent of ranks, files and resumed runs: callers request positions.

use std::num::NonZeroU64;

use crate::order::permutation::{Permutation, Positions};

/// The treatment of the items at the end of an epoch that do not fill a global batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochEnd {
    /// The items are dropped from this epoch.
    Drop,
    /// The items come first in the next epoch, so that over all epochs no item is dropped or
    /// repeated.
    Carry,
    /// The batch is filled with the first items of the epoch.
    Pad,
    /// The batch is shorter.
    Short,
}

/// The order of `num_items` items in every epoch.
#[derive(Debug, Clone)]
pub struct Order {
    num_items: u64,
    seed: Option<u64>,
    batch_len: NonZeroU64,
    epoch_end: EpochEnd,
}

impl Order {
    /// The order of items. Without a seed, items are in sequential order; with a seed, they are
    /// shuffled differently in each epoch.
    pub fn new(
        num_items: u64,
        seed: Option<u64>,
        batch_len: NonZeroU64,
        epoch_end: EpochEnd,
    ) -> Self {
        Self {
            num_items,
            seed,
            batch_len,
            epoch_end,
        }
    }

    /// Number of positions in epoch `epoch` from position `skip` on.
    ///
    /// These are full global batches counted from `skip`; only the last one may be short.
    pub fn num_positions(&self, epoch: u64, skip: u64) -> u64 {
        let batch_len = self.batch_len.get();
        let left = (self.num_carried(epoch) + self.num_items).saturating_sub(skip);
        match self.epoch_end {
            EpochEnd::Drop | EpochEnd::Carry => left - left % batch_len,
            EpochEnd::Pad => left.div_ceil(batch_len) * batch_len,
            EpochEnd::Short => left,
        }
    }

    /// Number of items from earlier epochs at the start of epoch `epoch`.
    pub fn num_carried(&self, epoch: u64) -> u64 {
        match self.epoch_end {
            EpochEnd::Carry => (self.before(epoch) % u128::from(self.batch_len.get())) as u64,
            EpochEnd::Drop | EpochEnd::Pad | EpochEnd::Short => 0,
        }
    }

    /// The epoch of global batch `step`, where `step` counts over all epochs, and the number of
    /// the batch in that epoch.
    ///
    /// `None` if epochs have no global batches.
    pub fn epoch_of(&self, step: u64) -> Option<(u64, u64)> {
        let batch_len = u128::from(self.batch_len.get());
        if self.epoch_end != EpochEnd::Carry {
            let steps = u128::from(self.num_positions(0, 0)).div_ceil(batch_len);
            let steps = NonZeroU64::new(steps as u64)?;
            return Some((step / steps, step % steps));
        }
        let num_items = u128::from(NonZeroU64::new(self.num_items)?.get());
        // A batch belongs to the epoch of its last item.
        let last = (u128::from(step) + 1) * batch_len - 1;
        let epoch = last / num_items;
        let steps_before = epoch * num_items / batch_len;
        Some((epoch.try_into().ok()?, step - steps_before as u64))
    }

    /// Writes the items at positions `start`, `start + step`, `start + 2 * step`, …
    ///
    /// Positions past the last item of an epoch wrap to its first item, which implements padding.
    /// If items are carried over, these positions continue in the next epoch. If there are no
    /// items, nothing is written.
    pub fn fill(&self, epoch: u64, start: u64, step: NonZeroU64, out: &mut [u64]) {
        let Some(num_items) = NonZeroU64::new(self.num_items) else {
            return;
        };
        match self.epoch_end {
            EpochEnd::Carry => {
                let first = self.before(epoch) - u128::from(self.num_carried(epoch));
                self.fill_across(num_items, first + u128::from(start), step, out);
            }
            EpochEnd::Drop | EpochEnd::Pad | EpochEnd::Short => {
                self.fill_within(num_items, epoch, start, step, out);
            }
        }
    }

    /// [`fill`](Self::fill) from `start`, counted over the items of all epochs.
    fn fill_across(&self, num_items: NonZeroU64, start: u128, step: NonZeroU64, out: &mut [u64]) {
        let len = u128::from(num_items.get());
        let (mut place, mut rest) = (start, out);
        while !rest.is_empty() {
            let (epoch, position) = ((place / len) as u64, (place % len) as u64);
            let until_next = (num_items.get() - position).div_ceil(step.get());
            let num = rest
                .len()
                .min(usize::try_from(until_next).unwrap_or(usize::MAX));
            let (own, later) = std::mem::take(&mut rest).split_at_mut(num);
            self.fill_within(num_items, epoch, position, step, own);
            place += num as u128 * u128::from(step.get());
            rest = later;
        }
    }

    /// [`fill`](Self::fill) within this epoch.
    fn fill_within(
        &self,
        num_items: NonZeroU64,
        epoch: u64,
        start: u64,
        step: NonZeroU64,
        out: &mut [u64],
    ) {
        match self.seed {
            Some(seed) => Permutation::new(num_items, seed, epoch).fill(start, step.get(), out),
            None => {
                let positions = Positions::new(num_items, start, step.get());
                out.iter_mut()
                    .zip(positions)
                    .for_each(|(item, position)| *item = position);
            }
        }
    }

    /// Number of items of all epochs before `epoch`.
    fn before(&self, epoch: u64) -> u128 {
        u128::from(epoch) * u128::from(self.num_items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [EpochEnd; 4] = [
        EpochEnd::Drop,
        EpochEnd::Carry,
        EpochEnd::Pad,
        EpochEnd::Short,
    ];

    fn order(num_items: u64, seed: Option<u64>, batch_len: u64, epoch_end: EpochEnd) -> Order {
        Order::new(
            num_items,
            seed,
            NonZeroU64::new(batch_len).unwrap(),
            epoch_end,
        )
    }

    fn served(order: &Order, epoch: u64, start: u64, step: u64) -> Vec<u64> {
        let num = order
            .num_positions(epoch, 0)
            .saturating_sub(start)
            .div_ceil(step);
        let mut out = vec![u64::MAX; num as usize];
        order.fill(epoch, start, NonZeroU64::new(step).unwrap(), &mut out);
        out
    }

    /// The same order computed with lists, epoch by epoch.
    fn by_lists(
        num_items: u64,
        seed: Option<u64>,
        batch_len: u64,
        end: EpochEnd,
        epochs: u64,
    ) -> Vec<Vec<u64>> {
        let mut carried = Vec::new();
        let mut all = Vec::new();
        for epoch in 0..epochs {
            let mut items: Vec<u64> = match seed {
                None => (0..num_items).collect(),
                Some(seed) => {
                    let permutation =
                        Permutation::new(NonZeroU64::new(num_items).unwrap(), seed, epoch);
                    (0..num_items).map(|i| permutation.at(i)).collect()
                }
            };
            let own = items.clone();
            items.splice(0..0, std::mem::take(&mut carried));
            let rest = items.len() % batch_len as usize;
            match end {
                EpochEnd::Drop => items.truncate(items.len() - rest),
                EpochEnd::Carry => carried = items.split_off(items.len() - rest),
                EpochEnd::Pad if rest > 0 => {
                    items.extend(own.iter().cycle().take(batch_len as usize - rest));
                }
                EpochEnd::Pad | EpochEnd::Short => {}
            }
            all.push(items);
        }
        all
    }

    proptest! {
        #[test]
        fn epochs_equal_those_of_plain_lists(
            num_items in 1u64..40, batch_len in 1u64..60, seed in proptest::option::of(0u64..3), end in 0usize..4,
        ) {
            let order = order(num_items, seed, batch_len, ALL[end]);
            let expected = by_lists(num_items, seed, batch_len, ALL[end], 6);
            for (epoch, items) in (0..).zip(&expected) {
                prop_assert_eq!(&served(&order, epoch, 0, 1), items);
            }
        }

        #[test]
        fn strides_tile_an_epoch(
            num_items in 1u64..3000, batch_len in 1u64..60, epoch in 0u64..5, end in 0usize..4, ranks in 1u64..9,
        ) {
            let order = order(num_items, Some(7), batch_len, ALL[end]);
            let whole = served(&order, epoch, 0, 1);
            for rank in 0..ranks {
                let expected: Vec<u64> = whole.iter().copied().skip(rank as usize).step_by(ranks as usize).collect();
                prop_assert_eq!(served(&order, epoch, rank, ranks), expected);
            }
        }
    }

    #[test]
    fn global_steps_equal_the_steps_of_consecutive_epochs() {
        for (num_items, batch_len) in [(10, 4), (3, 7), (12, 4), (1, 1), (5, 3)] {
            for end in ALL {
                let order = order(num_items, None, batch_len, end);
                let steps = (0..6).flat_map(|epoch| {
                    let num = order.num_positions(epoch, 0).div_ceil(batch_len);
                    (0..num).map(move |step| (epoch, step))
                });
                for (step, expected) in (0..).zip(steps) {
                    assert_eq!(order.epoch_of(step), Some(expected), "{step} of {order:?}");
                }
            }
        }
        assert_eq!(order(3, None, 4, EpochEnd::Drop).epoch_of(0), None);
        assert_eq!(order(0, None, 4, EpochEnd::Carry).epoch_of(0), None);
    }

    #[test]
    fn batches_after_skipped_positions_start_where_those_end() {
        assert_eq!(order(10, None, 4, EpochEnd::Drop).num_positions(0, 3), 4);
        assert_eq!(order(10, None, 4, EpochEnd::Pad).num_positions(0, 3), 8);
        assert_eq!(order(10, None, 4, EpochEnd::Short).num_positions(0, 3), 7);
        // Two items of epoch 0 come first in epoch 1.
        assert_eq!(order(10, None, 4, EpochEnd::Carry).num_positions(1, 4), 8);
        assert_eq!(order(10, None, 4, EpochEnd::Drop).num_positions(0, 11), 0);
    }

    #[test]
    fn distant_epochs_take_constant_time() {
        let order = order(i64::MAX as u64, None, 7, EpochEnd::Carry);
        let epoch = u64::MAX;
        let carried = order.num_carried(epoch);
        assert_eq!(carried, (u128::from(epoch) * i64::MAX as u128 % 7) as u64);
        let mut out = [0; 8];
        order.fill(epoch, 0, NonZeroU64::MIN, &mut out);
        let expected: Vec<u64> = (0..8)
            .map(|i| {
                if i < carried {
                    i64::MAX as u64 - carried + i
                } else {
                    i - carried
                }
            })
            .collect();
        assert_eq!(out.to_vec(), expected);
    }

    #[test]
    fn without_items_nothing_is_written() {
        for end in ALL {
            let order = order(0, Some(1), 4, end);
            assert_eq!(order.num_positions(3, 0), 0);
            order.fill(3, 0, NonZeroU64::MIN, &mut []);
        }
    }
}
