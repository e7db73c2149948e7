//! Classes of characters that no set of a pattern tells apart.

use std::collections::HashMap;

use super::program::Sets;

/// Where bytes that begin characters beyond ASCII have no class of their own.
pub(super) const WIDE: u8 = u8::MAX;

/// More classes are refused: the last number stands for characters beyond ASCII.
const MAX_CLASSES: usize = 250;

/// The classes of all characters, and one for the end of a text.
pub(super) struct Classes {
    /// The ranges of scalars, first and last included, in order, and the class of each.
    pub(super) ranges: Vec<(u32, u32, u8)>,
    /// For each class, a bit for each set that contains it.
    signatures: Vec<u128>,
}

impl Classes {
    /// # Errors
    /// The sets have too many classes.
    pub(super) fn new(sets: &Sets) -> Result<Self, String> {
        // At each of these scalars, the signature changes.
        let mut changes: Vec<(u32, u128)> = vec![(0, 0)];
        for (number, set) in sets.as_slice().iter().enumerate() {
            let bit = 1 << number;
            for &(first, last) in set.ranges() {
                changes.extend([(first, bit), (last + 1, bit)]);
            }
        }
        changes.sort_unstable_by_key(|&(scalar, _)| scalar);
        let mut numbers = HashMap::new();
        let mut classes = Self {
            ranges: Vec::new(),
            signatures: Vec::new(),
        };
        let mut signature = 0;
        for (i, &(first, bits)) in changes.iter().enumerate() {
            signature ^= bits;
            let end = changes
                .get(i + 1)
                .map_or(char::MAX as u32 + 1, |&(next, _)| next);
            if first >= end {
                continue;
            }
            let next_number = classes.signatures.len();
            let number = *numbers.entry(signature).or_insert(next_number);
            if number == next_number {
                classes.signatures.push(signature);
                if number == MAX_CLASSES {
                    return Err(format!("more than {MAX_CLASSES} classes of characters"));
                }
            }
            classes.ranges.push((first, end - 1, number as u8));
        }
        Ok(classes)
    }

    /// The number of classes without that of the end.
    pub(super) fn len(&self) -> usize {
        self.signatures.len()
    }

    /// The class of the end of a text.
    pub(super) fn end(&self) -> usize {
        self.len()
    }

    /// Whether the characters of a class are in a set. The end is in none.
    pub(super) fn is_in(&self, class: usize, set: usize) -> bool {
        self.signatures
            .get(class)
            .is_some_and(|signature| signature >> set & 1 == 1)
    }

    pub(super) fn of(&self, char: char) -> u8 {
        self.of_scalar(char as u32)
    }

    /// As [`Classes::of`], also for surrogates.
    pub(super) fn of_scalar(&self, scalar: u32) -> u8 {
        let number = self.ranges.partition_point(|&(_, last, _)| last < scalar);
        self.ranges[number].2
    }
}
