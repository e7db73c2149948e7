//! Finds the range that contains a position, among many contiguous ranges.
//!
//! Responsible for a lookup whose cost does not grow with the number of ranges and that touches
//! few cache lines: the items of a batch are spread over ten thousand files.

use std::ops::Range;

/// The starts of several contiguous ranges, and the end of the last range.
#[derive(Debug)]
pub(crate) struct Ranges {
    starts: Vec<u64>,
    /// Positions are divided into sections of 2^shift. The entry of a section is the last range
    /// that starts at or before the start of the section. One more entry bounds the search in the
    /// last section.
    sections: Vec<u32>,
    shift: u32,
    /// Ranges per position, in units of 2^-64.
    per_position: u64,
}

impl Ranges {
    /// Concatenates ranges of these lengths.
    ///
    /// # Errors
    /// The number of the range at which the sum of the lengths, or the number of ranges, is too
    /// large.
    pub(crate) fn new(lens: impl IntoIterator<Item = u64>) -> Result<Self, usize> {
        let mut starts = vec![0u64];
        for len in lens {
            let range_index = starts.len() - 1;
            let end = starts[range_index].checked_add(len).ok_or(range_index)?;
            if u32::try_from(starts.len()).is_err() {
                return Err(range_index);
            }
            starts.push(end);
        }
        let (total, num_ranges) = (starts[starts.len() - 1], starts.len() as u64 - 1);
        let mut shift = 0;
        // One to two sections per range, so that few ranges start in the same section if their
        // lengths are equal.
        while total >> shift > 2 * num_ranges {
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
        // Rounded up, so that the first position of a range is not assigned to the previous range.
        let per_position = (u128::from(num_ranges) << 64).div_ceil(u128::from(total.max(1)));
        Ok(Self {
            starts,
            sections,
            shift,
            // With less than one position per range, interpolation does not help.
            per_position: per_position.try_into().unwrap_or(0),
        })
    }

    /// Number of ranges.
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The sum of all lengths.
    pub(crate) fn total(&self) -> u64 {
        self.starts[self.len()]
    }

    pub(crate) fn start(&self, range_index: usize) -> u64 {
        self.starts[range_index]
    }

    /// The positions of a range.
    pub(crate) fn range(&self, range_index: usize) -> Range<u64> {
        self.starts[range_index]..self.starts[range_index + 1]
    }

    /// The range that contains `position`, which must be below [`Ranges::total`]. Empty ranges are
    /// never returned.
    #[inline]
    pub(crate) fn find(&self, position: u64) -> usize {
        // The guess is exact if all ranges have the same length; then one memory access suffices.
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
        let after = &self.starts[first + 1..=last];
        first + after.partition_point(|&start| start <= position)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The range that contains a position, found by a linear search.
    fn walked(lens: &[u64], position: u64) -> usize {
        let mut end = 0;
        let holds = |&len: &u64| {
            end += len;
            position < end
        };
        lens.iter().position(holds).expect("it is within")
    }

    fn check(lens: &[u64]) {
        let starts = Ranges::new(lens.iter().copied()).unwrap();
        assert_eq!(starts.total(), lens.iter().sum::<u64>());
        let mut start = 0;
        for (range_index, &len) in lens.iter().enumerate() {
            assert_eq!(starts.start(range_index), start);
            assert_eq!(starts.range(range_index), start..start + len);
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
    fn ranges_of_equal_length_are_found_by_the_first_guess() {
        for (num_ranges, len) in [(1, 1), (1, 1 << 40), (7, 3), (10_000, 15), (999, 31_690)] {
            let lens = vec![len; num_ranges];
            check(&lens);
            let starts = Ranges::new(lens).unwrap();
            for range_index in 0..num_ranges {
                assert_eq!(starts.find(starts.range(range_index).end - 1), range_index);
            }
        }
    }

    #[test]
    fn sums_above_64_bits_are_rejected() {
        assert_eq!(Ranges::new([1, u64::MAX - 1, 1, 5]).unwrap_err(), 2);
        check(&[1, u64::MAX - 2, 1]);
        check(&[u64::MAX]);
    }

    #[test]
    fn there_may_be_no_ranges() {
        let starts = Ranges::new([0, 0]).unwrap();
        assert_eq!((starts.total(), starts.range(1)), (0, 0..0));
    }

    proptest! {
        #[test]
        fn the_result_equals_a_linear_search(
            lens in prop::collection::vec(prop_oneof![Just(0), 0..4u64, 0..1000u64, 0..1u64 << 50], 1..60),
        ) {
            check(&lens);
        }
    }
}
