//! The shuffle: a keyed permutation of `0..n` that needs no list of `n` numbers. No other code
//! shuffles.
//!
//! For more than [`TABLE_LEN`] numbers, it is a Feistel network over pairs `(left, right)` of
//! digits in a mixed radix `a * b`, with `n <= a * b < n + a`. The few results that are not below
//! `n` pass through the network again until they are, which keeps it a bijection of `0..n`
//! ("generalized Feistel cipher" and "cycle walking": Black and Rogaway, *Ciphers with Arbitrary
//! Finite Domains*, CT-RSA 2002). Both radices are about `sqrt(n)`, so fewer than one number in
//! `sqrt(n)` needs a second pass. A network is weakest if its halves are small, so for small `n`
//! the algorithm of Fisher and Yates shuffles the numbers into a table of at most 2 KiB. Keys come
//! from SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*,
//! OOPSLA 2014).
//!
//! Stopped runs rely on the order: changing any constant here breaks resuming.
//! `docs/reference/order_of_items.md` specifies the order, and golden values test it.

use std::num::NonZeroU64;

use packtok_jobs::splitmix::{GAMMA, mixed};

/// Up to this length the numbers are shuffled into a table.
pub const TABLE_LEN: u64 = 1024;

/// Rounds of the network. Distinguishing 8 rounds from a random permutation takes about `n * n`
/// complete permutations (Patarin, *Generic Attacks on Feistel Schemes*, ASIACRYPT 2001): over a
/// million epochs for the smallest `n` that uses the network.
const ROUNDS: usize = 8;

/// Numbers processed together, so that their multiplications overlap.
const LANES: usize = 8;

/// A permutation of `0..len`, defined by a seed and an epoch.
#[derive(Debug, Clone)]
pub struct Permutation {
    len: NonZeroU64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Table(Box<[u16]>),
    Network(Network),
}

impl Permutation {
    /// The permutation of `0..len` for this seed and epoch. Different seeds or epochs give
    /// unrelated permutations.
    pub fn new(len: NonZeroU64, seed: u64, epoch: u64) -> Self {
        let mut keys = Keys::new(len.get(), seed, epoch);
        let kind = if len.get() <= TABLE_LEN {
            Kind::Table(shuffled(len.get() as u16, &mut keys))
        } else {
            Kind::Network(Network::new(len.get(), &mut keys))
        };
        Self { len, kind }
    }

    /// The length of the permutation.
    pub fn num_items(&self) -> NonZeroU64 {
        self.len
    }

    /// The number at position `i`. Positions wrap: position `num_items` is position 0.
    pub fn at(&self, i: u64) -> u64 {
        let i = i % self.len;
        match &self.kind {
            Kind::Table(table) => u64::from(table[i as usize]),
            Kind::Network(network) => network.walk(i),
        }
    }

    /// Writes the numbers at positions `start`, `start + step`, `start + 2 * step`, …
    ///
    /// Equals [`at`](Self::at) for each position; positions wrap and do not overflow.
    pub fn fill(&self, start: u64, step: u64, out: &mut [u64]) {
        let mut positions = Positions::new(self.len, start, step);
        match &self.kind {
            Kind::Table(table) => {
                for (number, position) in out.iter_mut().zip(positions) {
                    *number = u64::from(table[position as usize]);
                }
            }
            Kind::Network(network) => {
                for numbers in out.chunks_mut(LANES) {
                    let mut lanes = std::array::from_fn(|_| positions.step_on());
                    network.walk_all::<LANES>(&mut lanes);
                    numbers.copy_from_slice(&lanes[..numbers.len()]);
                }
            }
        }
    }
}

/// The endless sequence `start`, `start + step`, `start + 2 * step`, … modulo a length.
pub(crate) struct Positions {
    position: u64,
    step: u64,
    /// From this position on, a step wraps.
    turn: u64,
}

impl Positions {
    pub(crate) fn new(len: NonZeroU64, start: u64, step: u64) -> Self {
        let step = step % len;
        Self {
            position: start % len,
            step,
            turn: len.get() - step,
        }
    }

    #[inline]
    fn step_on(&mut self) -> u64 {
        let position = self.position;
        // The sum of two numbers below the length may exceed 64 bits; their difference cannot.
        self.position = if position >= self.turn {
            position - self.turn
        } else {
            position + self.step
        };
        position
    }
}

impl Iterator for Positions {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.step_on())
    }
}

/// `0..len` shuffled by Fisher-Yates.
fn shuffled(len: u16, keys: &mut Keys) -> Box<[u16]> {
    let mut table: Box<[u16]> = (0..len).collect();
    for last in (1..table.len()).rev() {
        table.swap(last, below(keys.next(), last as u64 + 1) as usize);
    }
    table
}

/// A number below `n` from 64 random bits: the high word of their product.
#[inline]
fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// The network: `left < radix_left` is the high digit, `right < radix_right` the low one.
#[derive(Debug, Clone)]
struct Network {
    len: u64,
    radix_left: u64,
    radix_right: NonZeroU64,
    keys: [[u64; 2]; ROUNDS],
}

