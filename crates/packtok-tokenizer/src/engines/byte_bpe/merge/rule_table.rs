//! Finds the merge rule of two ids with three loads and without a branch, by perfect hashing.
//!
//! The two ids form a key of 40 bits, which a bijection mixes into another of 40 bits. Its high bits select a bucket.
//! The bucket's seed, XORed with the low bits, selects a slot. The seeds are chosen when the table is built, so that
//! no two rules share a slot.
//!
//! ```text
//! mixed key   | high bits               | low bits |       slots: | high bits: 24 | rank: 20 | id: 20 |
//!               | bucket -> its seed  ^ ^ | = slot
//! ```
//!
//! Slot and high bits determine the whole key, so a lookup never returns the rule of other ids.
//!
//! Most neighbours have no rule. A bitmap rejects nearly all of these. The lookup then reads slot 0 instead, so that
//! only slots of rules that occur in texts are read, and stay in the nearer caches.

use std::hint::select_unpredictable;

use super::rule::{ID_BITS, MergeRule, NO_RULE};
use crate::engines::huge_table::{HugeTable, Slots};

const KEY_BITS: u32 = 2 * ID_BITS;
/// Bits of a rule in its slot; above them are the high bits of its key.
const RULE_BITS: u32 = 40;
const HIGH_BITS: u32 = 64 - RULE_BITS;
/// Bits of a key that the slot does not store; the slot number determines them.
const LOW_BITS: u32 = KEY_BITS - HIGH_BITS;

/// Average number of rules in a bucket.
const PER_BUCKET: usize = 4;
/// Bits in the bitmap for each rule.
const BITS_PER_MERGE: usize = 16;
/// Mixes that are tried before the number of slots is doubled, and how often it is doubled.
const MIXES: usize = 8;
const DOUBLINGS: u32 = 4;

pub(super) struct RuleTable {
    mix: Mix,
    filter: HugeTable<u64>,
    seeds: HugeTable<u16>,
    slots: HugeTable<u64>,
}

/// The parameters of the key mixing, and the bits that select a bucket.
#[derive(Clone, Copy)]
struct Mix {
    /// Odd, so that the product is a bijection.
    factor: u64,
    bucket_shift: u32,
    slot_mask: u64,
}

impl RuleTable {
    /// Builds the table from all rules. Each rule comes with its pair of ids; all pairs differ.
    ///
    /// # Errors
    /// The search found no collision-free table. No known vocabulary causes this.
    pub(super) fn new(merges: &[([u32; 2], MergeRule)]) -> Result<Self, String> {
        let num_slots = (merges.len() * 5 / 4)
            .next_power_of_two()
            .max(1 << LOW_BITS);
        let num_buckets = (merges.len() / PER_BUCKET).next_power_of_two().max(64);
        for doublings in 0..DOUBLINGS {
            let num_slots = num_slots << doublings;
            let mut factor = 0x9e_3779_b97f_4a7c;
            for _ in 0..MIXES {
                let mix = Mix {
                    factor: factor | 1,
                    bucket_shift: KEY_BITS - num_buckets.trailing_zeros(),
                    slot_mask: num_slots as u64 - 1,
                };
                if let Some(table) = Self::with(mix, merges) {
                    return Ok(table);
                }
                factor = factor.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23);
            }
        }
        Err("no hash table was found for its merges".to_owned())
    }

    /// The table for this mix, if every bucket has a seed.
    fn with(mix: Mix, merges: &[([u32; 2], MergeRule)]) -> Option<Self> {
        let num_buckets = 1 << (KEY_BITS - mix.bucket_shift);
        let mixed =
            |&([left, right], merge): &([u32; 2], MergeRule)| (mix.mixed(left, right), merge);
        let mut ends = vec![0; num_buckets];
        for (mixed, _) in merges.iter().map(mixed) {
            ends[mix.bucket(mixed)] += 1;
        }
        let mut end = 0;
        for size in &mut ends {
            (end, *size) = (end + *size, end);
        }
        // Counting sort: the start of each bucket advances to its end.
        let mut by_bucket = vec![(0, NO_RULE); merges.len()];
        for (mixed, merge) in merges.iter().map(mixed) {
            let end = &mut ends[mix.bucket(mixed)];
            by_bucket[*end] = (mixed, merge);
            *end += 1;
        }
        // The fullest buckets come first, while most slots are free.
        let of_bucket =
            |bucket: usize| bucket.checked_sub(1).map_or(0, |before| ends[before])..ends[bucket];
        let mut buckets: Vec<usize> = (0..num_buckets)
            .filter(|&bucket| !of_bucket(bucket).is_empty())
            .collect();
        buckets.sort_by_key(|&bucket| std::cmp::Reverse(of_bucket(bucket).len()));
        let num_bits = (merges.len() * BITS_PER_MERGE).next_power_of_two();
        let mut table = Self {
            mix,
            filter: HugeTable::new((num_bits / 64).max(1)),
            seeds: HugeTable::new(num_buckets),
            slots: HugeTable::filled(mix.slot_mask as usize + 1, NO_RULE),
        };
        // Slot 0 stays empty: rejected lookups read it.
        let (seeds, slots) = (table.seeds.all_mut(), table.slots.all_mut());
        let filter = table.filter.all_mut();
        for number in buckets {
            let bucket = &by_bucket[of_bucket(number)];
            let seed = (0..=u16::MAX).find(|&seed| {
                let mut places = bucket.iter().enumerate();
                places.all(|(i, &(mixed, _))| {
                    let slot = mix.slot(mixed, seed);
                    let is_taken = |other: &(u64, MergeRule)| mix.slot(other.0, seed) == slot;
                    slot != 0 && slots[slot] == NO_RULE && !bucket[..i].iter().any(is_taken)
                })
            })?;
            seeds[number] = seed;
            for &(mixed, merge) in bucket {
                slots[mix.slot(mixed, seed)] = mixed >> LOW_BITS << RULE_BITS | merge;
                filter[word_of(mixed, filter.len())] |= bit_of(mixed);
            }
        }
        Some(table)
    }

    /// A view for lookups: making slices of the tables takes longer than a lookup.
    #[inline]
    pub(super) fn view(&self) -> RuleTableView<'_> {
        RuleTableView {
            mix: self.mix,
            filter: self.filter.slots(),
            seeds: self.seeds.slots(),
            slots: self.slots.slots(),
        }
    }
}

