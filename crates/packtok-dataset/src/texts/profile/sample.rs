//! Which documents are in the sample, and which of them are equal.

use std::collections::HashMap;

use xxhash_rust::xxh64::xxh64;

use super::largest::MAX_EXAMPLES;
use super::report::{Duplicates, EqualDocuments, Place};

/// Tokens at the start of a document that decide, with its length, whether it is in the sample. A small sample
/// of a large file does not read all of its tokens.
pub(super) const DECIDING_TOKENS: u64 = 64;
/// Hashes of documents that are kept: seven eighths of a power of two, which a table of that size holds, so
/// that it takes 42 MiB at most.
const MAX_HASHES: usize = (1 << 20) / 8 * 7;

/// The share of documents in a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Documents with a hash below this value are in the sample.
    limit: u128,
}

impl Share {
    /// A sample of about `sample_tokens` of all tokens.
    pub(super) fn new(sample_tokens: u64, num_tokens: u64) -> Self {
        let all = 1 << 64;
        let limit = (u128::from(sample_tokens) << 64) / u128::from(num_tokens.max(1));
        Self {
            limit: limit.min(all),
        }
    }

    /// The share as a number from 0 to 1.
    pub(super) fn value(self) -> f64 {
        self.limit as f64 / 2f64.powi(64)
    }

    /// Whether a document is in the sample, given the bytes of its first tokens and its length in tokens.
    pub(super) fn has(self, first: &[u8], len: u64) -> bool {
        u128::from(xxh64(first, len)) < self.limit
    }
}

/// Hashes of the documents that are compared.
pub(super) struct Hashes {
    /// Documents with a larger hash are not compared.
    limit: u64,
    known: HashMap<u64, Equal>,
}

/// The documents of one hash.
struct Equal {
    copies: u64,
    len: u64,
    first: u64,
    second: u64,
}

impl Hashes {
    pub(super) fn new() -> Self {
        Self {
            limit: u64::MAX,
            known: HashMap::new(),
        }
    }

    /// Adds a document with the hash of its ids, and its length in tokens.
    pub(super) fn add(&mut self, number: u64, hash: u64, len: u64) {
        if hash > self.limit {
            return;
        }
        let equal = self.known.entry(hash).or_insert(Equal {
            copies: 0,
            len,
            first: number,
            second: number,
        });
        equal.copies += 1;
        if equal.copies == 2 {
            equal.second = number;
        }
        while self.known.len() > MAX_HASHES {
            self.limit /= 2;
            let limit = self.limit;
            self.known.retain(|&hash, _| hash <= limit);
        }
    }

    pub(super) fn duplicates(self, place: impl Fn(u64) -> Place) -> Duplicates {
        let mut duplicates = Duplicates::default();
        let mut groups = Vec::new();
        for equal in self.known.into_values() {
            duplicates.compared_documents += equal.copies;
            duplicates.compared_tokens += equal.copies * equal.len;
            duplicates.documents += equal.copies - 1;
            duplicates.tokens += (equal.copies - 1) * equal.len;
            if equal.copies > 1 {
                groups.push(equal);
            }
        }
        groups.sort_unstable_by_key(|equal| (std::cmp::Reverse(equal.copies), equal.first));
        groups.truncate(MAX_EXAMPLES);
        duplicates.examples = groups
            .iter()
            .map(|equal| EqualDocuments {
                copies: equal.copies,
                tokens: equal.len,
                documents: [equal.first, equal.second].map(&place),
            })
            .collect();
        duplicates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_all_tokens_has_every_document() {
        for all in [
            Share::new(10, 10),
            Share::new(u64::MAX, 10),
            Share::new(1, 0),
        ] {
            assert!((all.value() - 1.0).abs() < f64::EPSILON);
            assert!((0..1000u32).all(|i| all.has(&i.to_le_bytes(), 2)));
        }
        let tenth = Share::new(1, 10);
        let number = (0..100_000u32)
            .filter(|i| tenth.has(&i.to_le_bytes(), 2))
            .count();
        assert!((9_500..10_500).contains(&number), "{number}");
        assert!(!(0..1000u32).any(|i| Share::new(0, 10).has(&i.to_le_bytes(), 2)));
    }

    #[test]
    fn copies_are_compared_although_the_number_of_hashes_is_limited() {
        let mut hashes = Hashes::new();
        for number in 0..3 * MAX_HASHES as u64 {
            // Each document occurs twice.
            hashes.add(number, xxh64(&(number / 2).to_le_bytes(), 0), 10);
        }
        assert!(hashes.known.len() <= MAX_HASHES && hashes.limit < u64::MAX);
        let duplicates = hashes.duplicates(|document| Place { file: 0, document });
        assert!(duplicates.compared_documents > MAX_HASHES as u64 / 2);
        assert_eq!(duplicates.documents * 2, duplicates.compared_documents);
        assert_eq!(duplicates.tokens * 2, duplicates.compared_tokens);
        let [first, second] = duplicates.examples[0].documents;
        assert_eq!(first.document + 1, second.document);
    }
}
