//! Generates Unigram models.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::bpe::bytes;
use crate::model::{Model, leave_out};
use crate::source::Source;
use crate::words::Words;

pub(crate) fn unigram(source: &mut Source, words: &Words) -> Model {
    let mut tokens = vec!["<unk>".to_owned(), "▁".to_owned()];
    tokens.extend(words.atoms().iter().filter(|_| !source.once_in(5)).cloned());
    for _ in 0..4 + source.below(40) {
        let word = words.word(source);
        let blank = source.pick(&["▁", "▁", "", "", "▁▁", " "]);
        tokens.push(format!("{blank}{word}"));
    }
    let byte_fallback = source.once_in(4);
    if byte_fallback || source.once_in(10) {
        tokens.extend(bytes(source));
    }
    if !source.once_in(8) {
        let mut met = HashSet::new();
        tokens.retain(|token| met.insert(token.clone()));
    }
    if source.once_in(12) {
        tokens.push(String::new());
    }
    let pieces = scored(source, &tokens);
    let unk_id = unk_id(source, tokens.len());
    let mut model = json!({"type": "Unigram", "unk_id": unk_id, "byte_fallback": byte_fallback, "vocab": pieces});
    leave_out(source, &mut model, &["unk_id", "byte_fallback"], 24);
    Model {
        json: model,
        tokens,
    }
}

const SCORES: [f64; 7] = [-1.0, -1.5, -2.25, -3.1, 0.0, -0.5, -7.75];
const ODD_SCORES: [f64; 12] = [
    -0.0,
    1.0,
    5.5,
    1e308,
    -1e308,
    -1e-308,
    f64::MIN_POSITIVE,
    1e16,
    -1e16,
    0.1,
    0.2,
    -0.3,
];

/// Pieces with scores, many of which are equal.
fn scored(source: &mut Source, tokens: &[String]) -> Vec<Value> {
    let is_odd = source.once_in(6);
    let pieces = tokens.iter().map(|token| {
        let score = if is_odd && source.once_in(4) {
            source.pick(&ODD_SCORES)
        } else {
            source.pick(&SCORES)
        };
        if source.once_in(30) {
            json!([token, score.trunc() as i64])
        } else {
            json!([token, score])
        }
    });
    pieces.collect()
}

/// In most cases the first piece; in a few out of range.
fn unk_id(source: &mut Source, num_tokens: usize) -> Value {
    match source.below(16) {
        0 => Value::Null,
        1 => source.below(num_tokens).into(),
        2 => source.pick(&[
            json!(num_tokens),
            json!(num_tokens - 1),
            json!(1),
            json!(u32::MAX),
            json!(1u64 << 32),
            json!(-1),
        ]),
        _ => 0.into(),
    }
}
