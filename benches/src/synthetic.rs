//! Documents generated from a seed. For a tokenizer, they resemble prose, code and many languages.
//!
//! Words follow a skewed distribution over a large vocabulary, so that word caches have both hits
//! and misses.

use serde_json::json;

/// A single seed, so that every run has the same input.
const SEED: u64 = 0x7061_636b_746f_6b00;

/// Number of distinct words in a corpus.
const VOCABULARY: f64 = 300_000.0;

/// Alphabets by first character and number of letters: Latin, Greek, Cyrillic, Arabic, Han.
const ALPHABETS: [(char, u64); 5] = [('a', 26), ('α', 25), ('а', 32), ('ا', 20), ('一', 3000)];

/// A small random number generator with the same output on every machine.
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// A number in `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// At least `min_bytes` of JSON lines of the kind `name`.
pub(crate) fn jsonl(name: &str, min_bytes: usize) -> Vec<u8> {
    let mut numbers = SplitMix::new(SEED);
    let mut out = Vec::with_capacity(min_bytes);
    while out.len() < min_bytes {
        let num_words = 20 + numbers.below(600);
        let text = match name {
            "code" => code(&mut numbers, num_words),
            "multi" => {
                let alphabet = numbers.below(ALPHABETS.len() as u64) as usize;
                sentences(&mut numbers, num_words, alphabet)
            }
            _ => sentences(&mut numbers, num_words, 0),
        };
        out.extend_from_slice(json!({ "text": text, "src": name }).to_string().as_bytes());
        out.push(b'\n');
    }
    out
}

fn sentences(numbers: &mut SplitMix, num_words: u64, alphabet: usize) -> String {
    let mut text = String::new();
    for _ in 0..num_words {
        push_word(numbers, alphabet, &mut text);
        text.push_str(match numbers.below(16) {
            0 => ". ",
            1 => ", ",
            2 => ".\n",
            _ => " ",
        });
    }
    text
}

fn code(numbers: &mut SplitMix, num_words: u64) -> String {
    let mut text = String::new();
    for _ in 0..num_words / 3 {
        let indent = numbers.below(4) as usize;
        text.push_str(&"    ".repeat(indent));
        push_word(numbers, 0, &mut text);
        text.push_str([" = ", "(", ".", "_", " += "][numbers.below(5) as usize]);
        push_word(numbers, 0, &mut text);
        text.push_str(["\n", ");\n", " {\n", "[0];\n", ":\n"][numbers.below(5) as usize]);
    }
    text
}

/// Appends one word; the few words with low ranks make up most of a text.
fn push_word(numbers: &mut SplitMix, alphabet: usize, text: &mut String) {
    let rank = VOCABULARY.powf(numbers.unit()) as u64;
    let mut letters = SplitMix::new(rank);
    let (first, num_letters) = ALPHABETS[alphabet];
    for _ in 0..2 + letters.below(8) {
        let letter = first as u32 + letters.below(num_letters) as u32;
        text.push(char::from_u32(letter).expect("the alphabets hold no surrogates"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_lines_with_a_text_in_each() {
        for name in crate::Corpus::NAMES {
            let lines = jsonl(name, 20_000);
            assert!(lines.len() >= 20_000);
            assert_eq!(lines, jsonl(name, 20_000));
            let corpus = crate::Corpus::from_jsonl(name, lines);
            assert_eq!(corpus.texts().count(), corpus.lines().count());
            assert!(corpus.texts().all(|text| !text.is_empty()));
        }
    }
}
