//! Maps the draws of a mixture to items. Each source is read in passes, each pass in a different
//! order.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use packtok_jobs::splitmix::{GAMMA, mixed};

use crate::order::mixture::Draw;
use crate::order::permutation::Permutation;

/// The items of each source in the order in which a mixture draws them, endlessly.
#[derive(Debug)]
pub struct Passes {
    num_items: Vec<NonZeroU64>,
    seed: Option<u64>,
    /// The last pass of each source. Calls nearly always stay in the same pass, and building the
    /// permutation of a small source takes microseconds.
    last: Mutex<Vec<Option<(u64, Permutation)>>>,
}

impl Passes {
    /// Passes over sources with these numbers of items. Without a seed, each pass is sequential.
    ///
    /// The seed for the permutations of source `s` is output number `s` of SplitMix64 started from
    /// `seed`.
    pub fn new(num_items: Vec<NonZeroU64>, seed: Option<u64>) -> Self {
        let last = Mutex::new(vec![None; num_items.len()]);
        Self {
            num_items,
            seed,
            last,
        }
    }

    /// The items of `draws`. Each item is an index in the source of its draw.
    ///
    /// # Panics
    /// If a draw's source does not exist.
    pub fn items(&self, draws: &[Draw]) -> Vec<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let item = |draw: &Draw| {
            let num_items = self.num_items[draw.source];
            let (pass, position) = (draw.ordinal / num_items, draw.ordinal % num_items);
            let Some(seed) = self.seed else {
                return position;
            };
            match &mut last[draw.source] {
                Some((known, permutation)) if *known == pass => permutation.at(position),
                place => {
                    let permutation =
                        Permutation::new(num_items, source_seed(seed, draw.source), pass);
                    place.insert((pass, permutation)).1.at(position)
                }
            }
        };
        draws.iter().map(item).collect()
    }
}

fn source_seed(seed: u64, source: usize) -> u64 {
    mixed(seed.wrapping_add(GAMMA.wrapping_mul(source as u64 + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(num_items: &[u64], seed: Option<u64>) -> Passes {
        let num_items = num_items.iter().map(|&n| NonZeroU64::new(n).unwrap());
        Passes::new(num_items.collect(), seed)
    }

    fn draws(source: usize, ordinals: std::ops::Range<u64>) -> Vec<Draw> {
        ordinals.map(|ordinal| Draw { source, ordinal }).collect()
    }

    #[test]
    fn each_pass_has_every_item_once_in_a_different_order() {
        let passes = passes(&[50, 50], Some(7));
        let mut seen = Vec::new();
        for source in 0..2 {
            for pass in 0..3 {
                let items = passes.items(&draws(source, pass * 50..pass * 50 + 50));
                let mut sorted = items.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..50).collect::<Vec<_>>());
                assert!(!seen.contains(&items));
                seen.push(items);
            }
        }
    }

    #[test]
    fn without_a_seed_items_are_sequential() {
        let items = passes(&[3], None).items(&draws(0, 0..7));
        assert_eq!(items, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_draw_always_maps_to_the_same_item() {
        let in_order = passes(&[5, 2000], Some(1)).items(&draws(1, 0..6000));
        let passes = passes(&[5, 2000], Some(1));
        for ordinal in [5999, 0, 2000, 1999, 4000, 1] {
            passes.items(&draws(0, ordinal..ordinal + 1));
            let item = passes.items(&draws(1, ordinal..ordinal + 1));
            assert_eq!(item, in_order[ordinal as usize..=ordinal as usize]);
        }
    }
}
