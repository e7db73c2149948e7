//! The two engines agree wherever the reference engine is trusted, scalar value by scalar value.

use packtok_bpe::{EncodeOptions, EngineKind, Tokenizer};
use serde_json::{Value, json};

/// The same tokenizer, held to the second engine by a normaliser that changes nothing.
fn through_second_engine(json: &str) -> Tokenizer {
    let mut file: Value = serde_json::from_str(json).unwrap();
    let nothing = json!({"type": "Replace", "pattern": {"Regex": "\u{10ffff}{9}"}, "content": ""});
    let members = match file["normalizer"].take() {
        Value::Null => vec![nothing],
        normalizer => vec![normalizer, nothing],
    };
    file["normalizer"] = json!({"type": "Sequence", "normalizers": members});
    let tokenizer = Tokenizer::from_json("second", file.to_string()).unwrap();
    assert_eq!(tokenizer.engine(), EngineKind::Legacy);
    tokenizer
}

/// cl100k's file with another pattern, so that every proven pattern is tried.
fn with_pattern(name: &str, pattern: Option<&str>, ignore_merges: bool) -> String {
    let mut file: Value = serde_json::from_str(&packtok_bpe::builtin_json(name).unwrap()).unwrap();
    if let Some(pattern) = pattern {
        file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern.into();
    }
    file["model"]["ignore_merges"] = ignore_merges.into();
    file.to_string()
}

const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

fn assert_agree_on_scalars(json: &str, step: usize) {
    let first = Tokenizer::from_json("first", json.to_owned()).unwrap();
    assert_eq!(first.engine(), EngineKind::Reference);
    let second = through_second_engine(json);
    let options = EncodeOptions::default();
    let (mut encoder, mut other) = (
        first.encoder(&options).unwrap(),
        second.encoder(&options).unwrap(),
    );
    let (mut ids, mut other_ids) = (Vec::new(), Vec::new());
    for scalar in ('\u{80}'..=char::MAX).step_by(step) {
        for text in [
            format!("a{scalar}1 {scalar}b"),
            format!("'{scalar} {scalar}{scalar}A.{scalar}\n"),
        ] {
            ids.clear();
            other_ids.clear();
            encoder.encode_into(&text, &mut ids).unwrap();
            other.encode_into(&text, &mut other_ids).unwrap();
            assert_eq!(ids, other_ids, "{text:?}");
        }
    }
}

#[test]
fn engines_agree_on_every_97th_scalar() {
    for (name, pattern) in [
        ("gpt2", None),
        ("cl100k_base", None),
        ("cl100k_base", Some(QWEN)),
        ("o200k_base", None),
    ] {
        assert_agree_on_scalars(&with_pattern(name, pattern, true), 97);
        assert_agree_on_scalars(&with_pattern(name, pattern, false), 997);
    }
}

#[test]
#[ignore = "whole: minutes of every scalar value; run with --release -- --ignored"]
fn engines_agree_on_every_scalar() {
    for (name, pattern) in [
        ("gpt2", None),
        ("cl100k_base", None),
        ("cl100k_base", Some(QWEN)),
        ("o200k_base", None),
    ] {
        assert_agree_on_scalars(&with_pattern(name, pattern, true), 1);
    }
}
