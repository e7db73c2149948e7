//! Double arrays: the tries in SentencePiece's files, and tries built from vocabularies.
//!
//! A unit is 32 bits, in the layout of darts-clone:
//!
//! ```text
//! bits 0 to 7 label | 8 has a value | 9 offset is in units of 256 | 10 to 30 offset | 31 is a value
//! ```
//!
//! A node is a position in the array. The child of node `n` for byte `b` is the unit at `n ^ b`,
//! if its label is `b`. Files are not trusted: a position outside the array is a node without
//! children.

use yada::builder::DoubleArrayBuilder;

/// A trie whose keys are bytes, none of them zero, and whose values are below 2^31.
#[derive(Debug, Clone)]
pub(crate) struct DoubleArray {
    units: Vec<u32>,
    root: u32,
}

const IS_VALUE: u32 = 1 << 31;
const HAS_VALUE: u32 = 1 << 8;

impl DoubleArray {
    /// Reads the units in `bytes`.
    ///
    /// # Errors
    /// The length of `bytes` is not a multiple of the length of a unit.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (units, rest) = bytes.as_chunks::<4>();
        let mut units: Vec<u32> = units.iter().copied().map(u32::from_le_bytes).collect();
        match units.first() {
            Some(&first) if rest.is_empty() => {
                // No key contains a zero byte, so a unit with this label is unused or the first one. Marking it as a
                // value makes it match no byte.
                for unit in &mut units {
                    if *unit & (IS_VALUE | 0xff) == 0 {
                        *unit = IS_VALUE;
                    }
                }
                let root = offset(first);
                Ok(Self { units, root })
            }
            _ => Err(format!(
                "{} bytes are not a whole number of units",
                bytes.len()
            )),
        }
    }

    /// Builds the trie of these keys and values. If keys are equal, the last one wins.
    ///
    /// # Errors
    /// A key is empty or contains a zero byte, or there are too many keys.
    pub(crate) fn of(mut entries: Vec<(Vec<u8>, u32)>) -> Result<Self, String> {
        // The stable sort keeps the last of equal keys first, and `dedup_by` keeps the first.
        entries.reverse();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        entries.dedup_by(|next, kept| next.0 == kept.0);
        if entries.is_empty() {
            return Self::from_bytes(&[0; 4]);
        }
        if let Some((key, _)) = entries
            .iter()
            .find(|(key, _)| key.is_empty() || key.contains(&0))
        {
            return Err(format!("the key {key:?} is empty or contains a NUL"));
        }
        let bytes = DoubleArrayBuilder::build(&entries).map_err(|error| error.to_string())?;
        Self::from_bytes(&bytes)
    }

    /// The node of the empty key.
    #[inline(always)]
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// The child of node `place` for `byte`, and the value of the key that ends at the child, if
    /// any.
    #[inline(always)]
    pub(crate) fn step(&self, place: u32, byte: u8) -> Option<(u32, Option<u32>)> {
        let place = place ^ u32::from(byte);
        let unit = *self.units.get(place as usize)?;
        if unit & (IS_VALUE | 0xff) != u32::from(byte) {
            return None;
        }
        let place = place ^ offset(unit);
        let value = match unit & HAS_VALUE {
            0 => None,
            _ => Some(self.units.get(place as usize)? & !IS_VALUE),
        };
        Some((place, value))
    }

    /// The node reached from node `place` by `bytes`, and the value of the key that ends there, if
    /// any.
    #[inline]
    pub(crate) fn lead(&self, place: u32, bytes: &[u8]) -> Option<(u32, Option<u32>)> {
        let mut led = (place, None);
        for &byte in bytes {
            led = self.step(led.0, byte)?;
        }
        Some(led)
    }

    pub(crate) fn value_of(&self, key: &[u8]) -> Option<u32> {
        let (_, value) = self.lead(self.root, key)?;
        value
    }

    /// Length and value of the longest key that is a prefix of `bytes`. Considers only the
    /// `max_keys` shortest such keys.
    #[inline]
    pub(crate) fn longest(&self, bytes: &[u8], max_keys: usize) -> Option<(usize, u32)> {
        self.longest_from(self.root, bytes, max_keys)
    }

    /// As [`DoubleArray::longest`], for the remainders of the keys below node `place`.
    #[inline]
    pub(crate) fn longest_from(
        &self,
        mut place: u32,
        bytes: &[u8],
        max_keys: usize,
    ) -> Option<(usize, u32)> {
        let (mut longest, mut num_keys) = (None, 0);
        for (at, &byte) in bytes.iter().enumerate() {
            let Some((next, value)) = self.step(place, byte) else {
                break;
            };
            place = next;
            if let Some(value) = value {
                longest = Some((at + 1, value));
                num_keys += 1;
                if num_keys == max_keys {
                    break;
                }
            }
        }
        longest
    }
}

#[inline(always)]
fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & (1 << 9)) >> 6)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_longest_key_is_found(
            keys in prop::collection::vec(prop::collection::vec(1u8..5, 1..6), 0..40),
            text in prop::collection::vec(0u8..6, 0..12),
        ) {
            let entries: Vec<_> = keys.into_iter().zip(0u32..).collect();
            let map: BTreeMap<_, _> = entries.iter().cloned().collect();
            let trie = DoubleArray::of(entries).unwrap();
            let expected = (1..=text.len()).rev().find_map(|len| Some((len, *map.get(&text[..len])?)));
            prop_assert_eq!(trie.longest(&text, usize::MAX), expected);
            prop_assert_eq!(trie.value_of(&text), map.get(&text).copied());
            let shortest = (1..=text.len()).find_map(|len| Some((len, *map.get(&text[..len])?)));
            prop_assert_eq!(trie.longest(&text, 1), shortest);
        }

        #[test]
        fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 1..64), text: Vec<u8>) {
            let whole = bytes.repeat(4);
            DoubleArray::from_bytes(&whole).unwrap().longest(&text, usize::MAX);
        }
    }
}
