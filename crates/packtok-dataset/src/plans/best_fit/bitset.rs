//! A set of small integers with a fast successor query.

const BITS: usize = u64::BITS as usize;

/// A set of integers below a limit: a hierarchical bitmap, in which each level marks the non-zero
/// words of the level below.
pub(super) struct Bitset {
    /// From the bitmap itself up to a single word.
    levels: Vec<Vec<u64>>,
}

impl Bitset {
    /// An empty set of integers below `limit`.
    pub(super) fn new(limit: usize) -> Self {
        let mut levels = Vec::new();
        let mut num_bits = limit.max(1);
        loop {
            let num_words = num_bits.div_ceil(BITS);
            levels.push(vec![0; num_words]);
            if num_words == 1 {
                return Self { levels };
            }
            num_bits = num_words;
        }
    }

    /// Adds `number`, which must be below the limit.
    pub(super) fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            level[at / BITS] |= 1 << (at % BITS);
            at /= BITS;
        }
    }

    /// Removes `number`, which must be below the limit.
    pub(super) fn remove(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            level[at / BITS] &= !(1 << (at % BITS));
            if level[at / BITS] != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// The least member that is at least `number`.
    pub(super) fn first_from(&self, number: usize) -> Option<usize> {
        let mut at = number;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / BITS)? >> (at % BITS);
            if word != 0 {
                return Some(self.least_below(height, at + word.trailing_zeros() as usize));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// The least member under bit `at` of a level; the bit must be set.
    fn least_below(&self, height: usize, at: usize) -> usize {
        let below = self.levels[..height].iter().rev();
        below.fold(at, |at, level| {
            at * BITS + level[at].trailing_zeros() as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Bitset;

    proptest! {
        #[test]
        fn the_successor_equals_that_of_an_ordered_set(
            limit in 1usize..10_000,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let (mut rooms, mut expected) = (Bitset::new(limit), BTreeSet::new());
            for (is_added, number) in steps {
                let number = number.index(limit);
                if is_added {
                    rooms.insert(number);
                    expected.insert(number);
                } else {
                    rooms.remove(number);
                    expected.remove(&number);
                }
                for from in [0, number, number + 1, limit - 1, limit] {
                    prop_assert_eq!(rooms.first_from(from), expected.range(from..).next().copied());
                }
            }
        }
    }
}
