//! The merge rules that can ever apply. A file may list many more: each token of a vocabulary of ranks (tiktoken) is
//! listed with every pair of tokens that it consists of, but only one of these pairs is ever adjacent.
//!
//! If a token is a symbol of a word, no merge crossed its ends before. So it came from the merges of its own bytes,
//! which are the same in every word, and only the last of them can give the token.
//!
//! Whether a rule is that last merge follows from the history of the boundary between its two tokens. Going back in
//! time, the token that was made last is taken apart:
//!
//! ```text
//! low | er    the rule low + er: is it possible?
//! low | e     before er was made; must not merge before e and r do
//! l ow| e     before low was made; ow and e must not merge before l and ow do
//!    w| e     before ow was made; w and e must not merge before o and w do
//! ```
//!
//! A rule usually ranks after those that make its tokens. Otherwise, it applies as soon as its tokens are there, so the
//! time of a merge is the highest rank in its history. What follows from a merge at one place is merged before the same
//! rule applies further to the right.

use std::collections::HashMap;

use super::rule::{MergeRule, id_of, rank_of};

/// A pair of ids and its rule.
pub(super) type PairRule = ([u32; 2], MergeRule);

/// The rules that can apply to words of these symbols. `rules` are sorted by their pairs, which all differ.
pub(super) fn possible_rules(
    mut rules: Vec<PairRule>,
    symbols: impl Iterator<Item = u32>,
) -> Vec<PairRule> {
    let mut tokens = Tokens::new(&rules, symbols);
    let mut is_possible = vec![false; rules.len()];
    // For each id, the rules that wait for it.
    let mut waiting: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut to_examine = Vec::new();
    for number in 0..rules.len() {
        to_examine.push(number);
        while let Some(number) = to_examine.pop() {
            let ([left, right], rule) = rules[number];
            let id = id_of(rule);
            let missing = [left, right].into_iter().find(|&id| !tokens.is_there(id));
            if let Some(missing) = missing {
                waiting.entry(missing).or_default().push(number);
            } else if !tokens.is_there(id) && tokens.are_adjacent(left, right) {
                tokens.make(left, right, rule);
                is_possible[number] = true;
                to_examine.extend(waiting.remove(&id).unwrap_or_default());
            }
        }
    }
    let mut is_possible = is_possible.into_iter();
    rules.retain(|_| is_possible.next() == Some(true));
    rules
}

/// How a token is made.
#[derive(Clone, Copy)]
struct Origin {
    left: u32,
    right: u32,
    rank: u32,
    /// The highest rank of its history.
    time: u32,
}

/// The time of the alphabet. Ranks are counted from 1 here.
const BEGINNING: u32 = 0;

struct Tokens<'a> {
    rules: &'a [PairRule],
    /// For each id, the first rule of which it is the left one.
    starts: Vec<u32>,
    /// Those of the tokens that are there. Symbols of the alphabet have the time [`BEGINNING`].
    origins: Vec<Option<Origin>>,
}

impl<'a> Tokens<'a> {
    fn new(rules: &'a [PairRule], symbols: impl Iterator<Item = u32>) -> Self {
        let symbols: Vec<u32> = symbols.collect();
        let of_rules = rules
            .iter()
            .flat_map(|&([left, right], rule)| [left, right, id_of(rule)]);
        let num_ids = of_rules
            .chain(symbols.iter().copied())
            .max()
            .map_or(0, |id| id as usize + 1);
        let mut starts = vec![0; num_ids + 1];
        for &([left, _], _) in rules {
            starts[left as usize + 1] += 1;
        }
        let mut origins = vec![None; num_ids];
        for id in symbols {
            origins[id as usize] = Some(Origin {
                left: id,
                right: id,
                rank: 0,
                time: BEGINNING,
            });
        }
        let mut start = 0;
        for count in &mut starts {
            start += *count;
            *count = start;
        }
        Self {
            rules,
            starts,
            origins,
        }
    }

    fn is_there(&self, id: u32) -> bool {
        self.origins[id as usize].is_some()
    }

