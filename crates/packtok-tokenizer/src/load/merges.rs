//! Derives merges from ranks. The build script also uses this file, for the built-in tokenizers.
//!
//! tiktoken merges by rank alone and has no list of merges. An equivalent list follows from the
//! ranks: merging the bytes of a token by rank yields two tokens before it yields the token itself.
//! In any text, a token that is merged is merged from these two, because no merge crosses its ends.

use std::collections::HashMap;

/// The two ranks that each token of several bytes is merged from, in order of rank.
pub(crate) fn merges(ranks: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let rank_of: HashMap<&[u8], u32> = ranks.iter().map(Vec::as_slice).zip(0..).collect();
    let long = ranks.iter().filter(|bytes| bytes.len() > 1);
    long.filter_map(|bytes| halves(bytes, &rank_of)).collect()
}

/// The two tokens that `bytes` merge to before they are one; `None` if they do not become two tokens. Some have a higher
/// rank than the token that they make: Llama 3's ` край` is made of ` к` and `рай`, which was added after it.
fn halves(bytes: &[u8], rank_of: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let rank = |start: usize, end: usize| rank_of.get(&bytes[start..end]).copied();
    let mut bounds: Vec<usize> = (0..=bytes.len()).collect();
    // The rank of the parts `at` and `at + 1` together.
    let mut pairs: Vec<Option<u32>> = (2..=bytes.len()).map(|end| rank(end - 2, end)).collect();
    while bounds.len() > 3 {
        let candidates = pairs
            .iter()
            .zip(0..)
            .filter_map(|(pair, at)| Some(((*pair)?, at)));
        let (_, at): (u32, usize) = candidates.min()?;
        bounds.remove(at + 1);
        pairs.remove(at);
        // Both neighbours of the merged part have another partner now.
        for changed in at.saturating_sub(1)..(at + 1).min(pairs.len()) {
            pairs[changed] = rank(bounds[changed], bounds[changed + 2]);
        }
    }
    Some((rank(bounds[0], bounds[1])?, rank(bounds[1], bounds[2])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_be_made_of_one_with_a_higher_rank() {
        let ranks = ["a", "b", "c", "d", "ab", "bcd", "abcd", "cd", "xy"];
        let ranks: Vec<Vec<u8>> = ranks
            .iter()
            .map(|token| token.as_bytes().to_vec())
            .collect();
        // `ab` is merged before `cd`, and then these two.
        assert_eq!(merges(&ranks), [(0, 1), (1, 7), (4, 7), (2, 3)]);
    }
}
