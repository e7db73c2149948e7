//! Repetition within a document: lines that occurred before, and n-grams of tokens that occurred before.

use xxhash_rust::xxh64::xxh64;

/// Tokens of an n-gram.
pub(super) const NGRAM_TOKENS: usize = 10;
/// Base of the hash of an n-gram, a polynomial of its ids.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
/// Places of the table that are searched for an n-gram. A table that is at most half full rarely needs more than
/// a few; only ids chosen to have equal hashes need them all, and then repetition is missed.
const MAX_PROBES: usize = 64;

/// A part of a document that is repeated, in bytes or tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) repeated: u64,
    pub(super) total: u64,
}

/// Finds repetition. Its lists are reused for the next document.
#[derive(Default)]
pub(super) struct Repetition {
    lines: Vec<(u64, u64)>,
    /// A hash table of the first occurrence of each n-gram: its start plus one, or zero. It is as large as the
    /// document requires, so that a short one after a long one has little to clear.
    ngrams: Vec<u32>,
}

impl Repetition {
    /// Bytes of the lines that are equal to an earlier line, without white space at both ends and without
    /// empty lines.
    pub(super) fn of_lines(&mut self, text: &str) -> Repeated {
        self.lines.clear();
        let lines = text
            .split('\n')
            .map(str::trim)
            .filter(|line| !line.is_empty());
        self.lines
            .extend(lines.map(|line| (xxh64(line.as_bytes(), 0), line.len() as u64)));
        self.lines.sort_unstable();
        let repeats = self.lines.windows(2).filter(|pair| pair[0] == pair[1]);
        Repeated {
            repeated: repeats.map(|pair| pair[1].1).sum(),
            total: self.lines.iter().map(|line| line.1).sum(),
        }
    }

    /// Tokens that are part of an n-gram that occurred before.
    pub(super) fn of_tokens(&mut self, ids: &[u32]) -> Repeated {
        let table_len = (2 * ids.len()).next_power_of_two().max(2);
        self.ngrams.clear();
        self.ngrams.resize(table_len, 0);
        let highest = BASE.wrapping_pow(NGRAM_TOKENS as u32);
        let (mut hash, mut repeated, mut stop) = (0u64, 0, 0);
        for (i, &id) in ids.iter().enumerate() {
            // Zero has no weight in a polynomial.
            hash = hash.wrapping_mul(BASE).wrapping_add(u64::from(id) + 1);
            let Some(start) = (i + 1).checked_sub(NGRAM_TOKENS) else {
                continue;
            };
            if start > 0 {
                let before = u64::from(ids[start - 1]) + 1;
                hash = hash.wrapping_sub(before.wrapping_mul(highest));
            }
            if self.has_or_add(ids, start, hash) {
                repeated += i + 1 - start.max(stop);
                stop = i + 1;
            }
        }
        Repeated {
            repeated: repeated as u64,
            total: ids.len() as u64,
        }
    }

    /// Whether the n-gram at `start` is in the table; if not, it is added.
    fn has_or_add(&mut self, ids: &[u32], start: usize, hash: u64) -> bool {
        let ngram_at = |start: usize| &ids[start..start + NGRAM_TOKENS];
        // The highest bits of a product depend on all bits of its factors.
        let shift = 64 - self.ngrams.len().trailing_zeros();
        let mut at = (hash.wrapping_mul(BASE) >> shift) as usize;
        for _ in 0..MAX_PROBES {
            match self.ngrams[at] {
                0 => {
                    self.ngrams[at] = start as u32 + 1;
                    return false;
                }
                known if ngram_at(known as usize - 1) == ngram_at(start) => return true,
                _ => at = (at + 1) % self.ngrams.len(),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_count_without_white_space_and_empty_ones_do_not() {
        let mut repetition = Repetition::default();
        let mut of = |text| {
            let Repeated { repeated, total } = repetition.of_lines(text);
            (repeated, total)
        };
        assert_eq!(of(""), (0, 0));
        assert_eq!(of("\n\n \n"), (0, 0));
        assert_eq!(of("menu\r\nabout\n\tmenu\nmenu"), (8, 17));
    }

    proptest! {
        #[test]
        fn tokens_of_repeated_ngrams_are_those_of_a_plain_count(ids in prop::collection::vec(0u32..3, 0..80)) {
            let mut seen = HashSet::new();
            let mut is_repeated = vec![false; ids.len()];
            for (start, ngram) in ids.windows(NGRAM_TOKENS).enumerate() {
                if !seen.insert(ngram) {
                    is_repeated[start..start + NGRAM_TOKENS].fill(true);
                }
            }
            let expected = Repeated {
                repeated: is_repeated.iter().filter(|&&is| is).count() as u64,
                total: ids.len() as u64,
            };
            prop_assert_eq!(Repetition::default().of_tokens(&ids), expected);
        }
    }
}
