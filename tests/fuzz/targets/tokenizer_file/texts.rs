//! Generates texts and ids for a file.

use crate::source::Source;
use crate::words::{self, Words};

/// Length in bytes beyond which a text gets no more parts.
const LONGEST: usize = 8192;

pub(crate) fn text(
    source: &mut Source,
    words: &Words,
    tokens: &[String],
    added: &[String],
) -> String {
    let most_parts = source.pick(&[4, 4, 12, 12, 12, 12, 40, 40, 160, 600]);
    let num_parts = source.below(most_parts);
    let mut text = String::new();
    for _ in 0..num_parts {
        let part = part(source, words, tokens, added);
        let times = match source.below(60) {
            0 => 1 + source.below(120),
            1..=4 => 2 + source.below(4),
            _ => 1,
        };
        (0..times).for_each(|_| text.push_str(&part));
        if text.len() > LONGEST {
            break;
        }
    }
    text
}

fn part(source: &mut Source, words: &Words, tokens: &[String], added: &[String]) -> String {
    match source.below(24) {
        0..=7 => words.atom(source),
        8..=12 => words::space(source).to_owned(),
        13 | 14 => words::any(source),
        15 => words.word(source),
        16 | 17 if !tokens.is_empty() => {
            let token = source.pick(tokens);
            let token = token.trim_start_matches("##");
            source.pick(&[
                token.to_owned(),
                token.replace(['▁', 'Ġ'], " ").replace('Ċ', "\n"),
            ])
        }
        18..=20 if !added.is_empty() => source.pick(added),
        21 if !added.is_empty() => {
            let content = source.pick(added);
            source.part_of(&content).to_owned()
        }
        22 => source
            .pick(&["ab", "a b", "a.", "1 2", "<", "|", "a\u{301}", "A"])
            .to_owned(),
        _ => source.pick(&["a", "b", " "]).to_owned(),
    }
}

/// Ids of tokens, some of them just beyond the last one or very large.
pub(crate) fn ids(source: &mut Source, num_tokens: usize) -> Vec<u32> {
    let ids = (0..source.below(12)).map(|_| match source.below(30) {
        0 => source.pick(&[u32::MAX, 1_000_000_000, 1 << 31, 0]),
        _ => source.below(num_tokens + 12) as u32,
    });
    ids.collect()
}
