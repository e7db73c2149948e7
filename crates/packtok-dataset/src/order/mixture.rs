//! The source of item `k` of a mixture: exact proportions, the same on every machine.
//!
//! The sequence solves the chairman assignment problem (R. Tijdeman, Discrete Mathematics 32, 1980,
//! doi:10.1016/0012-365X(80)90269-1): among the first `k` items, source `s` of `m` sources has its
//! share `k * weight / total` to within `1 - 1 / (2m - 2)`, for every `k`. Here it is formulated as
//! scheduling: the draw with ordinal `j` of a source is released at the slot where its share
//! reaches `j + 1/(2m - 2)`, and is due when its share passes `j + 1 - 1/(2m - 2)`. Earliest
//! deadline first meets every deadline if any schedule does. All arithmetic is in integers, so
//! nothing is rounded.
//!
//! `passes` determines which item a draw is, and reshuffles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::order::limits::MAX_TOTAL_WEIGHT;

/// Items between two checkpoints, before any are dropped.
const FIRST_INTERVAL: u64 = 1024;
/// Maximum number of counts in all checkpoints (8 MiB). If the limit is exceeded, every second
/// checkpoint is dropped.
const MAX_CHECKPOINT_NUMBERS: usize = 1 << 20;

/// The source of one item, and its ordinal within that source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Index of the source among the weights.
    pub source: usize,
    /// Number of earlier items of this source.
    pub ordinal: u64,
}

/// An endless sequence of sources in exact proportion to their weights, with random access.
///
/// A seek steps forward from the nearest checkpoint. In-order access costs the same for every item.
/// The first access to item `k` takes `k` steps of about ten nanoseconds each, or fewer if the
/// weights have a common divisor: the sequence has the period `total / gcd`.
#[derive(Debug)]
pub struct Mixture {
    rates: Rates,
    walk: Mutex<Walk>,
}

impl Mixture {
    /// A mixture of `weights.len()` sources.
    ///
    /// # Errors
    /// [`Error::MixtureWithoutSources`]; [`Error::MixtureWeightZero`]; [`Error::MixtureWeightsTooLarge`].
    pub fn new(weights: &[u64]) -> Result<Self> {
        let rates = Rates::new(weights)?;
        let walk = Mutex::new(Walk::new(&rates));
        Ok(Self { rates, walk })
    }

    /// Number of sources.
    pub fn num_sources(&self) -> usize {
        self.rates.weights.len()
    }

    /// The source of item `k`.
    pub fn draw(&self, k: u64) -> Draw {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let period = k / self.rates.total;
        walk.seek(&self.rates, k % self.rates.total);
        let source = walk.state.step(&self.rates);
        walk.save_checkpoint();
        let ordinal =
            walk.state.next_draws[source].ordinal - 1 + period * self.rates.weights[source];
        Draw { source, ordinal }
    }

    /// The draws of `items`, in their order. Ascending items never seek backwards.
    pub fn draws(&self, items: impl IntoIterator<Item = u64>) -> Vec<Draw> {
        items.into_iter().map(|k| self.draw(k)).collect()
    }

    /// The number of items of each source among the first `k`.
    pub fn counts(&self, k: u64) -> Vec<u64> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let period = k / self.rates.total;
        walk.seek(&self.rates, k % self.rates.total);
        let next_draws = walk.state.next_draws.iter().zip(&self.rates.weights);
        next_draws
            .map(|(next_draw, weight)| next_draw.ordinal + period * weight)
            .collect()
    }
}

/// The weights divided by their greatest common divisor.
#[derive(Debug)]
struct Rates {
    weights: Vec<u64>,
    total: u64,
    /// `2m - 2` for `m` sources: the granularity of release times and deadlines.
    grain: u64,
}

impl Rates {
    fn new(weights: &[u64]) -> Result<Self> {
        if weights.is_empty() {
            return Err(Error::MixtureWithoutSources);
        }
        if let Some(source_index) = weights.iter().position(|&weight| weight == 0) {
            return Err(Error::MixtureWeightZero { source_index });
        }
        let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        if sum > u128::from(MAX_TOTAL_WEIGHT) {
            return Err(Error::MixtureWeightsTooLarge { sum });
        }
        let measure = weights.iter().copied().fold(0, gcd);
        let weights: Vec<u64> = weights.iter().map(|weight| weight / measure).collect();
        let total = weights.iter().sum();
        let grain = (2 * weights.len() as u64 - 2).max(2);
        Ok(Self {
            weights,
            total,
            grain,
        })
    }