    /// Of a token that is there.
    fn origin(&self, id: u32) -> Origin {
        self.origins[id as usize].expect("its parts were there")
    }

    fn make(&mut self, left: u32, right: u32, rule: MergeRule) {
        let rank = rank_of(rule) + 1;
        let time = rank
            .max(self.origin(left).time)
            .max(self.origin(right).time);
        self.origins[id_of(rule) as usize] = Some(Origin {
            left,
            right,
            rank,
            time,
        });
    }

    fn rank_of_pair(&self, left: u32, right: u32) -> Option<u32> {
        let range = self.starts[left as usize] as usize..self.starts[left as usize + 1] as usize;
        let of_left = &self.rules[range];
        let index = of_left.binary_search_by_key(&right, |&([_, right], _)| right);
        index.ok().map(|index| rank_of(of_left[index].1) + 1)
    }

    /// Whether two tokens are ever adjacent: whether no merge across their boundary comes before the merges that make
    /// them.
    fn are_adjacent(&self, mut left: u32, mut right: u32) -> bool {
        loop {
            let (of_left, of_right) = (self.origin(left), self.origin(right));
            // Of the same rule at two places, the left one comes first, with all that follows from it. If the part at
            // the boundary is what the merge waited for, the merge across waited for it, too, and ranks decide.
            let last_before = if of_left.time > of_right.time {
                left = of_left.right;
                if self.origin(left).time == of_left.time {
                    of_left.rank
                } else {
                    of_left.time
                }
            } else if of_right.time > BEGINNING {
                right = of_right.left;
                let is_other_part_earlier = self.origin(of_right.right).time < of_right.time;
                if self.origin(right).time == of_right.time && is_other_part_earlier {
                    of_right.rank + 1
                } else {
                    of_right.time + 1
                }
            } else {
                return true;
            };
            let across = self.rank_of_pair(left, right);
            if across.is_some_and(|rank| rank < last_before) {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::engines::byte_bpe::merge::rule::{ID_BITS, NO_ID};
    use crate::engines::byte_bpe::model::{Model, Spelling};

    /// The symbols of a word, merged one step after the other, and the last pair that was merged.
    fn merged(rules: &HashMap<[u32; 2], MergeRule>, word: &[u32]) -> (Vec<u32>, Option<[u32; 2]>) {
        let (mut symbols, mut last) = (word.to_vec(), None);
        loop {
            let pairs = symbols.windows(2).enumerate();
            let merges = pairs.filter_map(|(at, pair)| {
                let rule = rules.get(&[pair[0], pair[1]])?;
                Some((rank_of(*rule), at, id_of(*rule)))
            });
            let Some((_, at, id)) = merges.min() else {
                return (symbols, last);
            };
            last = Some([symbols[at], symbols[at + 1]]);
            symbols[at] = id;
            symbols.remove(at + 1);
        }
    }

    /// Rules over three letters, each of two earlier tokens, and the text of each token. If shuffled, their order is not
    /// that of training.
    fn rules(pairs: &[(usize, usize)], is_shuffled: bool) -> (Vec<PairRule>, Vec<String>) {
        let mut texts: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let mut rules = Vec::new();
        for &(left, right) in pairs {
            let (left, right) = (left % texts.len(), right % texts.len());
            let text = format!("{}{}", texts[left], texts[right]);
            if text.len() > 12 {
                continue;
            }
            let known = texts.iter().position(|known| *known == text);
            let id = known.unwrap_or(texts.len());
            if known.is_none() {
                texts.push(text);
            }
            rules.push([left as u32, right as u32, id as u32]);
        }
        if is_shuffled {
            // Nothing makes some tokens.
            rules.retain(|&[left, right, _]| (left * 5 + right * 3) % 7 != 6);
            rules.sort_by_key(|&[left, right, id]| (left * 7 + right * 13 + id * 5) % 11);
        }
        let ranked = (0..).zip(rules);
        let mut rules: Vec<PairRule> = ranked
            .map(|(rank, [left, right, id])| ([left, right], rank << ID_BITS | u64::from(id)))
            .collect();
        rules.sort_unstable();
        rules.dedup_by_key(|rule| rule.0);
        (rules, texts)
    }

    #[test]
    fn of_cl100k_one_rule_is_left_for_each_token_of_several_bytes() {
        let file: serde_json::Value =
            serde_json::from_str(&crate::builtin_json("cl100k_base").unwrap()).unwrap();
        let model = Model::read(&file["model"], Spelling::Bytes).unwrap();
        let num_merges = model.merges.len();
        // As files that were converted from ranks list it: with all ways to divide a token into two.
        let id_of: HashMap<&[u8], u32> = model.tokens.iter().collect();
        let mut tokens: Vec<(u32, &[u8])> = id_of.iter().map(|(&token, &id)| (id, token)).collect();
        tokens.sort_unstable();
        let mut rules: Vec<PairRule> = Vec::new();
        for (id, token) in tokens {
            for at in 1..token.len() {
                let parts = [&token[..at], &token[at..]].map(|part| id_of.get(part).copied());
                if let [Some(left), Some(right)] = parts {
                    let rank = rules.len() as MergeRule;
                    rules.push(([left, right], rank << ID_BITS | MergeRule::from(id)));
                }
            }
        }
        rules.sort_unstable();
        assert!(rules.len() > 2 * num_merges);
        assert_eq!(
            possible_rules(rules, model.alphabet.ids(NO_ID)).len(),
            num_merges
        );
    }

    #[test]
    fn of_gpt2_exactly_those_are_left_that_come_last_in_their_own_token() {
        let file: serde_json::Value =
            serde_json::from_str(&crate::builtin_json("gpt2").unwrap()).unwrap();
        let model = Model::read(&file["model"], Spelling::Bytes).unwrap();
        let rules = (0..).zip(&model.merges);
        let mut rules: Vec<PairRule> = rules
            .map(|(rank, &[left, right, id])| {
                ([left, right], rank << ID_BITS | MergeRule::from(id))
            })
            .collect();
        rules.sort_unstable();
        let by_pair: HashMap<_, _> = rules.iter().copied().collect();
        let possible: HashMap<_, _> = possible_rules(rules, model.alphabet.ids(NO_ID))
            .into_iter()
            .collect();
        let tokens: HashMap<u32, &[u8]> =
            model.tokens.iter().map(|(token, id)| (id, token)).collect();
        for (pair, rule) in &by_pair {
            let mut letters = Vec::new();
            (model.alphabet).symbols(tokens[&id_of(*rule)], |id| letters.push(id));
            let (symbols, last) = merged(&by_pair, &letters);
            let applies = symbols.len() == 1 && last == Some(*pair);
            assert_eq!(possible.contains_key(pair), applies, "{pair:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn words_are_merged_alike_without_the_other_rules(
            pairs in prop::collection::vec((0..40usize, 0..40usize), 0..40),
            words in prop::collection::vec(prop::collection::vec(0..3u32, 1..24), 1..20),
            is_shuffled in prop::bool::ANY,
        ) {
            let (all, _) = rules(&pairs, is_shuffled);
            let some: HashMap<_, _> = possible_rules(all.clone(), 0..3).into_iter().collect();
            let all: HashMap<_, _> = all.into_iter().collect();
            for word in words {
                prop_assert_eq!(merged(&some, &word).0, merged(&all, &word).0);
            }
        }

        #[test]
        fn exactly_those_are_left_that_come_last_in_their_own_token(
            pairs in prop::collection::vec((0..40usize, 0..40usize), 0..40),
            is_shuffled in prop::bool::ANY,
        ) {
            let (all, texts) = rules(&pairs, is_shuffled);
            let by_pair: HashMap<_, _> = all.iter().copied().collect();
            let possible = possible_rules(all.clone(), 0..3);
            for rule in &all {
                let letters = texts[id_of(rule.1) as usize].bytes().map(|letter| u32::from(letter - b'a'));
                let letters: Vec<u32> = letters.collect();
                let (symbols, last) = merged(&by_pair, &letters);
                let applies = symbols.len() == 1 && last == Some(rule.0);
                prop_assert_eq!(possible.contains(rule), applies, "{:?}", rule);
            }
        }
    }
}