/// A view of a [`RuleTable`] for lookups.
#[derive(Clone, Copy)]
pub(super) struct RuleTableView<'a> {
    mix: Mix,
    filter: Slots<'a, u64>,
    seeds: Slots<'a, u16>,
    slots: Slots<'a, u64>,
}

/// The only slot in which the rule of two ids can be.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    slot: usize,
    high: u64,
}

impl RuleTableView<'_> {
    /// Computes where the rule of two neighbours would be.
    #[inline(always)]
    pub(super) fn probe(self, left: u32, right: u32) -> Probe {
        let mixed = self.mix.mixed(left, right);
        let filter = self.filter.at(mixed as usize >> 6) >> (mixed & 63) & 1 == 1;
        let seed = *self.seeds.at(self.mix.bucket(mixed));
        // The condition is unpredictable, so this must not compile to a branch.
        let slot = select_unpredictable(filter, mixed ^ u64::from(seed), 0);
        Probe {
            slot: slot as usize,
            high: mixed >> LOW_BITS,
        }
    }

    /// Reads the rule at a probe; [`NO_RULE`] if the slot holds the rule of other ids.
    #[inline(always)]
    pub(super) fn read(self, probe: Probe) -> MergeRule {
        let slot = *self.slots.at(probe.slot);
        let is_it = slot >> RULE_BITS == probe.high;
        select_unpredictable(is_it, slot & NO_RULE, NO_RULE)
    }
}

/// The word of the bitmap that holds the bit of a key.
#[inline(always)]
fn word_of(mixed: u64, num_words: usize) -> usize {
    mixed as usize >> 6 & (num_words - 1)
}

#[inline(always)]
fn bit_of(mixed: u64) -> u64 {
    1 << (mixed & 63)
}

impl Mix {
    /// The mixed key of two ids.
    #[inline(always)]
    fn mixed(self, left: u32, right: u32) -> u64 {
        let key = u64::from(left) << ID_BITS | u64::from(right);
        // A product with an odd factor, then a XOR of the high half into the low half. Both are
        // bijections.
        let product = key.wrapping_mul(self.factor) & ((1 << KEY_BITS) - 1);
        product ^ product >> ID_BITS
    }

    #[inline(always)]
    fn bucket(self, mixed: u64) -> usize {
        (mixed >> self.bucket_shift) as usize
    }

    #[inline(always)]
    fn slot(self, mixed: u64, seed: u16) -> usize {
        ((mixed ^ u64::from(seed)) & self.slot_mask) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(merges: &HashMap<[u32; 2], MergeRule>, others: &[[u32; 2]]) {
        let list: Vec<_> = merges.iter().map(|(&ids, &merge)| (ids, merge)).collect();
        let table = RuleTable::new(&list).expect("there is a table");
        let view = table.view();
        for ids in merges.keys().chain(others) {
            let expected = merges.get(ids).copied().unwrap_or(NO_RULE);
            assert_eq!(view.read(view.probe(ids[0], ids[1])), expected, "{ids:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_put_is_found_and_nothing_else(
            merges in prop::collection::hash_map([0..1u32 << 20, 0..1u32 << 20], 0..NO_RULE, 0..400),
            others in prop::collection::vec([0..1u32 << 20, 0..1u32 << 20], 0..400),
        ) {
            check(&merges, &others);
        }
    }

    #[test]
    fn a_vocabulary_of_a_million_merges_has_a_table() {
        let merges = (0..1u32 << 20).map(|i| ([i & 0x3ff, i >> 10], MergeRule::from(i)));
        let others: Vec<_> = (0..1000).map(|i| [1024 + i, 1024]).collect();
        check(&merges.collect(), &others);
    }
}
