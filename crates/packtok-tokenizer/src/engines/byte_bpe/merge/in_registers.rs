//! Merges words of up to 15 bytes in registers, for back ends that have them. Several words are merged side by side,
//! because each step of a word waits for the step before it. In a step, no branch depends on the length of the word.
//!
//! ```text
//! lane       0   1   2   3   4   5  ..  15       "hello", when "ll" has been merged
//! symbols    -   h   e  ll   o   -       -       lanes without a symbol stand for both ends of the word
//! merged     -  he   -   -   -   -       -       what each symbol and the next merge into
//! ```
//!
//! A merge removes a lane, so the symbols stay next to each other.

use super::rules::MergeRulesView;
use super::symbol::NO_SYMBOL;
use crate::engines::simd::{Lanes, NUM_LANES, Simd};
use crate::engines::word_key::{SHORT, WordKey};

/// Words that are merged side by side.
const NUM_IN_FLIGHT: usize = 6;

// One lane is not used for symbols.
const _: () = assert!(SHORT < NUM_LANES);

/// A word.
#[derive(Clone, Copy)]
pub(super) struct RegisterMerge {
    symbols: Lanes,
    merged: Lanes,
    num_symbols: usize,
}

impl RegisterMerge {
    const NOTHING: Self = Self {
        symbols: Lanes([NO_SYMBOL; NUM_LANES]),
        merged: Lanes([NO_SYMBOL; NUM_LANES]),
        num_symbols: 0,
    };

    /// Calls `put` with the number of each word, its ids and their count, in any order.
    #[inline(always)]
    pub(super) fn encode_all(
        simd: impl Simd,
        rules: MergeRulesView<'_>,
        words: impl Iterator<Item = WordKey>,
        mut put: impl FnMut(usize, &[u32; SHORT], usize),
    ) {
        let mut words = words.enumerate();
        let mut in_flight = [Self::NOTHING; NUM_IN_FLIGHT];
        let mut numbers = [None; NUM_IN_FLIGHT];
        loop {
            for (word_merge, number) in in_flight.iter_mut().zip(&mut numbers) {
                if word_merge.step(simd, rules) {
                    continue;
                }
                if let Some(number) = *number {
                    let ids = word_merge.ids(simd, rules);
                    let [_, of_word @ ..] = &ids.0;
                    put(number, of_word, word_merge.num_symbols);
                }
                (*word_merge, *number) = match words.next() {
                    Some((number, word)) => (Self::new(simd, rules, word), Some(number)),
                    None => (Self::NOTHING, None),
                };
            }
            if numbers == [None; NUM_IN_FLIGHT] {
                return;
            }
        }
    }

    #[inline(always)]
    fn new(simd: impl Simd, rules: MergeRulesView<'_>, word: WordKey) -> Self {
        if rules.alphabet.is_of_chars() {
            return Self::of_chars(rules, word);
        }
        let [bytes, pairs] = simd.bytes_and_pairs(word);
        let of_symbols = bits_of_symbols(word.len());
        let of_pairs = of_symbols & of_symbols >> 1;
        Self {
            symbols: simd.look_up(rules.symbols_of_bytes, &bytes, of_symbols, NO_SYMBOL),
            merged: simd.look_up(rules.by_bytes, &pairs, of_pairs, NO_SYMBOL),
            num_symbols: word.len(),
        }
    }

    #[inline(always)]
    fn of_chars(rules: MergeRulesView<'_>, word: WordKey) -> Self {
        let mut new = Self::NOTHING;
        new.num_symbols = rules.begin(
            &word.bytes()[..word.len()],
            |at, symbol| new.symbols.0[(at + 1) % NUM_LANES] = symbol,
            |at, merged| new.merged.0[(at + 1) % NUM_LANES] = merged,
        );
        new
    }