impl Network {
    fn new(len: u64, keys: &mut Keys) -> Self {
        let radix_left = (len - 1).isqrt() + 1;
        let radix_right = len.div_ceil(radix_left);
        Self {
            len,
            radix_left,
            radix_right: NonZeroU64::new(radix_right).unwrap_or(NonZeroU64::MIN),
            keys: std::array::from_fn(|_| [keys.next(), keys.next() | 1]),
        }
    }

    /// The image of `i`: passes through the network until the result is below `len`.
    fn walk(&self, i: u64) -> u64 {
        let mut numbers = [i];
        self.walk_all(&mut numbers);
        numbers[0]
    }

    #[inline]
    fn walk_all<const N: usize>(&self, numbers: &mut [u64; N]) {
        self.permute(numbers);
        for number in numbers {
            while *number >= self.len {
                let mut again = [*number];
                self.permute(&mut again);
                *number = again[0];
            }
        }
    }

    /// One pass over numbers below `radix_left * radix_right`.
    #[inline]
    fn permute<const N: usize>(&self, numbers: &mut [u64; N]) {
        let mut left = numbers.map(|number| number / self.radix_right);
        let mut right = numbers.map(|number| number % self.radix_right);
        for keys in self.keys.chunks_exact(2) {
            for lane in 0..N {
                left[lane] = turned(left[lane], right[lane], keys[0], self.radix_left);
            }
            for lane in 0..N {
                right[lane] = turned(right[lane], left[lane], keys[1], self.radix_right.get());
            }
        }
        for lane in 0..N {
            numbers[lane] = left[lane] * self.radix_right.get() + right[lane];
        }
    }
}

/// `digit` rotated within its radix by an amount that depends on the other digit and the key.
#[inline]
fn turned(digit: u64, other: u64, key: [u64; 2], radix: u64) -> u64 {
    let product = u128::from(other ^ key[0]) * u128::from(key[1]);
    let bits = product as u64 ^ (product >> 64) as u64;
    let sum = digit + below(bits, radix);
    if sum >= radix { sum - radix } else { sum }
}

/// SplitMix64, started from a length, a seed and an epoch.
struct Keys {
    state: u64,
}