    fn next_draw(&self, source: usize, ordinal: u64) -> NextDraw {
        let (weight, total, grain) = (
            u128::from(self.weights[source]),
            u128::from(self.total),
            u128::from(self.grain),
        );
        let measure = weight * grain;
        // ordinal * total / weight, with the fraction in units of 1 / measure.
        let product = u128::from(ordinal) * total;
        let start = Slot::new(product / weight, product % weight * grain, measure);
        NextDraw {
            ordinal,
            release: start.plus(total, measure),
            deadline: start.plus(total * (grain - 1), measure),
        }
    }

    /// The draw of `source` after `next_draw`.
    fn next(&self, source: usize, next_draw: &NextDraw) -> NextDraw {
        let (weight, total) = (self.weights[source], self.total);
        let measure = u128::from(weight) * u128::from(self.grain);
        let rest = u128::from(total % weight) * u128::from(self.grain);
        NextDraw {
            ordinal: next_draw.ordinal + 1,
            release: next_draw.release.later(total / weight, rest, measure),
            deadline: next_draw.deadline.later(total / weight, rest, measure),
        }
    }
}

/// Release time and deadline of the next draw of a source.
#[derive(Debug, Clone, Copy)]
struct NextDraw {
    ordinal: u64,
    release: Slot,
    deadline: Slot,
}

/// A point in time, in items: an integer, and a fraction with a denominator per source.
#[derive(Debug, Clone, Copy)]
struct Slot {
    whole: u64,
    rest: u128,
}

impl Slot {
    fn new(whole: u128, rest: u128, measure: u128) -> Self {
        Self {
            // Positions are within a few items of one period, which is at most 2^62.
            whole: (whole + rest / measure) as u64,
            rest: rest % measure,
        }
    }

    fn plus(self, rest: u128, measure: u128) -> Self {
        Self::new(u128::from(self.whole), self.rest + rest, measure)
    }

    /// [`Slot::plus`] without divisions; `rest` must be below `measure`.
    fn later(self, whole: u64, rest: u128, measure: u128) -> Self {
        let rest = self.rest + rest;
        let carry = rest >= measure;
        Self {
            whole: self.whole + whole + u64::from(carry),
            rest: if carry { rest - measure } else { rest },
        }
    }

    fn ceil(self) -> u64 {
        self.whole + u64::from(self.rest > 0)
    }
}

/// The state after the first `k` items.
#[derive(Debug)]
struct MixtureState {
    k: u64,
    /// The next draw of each source.
    next_draws: Vec<NextDraw>,
    /// Sources whose next draw is released, by deadline.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// Sources whose next draw is not released yet, by release slot.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl MixtureState {
    /// The state after `k` items, given the number of items of each source.
    fn new(rates: &Rates, k: u64, counts: &[u64]) -> Self {
        let next_draws: Vec<NextDraw> = (0..counts.len())
            .map(|source| rates.next_draw(source, counts[source]))
            .collect();
        let waiting = next_draws
            .iter()
            .zip(0..)
            .map(|(next_draw, source)| Reverse((next_draw.release.ceil(), source)))
            .collect();
        Self {
            k,
            next_draws,
            ready: BinaryHeap::new(),
            waiting,
        }
    }

    /// Advances by one item and returns its source.
    fn step(&mut self, rates: &Rates) -> usize {
        self.k += 1;
        while let Some(&Reverse((release, source))) = self.waiting.peek() {
            if release > self.k {
                break;
            }
            self.waiting.pop();
            let deadline = self.next_draws[source as usize].deadline.whole;
            self.ready.push(Reverse((deadline, source)));
        }
        let Reverse((_, chosen)) = self.ready.pop().expect(
            "shares add up to k, so after k - 1 draws some source's share is ahead of them",
        );
        let source = chosen as usize;
        let next_draw = rates.next(source, &self.next_draws[source]);
        self.next_draws[source] = next_draw;
        self.waiting
            .push(Reverse((next_draw.release.ceil(), chosen)));
        source
    }
}

/// A moving position and its checkpoints.
#[derive(Debug)]
struct Walk {
    state: MixtureState,
    interval: u64,
    /// Counts after 0, `interval`, `2 * interval`, … items, one row of `m` numbers each.
    checkpoints: Vec<u64>,
}

impl Walk {
    fn new(rates: &Rates) -> Self {
        let counts = vec![0; rates.weights.len()];
        Self {
            state: MixtureState::new(rates, 0, &counts),
            interval: FIRST_INTERVAL,
            checkpoints: counts,
        }
    }

