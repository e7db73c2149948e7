//! The engines agree wherever the fast ones are trusted, scalar value by scalar value.

use packtok_bpe::{EncodeOptions, EngineChoice, EngineKind, Tokenizer};
use serde_json::{Value, json};

mod patterns;

use self::patterns::{DEEPSEEK, QWEN, TEKKEN, between_numbers, splits};

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
    assert_eq!(tokenizer.engine(), EngineKind::Reference);
    tokenizer
}

/// A built-in file that splits in another way.
fn with_splits(name: &str, pre_tokenizer: Option<Value>, ignore_merges: bool) -> String {
    let mut file: Value = serde_json::from_str(&packtok_bpe::builtin_json(name).unwrap()).unwrap();
    if let Some(pre_tokenizer) = pre_tokenizer {
        file["pre_tokenizer"] = pre_tokenizer;
    }
    file["model"]["ignore_merges"] = ignore_merges.into();
    file.to_string()
}

/// All the ways in which the fast engine splits by patterns.
fn all_splits() -> [(&'static str, Option<Value>); 7] {
    [
        ("gpt2", None),
        ("gpt2", Some(between_numbers())),
        ("cl100k_base", None),
        ("cl100k_base", Some(splits(&[QWEN]))),
        ("cl100k_base", Some(splits(&DEEPSEEK))),
        ("o200k_base", None),
        ("o200k_base", Some(splits(&[TEKKEN]))),
    ]
}

fn assert_agree_on_scalars(json: &str, step: usize) {
    let first = Tokenizer::from_json("first", json.to_owned()).unwrap();
    assert_eq!(first.engine(), EngineKind::Fast);
    let second = through_second_engine(json);
    let encoder = |tokenizer: &Tokenizer, engine| {
        let options = EncodeOptions {
            engine,
            ..EncodeOptions::default()
        };
        tokenizer.encoder(&options).unwrap()
    };
    let mut others = [
        encoder(&first, EngineChoice::Reference),
        encoder(&second, EngineChoice::Auto),
    ];
    let mut encoder = encoder(&first, EngineChoice::Fast);
    let (mut ids, mut other_ids) = (Vec::new(), Vec::new());
    for scalar in ('\u{80}'..=char::MAX).step_by(step) {
        for text in [
            format!("a{scalar}1 {scalar}b"),
            format!("'{scalar} {scalar}{scalar}A.{scalar}\n"),
        ] {
            ids.clear();
            encoder.encode_into(&text, &mut ids).unwrap();
            for other in &mut others {
                other_ids.clear();
                other.encode_into(&text, &mut other_ids).unwrap();
                assert_eq!(ids, other_ids, "{text:?}");
            }
        }
    }
}

#[test]
fn engines_agree_on_every_97th_scalar() {
    for (name, pre_tokenizer) in all_splits() {
        assert_agree_on_scalars(&with_splits(name, pre_tokenizer.clone(), true), 97);
        assert_agree_on_scalars(&with_splits(name, pre_tokenizer, false), 997);
    }
}

#[test]
#[ignore = "whole: minutes of every scalar value; run with --release -- --ignored"]
fn engines_agree_on_every_scalar() {
    for (name, pre_tokenizer) in all_splits() {
        assert_agree_on_scalars(&with_splits(name, pre_tokenizer, true), 1);
    }
}
