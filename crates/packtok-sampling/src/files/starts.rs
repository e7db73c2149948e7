//! Which of many stretches, laid end to end, holds a position.
//!
//! Responsible for finding it in a time that does not grow with their number, and in few cache lines: datasets
//! are asked for items from all over ten thousand files.

use std::ops::Range;

/// Where each of some stretches starts if they stand one behind the other, and where the last one ends.
#[derive(Debug)]
pub(crate) struct Starts {
    starts: Vec<u64>,
    /// Positions are cut into sections of 2^shift. For each: the last stretch that starts at or before its start;
    /// and one more, which bounds what is sought in the last.
    sections: Vec<u32>,
    shift: u32,
    /// Stretches for each position, in 2^-64.
    per_position: u64,
}

impl Starts {
    /// Lays stretches of these lengths end to end.
    ///
    /// # Errors
    /// The number of the stretch at which the sum of the lengths, or the number itself, is too large.
    pub(crate) fn new(lens: impl IntoIterator<Item = u64>) -> Result<Self, usize> {
        let mut starts = vec![0u64];
        for len in lens {
            let stretch = starts.len() - 1;
            let end = starts[stretch].checked_add(len).ok_or(stretch)?;
            if u32::try_from(starts.len()).is_err() {
                return Err(stretch);
            }
            starts.push(end);
        }
        let (total, num_stretches) = (starts[starts.len() - 1], starts.len() as u64 - 1);
        let mut shift = 0;
        // As many sections as stretches or up to twice as many: one of equal stretches starts in few of them.
        while total >> shift > 2 * num_stretches {
            shift += 1;
        }
        let mut last = 0;
        let sections = (0..=(total >> shift) + 1).map(|section| {
            let position = section.saturating_mul(1 << shift);
            while last + 1 < starts.len() - 1 && starts[last + 1] <= position {
                last += 1;
            }
            last as u32
        });
        let sections = sections.collect();
        // Rounded up, so that the first position of a stretch is not taken for the last of the one before.
        let per_position = (u128::from(num_stretches) << 64).div_ceil(u128::from(total.max(1)));
        Ok(Self {
            starts,
            sections,
            shift,
            // With less than a position for each, no guess is worth it.
            per_position: per_position.try_into().unwrap_or(0),
        })
    }

    /// Number of stretches.
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The sum of all lengths.
    pub(crate) fn total(&self) -> u64 {
        self.starts[self.len()]
    }

    /// Where a stretch starts.
    pub(crate) fn start(&self, stretch: usize) -> u64 {
        self.starts[stretch]
    }

    /// The positions of a stretch.
    pub(crate) fn range(&self, stretch: usize) -> Range<u64> {
        self.starts[stretch]..self.starts[stretch + 1]
    }

    /// The last stretch that starts at or before `position`, which must be below [`Starts::total`]: it holds the
    /// position, and empty ones before it do not.
    #[inline]
    pub(crate) fn find(&self, position: u64) -> usize {
        // Right where all stretches are of one length; then one look at memory is all.
        let guess = ((u128::from(position) * u128::from(self.per_position)) >> 64) as usize;
        if let Some(&[start, end]) = self.starts.get(guess..guess + 2)
            && (start..end).contains(&position)
        {
            return guess;
        }
        self.search(position)
    }

    fn search(&self, position: u64) -> usize {
        let section = (position >> self.shift) as usize;
        let (first, last) = (self.sections[section], self.sections[section + 1]);
        let (first, last) = (first as usize, last as usize);
        if last - first <= 1 {
            return first + usize::from(self.starts[first + 1] <= position);
        }
        let behind = &self.starts[first + 1..=last];
        first + behind.partition_point(|&start| start <= position)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The stretch that going from one to the next finds.
    fn walked(lens: &[u64], position: u64) -> usize {
        let mut end = 0;
        let holds = |&len: &u64| {
            end += len;
            position < end
        };
        lens.iter().position(holds).expect("it is within")
    }

    fn check(lens: &[u64]) {
        let starts = Starts::new(lens.iter().copied()).unwrap();
        assert_eq!(starts.total(), lens.iter().sum::<u64>());
        let mut start = 0;
        for (stretch, &len) in lens.iter().enumerate() {
            assert_eq!(starts.start(stretch), start);
            assert_eq!(starts.range(stretch), start..start + len);
            for position in [start, start + len / 2, start + len.saturating_sub(1)] {
                if len > 0 {
                    assert_eq!(starts.find(position), walked(lens, position), "{lens:?}");
                    assert_eq!(starts.search(position), walked(lens, position), "{lens:?}");
                }
            }
            start += len;
        }
    }

    #[test]
    fn stretches_of_one_length_are_guessed() {
        for (num_stretches, len) in [(1, 1), (1, 1 << 40), (7, 3), (10_000, 15), (999, 31_690)] {
            let lens = vec![len; num_stretches];
            check(&lens);
            let starts = Starts::new(lens).unwrap();
            for stretch in 0..num_stretches {
                assert_eq!(starts.find(starts.range(stretch).end - 1), stretch);
            }
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        assert_eq!(Starts::new([1, u64::MAX - 1, 1, 5]).unwrap_err(), 2);
        check(&[1, u64::MAX - 2, 1]);
        check(&[u64::MAX]);
    }

    #[test]
    fn nothing_may_be_there() {
        let starts = Starts::new([0, 0]).unwrap();
        assert_eq!((starts.total(), starts.range(1)), (0, 0..0));
    }

    proptest! {
        #[test]
        fn the_one_found_is_the_one_that_walking_finds(
            lens in prop::collection::vec(prop_oneof![Just(0), 0..4u64, 0..1000u64, 0..1u64 << 50], 1..60),
        ) {
            check(&lens);
        }
    }
}