impl Keys {
    /// Mixes in each of the three separately: seed 1, epoch 0 is unrelated to seed 0, epoch 1.
    fn new(len: u64, seed: u64, epoch: u64) -> Self {
        let state = [seed, epoch, len].into_iter().fold(0u64, |state, word| {
            mixed(state.wrapping_add(word).wrapping_add(GAMMA))
        });
        Self { state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mixed(self.state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permutation(len: u64, seed: u64, epoch: u64) -> Permutation {
        Permutation::new(NonZeroU64::new(len).unwrap(), seed, epoch)
    }

    fn numbers(len: u64, seed: u64, epoch: u64) -> Vec<u64> {
        let mut out = vec![u64::MAX; len as usize];
        permutation(len, seed, epoch).fill(0, 1, &mut out);
        out
    }

    fn assert_bijective(len: u64) {
        let mut seen = vec![false; len as usize];
        for number in numbers(len, len ^ 5, 3) {
            assert!(
                !std::mem::replace(&mut seen[number as usize], true),
                "{number} twice of {len}"
            );
        }
    }

    #[test]
    fn every_number_occurs_once_for_every_small_length() {
        (1..=5000).for_each(assert_bijective);
    }

    #[test]
    fn every_number_occurs_once_around_squares_and_powers() {
        for root in [256u64, 317, 1000] {
            (root * root - 2..=root * root + 2).for_each(assert_bijective);
        }
        (16..=20).for_each(|log| assert_bijective((1 << log) - 1));
    }

    proptest! {
        #[test]
        fn different_positions_have_different_numbers(
            len in TABLE_LEN + 1.., seed: u64, epoch: u64, start: u64,
        ) {
            let mut out = [0; 500];
            permutation(len, seed, epoch).fill(start, 1, &mut out);
            prop_assert!(out.iter().all(|&number| number < len));
            let different: std::collections::HashSet<u64> = out.into_iter().collect();
            prop_assert_eq!(different.len(), 500);
        }

        #[test]
        fn the_inverse_network_undoes_a_pass(len in TABLE_LEN + 1.., seed: u64, epoch: u64, i: u64) {
            let network = Network::new(len, &mut Keys::new(len, seed, epoch));
            let mut there = [i % len];
            network.permute(&mut there);
            prop_assert_eq!(undone(&network, there[0]), i % len);
        }

        #[test]
        fn fill_equals_at_for_each_position(
            len in prop_oneof![1u64..3000, Just(u64::MAX), any::<u64>().prop_map(|len| len.max(1))],
            start: u64, step: u64, num in 0usize..40,
        ) {
            let permutation = permutation(len, 1, 2);
            let mut out = vec![0; num];
            permutation.fill(start, step, &mut out);
            for (i, number) in (0u128..).zip(out) {
                let position = (u128::from(start) + i * u128::from(step)) % u128::from(len);
                prop_assert_eq!(number, permutation.at(position as u64));
            }
        }
    }

    /// The inverse network: subtractions, with the rounds in reverse order.
    fn undone(network: &Network, number: u64) -> u64 {
        let (mut left, mut right) = (number / network.radix_right, number % network.radix_right);
        let back = |digit: u64, other: u64, key, radix: u64| {
            (digit + radix - turned(0, other, key, radix)) % radix
        };
        for keys in network.keys.chunks_exact(2).rev() {
            right = back(right, left, keys[1], network.radix_right.get());
            left = back(left, right, keys[0], network.radix_left);
        }
        left * network.radix_right.get() + right
    }

    /// The chi-square statistic of `counts` for equal expected counts.
    fn chi_square(counts: &[u64], expected: f64) -> f64 {
        counts
            .iter()
            .map(|&count| (count as f64 - expected).powi(2) / expected)
            .sum()
    }

    /// Whether a chi-square value is plausible for this many degrees of freedom.
    fn is_usual(chi_square: f64, freedom: f64) -> bool {
        (chi_square - freedom).abs() < 4.5 * (2.0 * freedom).sqrt()
    }

    #[test]
    fn every_order_of_four_is_equally_likely() {
        let mut counts = [0; 256];
        for seed in 0..24_000 {
            let order = numbers(4, seed, 0);
            counts[order.iter().fold(0, |code, number| code * 4 + number) as usize] += 1;
        }
        let orders: Vec<u64> = counts.into_iter().filter(|&count| count > 0).collect();
        assert_eq!(orders.len(), 24);
        assert!(is_usual(chi_square(&orders, 1000.0), 23.0));
    }

    #[test]
    fn positions_and_pairs_of_positions_are_uniform_over_epochs() {
        // The smallest network, whose halves are 33 and 32. Defects would be largest for this
        // length.
        let len = TABLE_LEN + 1;
        let epochs = 20 * len;
        let mut firsts = vec![0; len as usize];
        let mut differences = vec![0; len as usize];
        for epoch in 0..epochs {
            let permutation = permutation(len, 9, epoch);
            let (first, second) = (permutation.at(0), permutation.at(1));
            firsts[first as usize] += 1;
            differences[((second + len - first) % len) as usize] += 1;
        }
        assert!(is_usual(chi_square(&firsts, 20.0), len as f64 - 1.0));
        assert_eq!(differences[0], 0);
        let expected = epochs as f64 / (len - 1) as f64;
        assert!(is_usual(
            chi_square(&differences[1..], expected),
            len as f64 - 2.0
        ));
    }

    #[test]
    fn adjacent_positions_of_an_epoch_are_independent() {
        let len = 1 << 20;
        let order = numbers(len, 3, 0);
        let mut cells = vec![0; 64 * 64];
        for pair in order.windows(2) {
            cells[(pair[0] >> 14 << 6 | pair[1] >> 14) as usize] += 1;
        }
        let expected = (len - 1) as f64 / cells.len() as f64;
        assert!(is_usual(
            chi_square(&cells, expected),
            cells.len() as f64 - 1.0
        ));
    }

    #[test]
    fn different_seeds_and_epochs_are_unrelated() {
        let len = 100_000;
        let order = numbers(len, 0, 1);
        for (seed, epoch) in [(1, 0), (0, 0), (0, 2), (1, 1), (u64::MAX, 1), (1 << 63, 1)] {
            let other_order = numbers(len, seed, epoch);
            // Two unrelated orders agree at one position on average; ten agreements have a
            // probability of one in ten million.
            let agreeing = order
                .iter()
                .zip(&other_order)
                .filter(|(a, b)| a == b)
                .count();
            assert!(agreeing < 10, "{agreeing} with seed {seed}, epoch {epoch}");
        }
    }

    #[test]
    fn the_order_matches_the_golden_values() {
        // Computed with this code when the order was fixed, and confirmed by the independent
        // implementation in tests/support/reference_order.py. Changing a number here breaks every stopped
        // run.
        assert_eq!(numbers(10, 0, 0), [4, 7, 8, 9, 6, 1, 2, 0, 3, 5]);
        let first = |len, seed, epoch| {
            let mut out = [0; 4];
            permutation(len, seed, epoch).fill(0, 1, &mut out);
            out
        };
        assert_eq!(first(1025, 0, 0), [500, 1020, 557, 731]);
        assert_eq!(first(1_000_000, 42, 7), [700_865, 611_053, 806_927, 76_009]);
        assert_eq!(
            first(1 << 40, u64::MAX, u64::MAX),
            [
                824_458_835_846,
                780_618_780_948,
                622_439_486_758,
                797_113_935_300
            ]
        );
        assert_eq!(
            first(u64::MAX, 1, 0),
            [
                7_155_694_574_413_640_997,
                18_419_133_751_892_876_696,
                14_998_753_325_367_946_401,
                16_170_628_927_197_640_512
            ]
        );
    }
}