    /// Moves to the position after `k` items.
    fn seek(&mut self, rates: &Rates, k: u64) {
        let num_sources = rates.weights.len();
        let num_checkpoints = (self.checkpoints.len() / num_sources) as u64;
        let row = (k / self.interval).min(num_checkpoints - 1);
        let nearest = row * self.interval;
        if self.state.k > k || self.state.k < nearest {
            let start = row as usize * num_sources;
            let counts = &self.checkpoints[start..start + num_sources];
            self.state = MixtureState::new(rates, nearest, counts);
        }
        while self.state.k < k {
            self.state.step(rates);
            self.save_checkpoint();
        }
    }

    /// Saves the counts of this position if the next checkpoint is due.
    fn save_checkpoint(&mut self) {
        let num_sources = self.state.next_draws.len();
        let num_checkpoints = (self.checkpoints.len() / num_sources) as u64;
        if self.state.k != num_checkpoints * self.interval {
            return;
        }
        let counts = self
            .state
            .next_draws
            .iter()
            .map(|next_draw| next_draw.ordinal);
        self.checkpoints.extend(counts);
        if self.checkpoints.len() > MAX_CHECKPOINT_NUMBERS.max(4 * num_sources) {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let num_sources = self.state.next_draws.len();
        let rows = self.checkpoints.chunks_exact(num_sources);
        self.checkpoints = rows.step_by(2).flatten().copied().collect();
        self.interval *= 2;
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tijdeman's rule as stated in the paper, with exact integer deviations and a scan per item.
    fn chairman(weights: &[u64], num_items: u64) -> Vec<usize> {
        let m = weights.len() as i128;
        let total: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
        let grain = (2 * m - 2).max(2);
        let mut counts = vec![0_i128; weights.len()];
        (1..=i128::from(num_items))
            .map(|n| {
                // grain * total * (share - count)
                let ahead = |s: usize| grain * (i128::from(weights[s]) * n - counts[s] * total);
                let chosen = (0..weights.len())
                    .filter(|&s| ahead(s) >= total)
                    .min_by(|&a, &b| {
                        let urgency = |s: usize| grain * total - total - ahead(s);
                        // urgency / weight, compared without division; the first source wins a tie.
                        (urgency(a) * i128::from(weights[b]))
                            .cmp(&(urgency(b) * i128::from(weights[a])))
                            .then(a.cmp(&b))
                    })
                    .expect("some source is below its share");
                counts[chosen] += 1;
                chosen
            })
            .collect()
    }

    /// Checks each prefix of `draws` against the shares, and the ordinals against the counts.
    fn check_prefixes(weights: &[u64], draws: &[Draw]) {
        let m = weights.len() as i128;
        let total: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
        let mut counts = vec![0_i128; weights.len()];
        for (draw, k) in draws.iter().zip(1_i128..) {
            assert_eq!(i128::from(draw.ordinal), counts[draw.source]);
            counts[draw.source] += 1;
            for (&weight, &count) in weights.iter().zip(&counts) {
                let error = (count * total - k * i128::from(weight)).abs();
                // count - share| <= 1 - 1 / (2m - 2), and 0 for a single source.
                assert!(
                    error * (2 * m - 2).max(1) <= total * (2 * m - 3).max(0),
                    "{weights:?} {k}"
                );
            }
        }
    }

    #[test]
    fn shares_are_kept_with_weights_of_all_sizes() {
        let weights: [&[u64]; 7] = [
            &[1],
            &[1, 1],
            &[999_999_999, 1],
            &[1, 999_999_999, 3, 500_000_000],
            &[1 << 61, (1 << 61) - 1, 1],
            &[7; 41],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048],
        ];
        for weights in weights {
            let draws = Mixture::new(weights).unwrap().draws(0..20_000);
            check_prefixes(weights, &draws);
        }
    }

    #[test]
    fn a_weight_of_one_billionth_is_drawn_once_in_a_billion_items() {
        let mixture = Mixture::new(&[999_999_999, 1]).unwrap();
        assert_eq!(mixture.counts(3_000_000_000), [2_999_999_997, 3]);
        assert_eq!(mixture.counts(7_000_000_000_000_000_001)[1], 7_000_000_000);
    }

    #[test]
    fn the_sequence_never_changes() {
        let mixture = Mixture::new(&[5, 3, 2]).unwrap();
        let sources: Vec<_> = mixture
            .draws(0..20)
            .iter()
            .map(|draw| draw.source)
            .collect();
        assert_eq!(sources, GOLDEN_5_3_2);
    }

    const GOLDEN_5_3_2: [usize; 20] = [0, 1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 1, 0, 2, 0, 1, 0, 2, 0, 1];

    #[test]
    fn any_position_can_be_reached_again() {
        let weights = [10_007, 20_011, 3, 65_537];
        let in_order = Mixture::new(&weights).unwrap().draws(0..50_000);
        let mixture = Mixture::new(&weights).unwrap();
        for k in [49_999, 0, 1023, 1024, 1025, 30_000, 29_999, 30_001, 5] {
            assert_eq!(mixture.draw(k), in_order[k as usize]);
        }
        // After one full period, the same sources follow again.
        let period: u64 = weights.iter().sum();
        for k in [0, 1023, 40_000] {
            let Draw { source, ordinal } = in_order[k as usize];
            let later = mixture.draw(k + 3 * period);
            assert_eq!(
                later,
                Draw {
                    source,
                    ordinal: ordinal + 3 * weights[source]
                }
            );
        }
    }

    #[test]
    fn checkpoints_are_thinned_out() {
        let weights: Vec<u64> = (1_000_000..1_000_600).collect();
        let mixture = Mixture::new(&weights).unwrap();
        let num_items = 4_000_000;
        let expected: Vec<_> = mixture.draws(num_items - 3..num_items);
        let walk = mixture.walk.lock().unwrap();
        assert!(walk.interval > FIRST_INTERVAL);
        assert!(walk.checkpoints.len() <= MAX_CHECKPOINT_NUMBERS);
        drop(walk);
        mixture.draw(17);
        assert_eq!(mixture.draws(num_items - 3..num_items), expected);
    }

    #[test]
    fn invalid_weights_are_rejected() {
        let message = |weights: &[u64]| Mixture::new(weights).unwrap_err().to_string();
        assert_eq!(message(&[]), "the mixture has no source; give at least one");
        assert_eq!(
            message(&[1, 0]),
            "the weight of source 1 is 0; remove the source"
        );
        assert_eq!(
            message(&[u64::MAX, 2]),
            "the weights add up to 18446744073709551617, more than 4611686018427387904; divide them by a common factor"
        );
    }

    proptest! {
        #[test]
        fn shares_are_kept(weights in proptest::collection::vec(1_u64..1 << 40, 1..12)) {
            check_prefixes(&weights, &Mixture::new(&weights).unwrap().draws(0..2_000));
        }

        #[test]
        fn windows_of_two_sources_deviate_by_less_than_one(a in 1_u64..60, b in 1_u64..60) {
            let mixture = Mixture::new(&[a, b]).unwrap();
            let (a, total) = (i128::from(a), i128::from(a + b));
            let counts: Vec<_> = (0..200).map(|k| i128::from(mixture.counts(k)[0])).collect();
            for start in 0..200 {
                for stop in start..200 {
                    let share = a * (stop - start) as i128;
                    let error = (counts[stop] - counts[start]) * total - share;
                    prop_assert!(error.abs() < total);
                }
            }
        }

        #[test]
        fn both_rules_keep_the_same_shares(weights in proptest::collection::vec(1_u64..50, 1..8)) {
            // Sources with equal deadlines in whole slots are ordered by source. So the two
            // sequences may differ in order, but both satisfy the bound. With at most two sources,
            // they cannot differ.
            let draws = Mixture::new(&weights).unwrap().draws(0..500);
            let naive = chairman(&weights, 500);
            if weights.len() <= 2 {
                let sources: Vec<_> = draws.iter().map(|draw| draw.source).collect();
                prop_assert_eq!(&sources, &naive);
            }
            let mut counts = vec![0; weights.len()];
            let naive: Vec<_> = naive
                .iter()
                .map(|&source| {
                    counts[source] += 1;
                    Draw { source, ordinal: counts[source] - 1 }
                })
                .collect();
            check_prefixes(&weights, &naive);
        }

        #[test]
        fn random_access_agrees_with_sequential_access(
            weights in proptest::collection::vec(1_u64..100_000, 1..6),
            items in proptest::collection::vec(0_u64..6_000, 1..20),
        ) {
            let in_order = Mixture::new(&weights).unwrap().draws(0..6_000);
            let mixture = Mixture::new(&weights).unwrap();
            for k in items {
                prop_assert_eq!(mixture.draw(k), in_order[k as usize]);
                let counts = mixture.counts(k);
                prop_assert_eq!(counts.iter().sum::<u64>(), k);
            }
        }
    }
}
