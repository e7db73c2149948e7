//! Seeds of any size, and the seeds of chunks.

use std::fmt;

use sha2::{Digest, Sha256};

/// A non-negative integer of any size as the seed of a generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// 32-bit digits, lowest first. At least one digit; the highest digit is not zero unless the
    /// seed is 0.
    words: Vec<u32>,
}

impl Seed {
    /// Parses any number of hexadecimal digits; `None` if the text is empty or has other
    /// characters.
    pub fn from_hex(digits: &str) -> Option<Self> {
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let digits = digits.as_bytes().rchunks(8);
        let words = digits.map(|chunk| {
            let chunk = std::str::from_utf8(chunk).ok()?;
            u32::from_str_radix(chunk, 16).ok()
        });
        let mut words: Vec<u32> = words.collect::<Option<_>>()?;
        while words.len() > 1 && words.last() == Some(&0) {
            words.pop();
        }
        Some(Self { words })
    }

    /// The seed of a chunk as in Modalities: the sum of the SHA-256 digests of both numbers in
    /// decimal, modulo 2³² − 1. `global_seed` is a decimal string because it may have any size and
    /// sign.
    pub fn of_chunk(global_seed: &str, chunk_id: u64) -> Self {
        let digests = [global_seed.to_owned(), chunk_id.to_string()];
        let words = digests.iter().flat_map(|text| {
            let digest = Sha256::digest(text.as_bytes());
            let words: Vec<u64> = digest
                .as_chunks()
                .0
                .iter()
                .map(|&word| u32::from_be_bytes(word).into())
                .collect();
            words
        });
        // 2³² is 1 modulo 2³² − 1, so a number has the same residue as the sum of its 32-bit
        // digits.
        Self::from((words.sum::<u64>()) % u64::from(u32::MAX))
    }

    /// The seed in hexadecimal digits.
    pub fn to_hex(&self) -> String {
        let mut words = self.words.iter().rev();
        let first = format!("{:x}", words.next().unwrap_or(&0));
        words.fold(first, |digits, word| format!("{digits}{word:08x}"))
    }

    /// The seed as 32-bit digits, lowest first.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The seed if it has at most 64 bits.
    pub(super) fn as_u64(&self) -> Option<u64> {
        match *self.words {
            [low] => Some(low.into()),
            [low, high] => Some(u64::from(high) << 32 | u64::from(low)),
            _ => None,
        }
    }
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        let mut words = vec![number as u32, (number >> 32) as u32];
        if words[1] == 0 {
            words.pop();
        }
        Self { words }
    }
}

impl fmt::Display for Seed {
    /// Writes decimal digits, or `0x` and hexadecimal digits if the seed exceeds 64 bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_u64() {
            Some(number) => write!(f, "{number}"),
            None => write!(f, "0x{}", self.to_hex()),
        }
    }
}