    /// Performs the merge into the lowest symbol, leftmost first; `false` if none is left.
    #[inline(always)]
    fn step(&mut self, simd: impl Simd, rules: MergeRulesView<'_>) -> bool {
        let (symbol, lane) = simd.least(&self.merged);
        if symbol >= NO_SYMBOL {
            return false;
        }
        // After the last lane comes the first, which stands for the end of the word.
        let [before, next] = [lane - 1, lane + 2].map(|lane| self.symbols.0[lane % NUM_LANES]);
        let with_before = rules.by_symbols.probe(before, symbol);
        let with_next = rules.by_symbols.probe(symbol, next);
        simd.remove(&mut self.symbols, lane + 1);
        simd.replace(&mut self.symbols, lane, symbol);
        simd.remove(&mut self.merged, lane + 1);
        for (lane, probe) in [(lane - 1, with_before), (lane, with_next)] {
            let merged = rules.by_symbols.read(probe);
            simd.replace(&mut self.merged, lane, merged);
        }
        self.num_symbols -= 1;
        true
    }

    /// The ids that remain, from lane 1 on.
    #[inline(always)]
    fn ids(&self, simd: impl Simd, rules: MergeRulesView<'_>) -> Lanes {
        if rules.are_symbols_ids {
            return self.symbols;
        }
        let bits = bits_of_symbols(self.num_symbols);
        simd.look_up(rules.ids, &self.symbols, bits, NO_SYMBOL)
    }
}

/// The lanes of the symbols of a word.
#[inline(always)]
fn bits_of_symbols(num_symbols: usize) -> u16 {
    ((2 << num_symbols) - 2) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engines::byte_bpe::alphabet::Alphabet;
    use crate::engines::byte_bpe::merge::in_place::InPlaceMerge;
    use crate::engines::byte_bpe::merge::rules::MergeRules;
    use crate::engines::simd::{AnySimd, Job};

    struct AllIds<'a>(&'a MergeRules, &'a [WordKey]);

    impl Job for AllIds<'_> {
        type Output = Vec<Vec<u32>>;

        #[inline(always)]
        fn run(self, simd: impl Simd) -> Self::Output {
            let mut all = vec![Vec::new(); self.1.len()];
            let words = self.1.iter().copied();
            RegisterMerge::encode_all(simd, self.0.view(), words, |number, ids, num_ids| {
                all[number].extend_from_slice(&ids[..num_ids]);
            });
            all
        }
    }

    /// Letters with ids from 500 down; each rule makes the next token.
    fn rules(pairs: &[(usize, usize)], are_chars: bool) -> MergeRules {
        let mut ids: Vec<u32> = (0..4).map(|letter| 500 - letter).collect();
        let mut of_byte = [super::super::rule::NO_ID; 256];
        for (byte, &id) in (b'a'..).zip(&ids[..3]) {
            of_byte[usize::from(byte)] = id;
        }
        let alphabet = if are_chars {
            let numbers = (0..256).map(|byte| 600 + byte).collect::<Vec<_>>();
            let chars = ['a', 'b', 'c', '\u{e9}'].into_iter().zip(ids.clone());
            Alphabet::of_chars(numbers.try_into().unwrap(), chars)
        } else {
            Alphabet::of_bytes(of_byte)
        };
        let mut by_rank = Vec::new();
        for &(left, right) in pairs {
            let id = 1000 - ids.len() as u32;
            by_rank.push([ids[left % ids.len()], ids[right % ids.len()], id]);
            ids.push(id);
        }
        MergeRules::new(alphabet, &by_rank).unwrap()
    }

    proptest! {
        #[test]
        fn ids_equal_those_of_merging_in_place(
            pairs in prop::collection::vec((0..40usize, 0..40usize), 0..60),
            words in prop::collection::vec("[abc]{1,15}|[abc\u{e9}x]{1,7}", 1..40),
            are_chars in prop::bool::ANY,
        ) {
            let rules = rules(&pairs, are_chars);
            let is_covered = |word: &&String| are_chars || word.bytes().all(|byte| b"abc".contains(&byte));
            let words: Vec<_> = words.iter().filter(is_covered).map(|word| WordKey::at(word.as_bytes(), 0, word.len())).collect();
            let mut expected = vec![Vec::new(); words.len()];
            InPlaceMerge::<16>::encode_all(rules.view(), words.iter().copied(), |number, ids, num_ids| {
                expected[number].extend_from_slice(&ids[..num_ids]);
            });
            for simd in AnySimd::all() {
                prop_assert_eq!(&simd.run(AllIds(&rules, &words)), &expected);
            }
        }
    }
}
