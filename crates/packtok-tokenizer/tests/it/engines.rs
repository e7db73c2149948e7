//! The fast engines agree with the reference engine on every scalar value.

use packtok_tokenizer::{EncodeOptions, EngineChoice, EngineKind, Tokenizer};
use serde_json::{Value, json};

use crate::patterns::{DEEPSEEK, QWEN, QWEN_3_5, TEKKEN, between_numbers, splits};
use crate::{builtin_file, extent};

/// The same tokenizer, served by the reference engine because of a normalizer that changes nothing.
fn through_reference_engine(json: &str) -> Tokenizer {
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
    let mut file = builtin_file(name);
    if let Some(pre_tokenizer) = pre_tokenizer {
        file["pre_tokenizer"] = pre_tokenizer;
    }
    file["model"]["ignore_merges"] = ignore_merges.into();
    file.to_string()
}

/// All the ways in which the fast engine splits by patterns.
fn all_splits() -> [(&'static str, Option<Value>); 8] {
    [
        ("gpt2", None),
        ("gpt2", Some(between_numbers())),
        ("cl100k_base", None),
        ("cl100k_base", Some(splits(&[QWEN]))),
        ("cl100k_base", Some(splits(&[QWEN_3_5]))),
        ("cl100k_base", Some(splits(&DEEPSEEK))),
        ("o200k_base", None),
        ("o200k_base", Some(splits(&[TEKKEN]))),
    ]
}

fn assert_agree_on_scalars(json: &str, step: usize) {
    let first = Tokenizer::from_json("first", json.to_owned()).unwrap();
    assert_eq!(first.engine(), EngineKind::Fast);
    let second = through_reference_engine(json);
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
fn engines_agree_on_some_scalars() {
    for (i, (name, pre_tokenizer)) in all_splits().into_iter().enumerate() {
        // Loading the files takes longer than the scalars. CI tries each vocabulary with its own pattern, and
        // `every_split_around_some_scalars` all patterns.
        let is_sampled =
            |ignore_merges: bool| pre_tokenizer.is_none() && ignore_merges == i.is_multiple_of(2);
        let is_tried = |ignore_merges: bool| extent(true, is_sampled(ignore_merges));
        for (ignore_merges, step) in [(true, extent(499, 1999)), (false, extent(997, 3989))] {
            if is_tried(ignore_merges) {
                let json = with_splits(name, pre_tokenizer.clone(), ignore_merges);
                assert_agree_on_scalars(&json, step);
            }
        }
    }
}

#[test]
#[ignore = "takes minutes; run with --release -- --ignored"]
fn engines_agree_on_many_scalars() {
    for (name, pre_tokenizer) in all_splits() {
        assert_agree_on_scalars(&with_splits(name, pre_tokenizer, true), 7);
    }
}

/// A file in which any two neighbouring bytes of a word merge, by the order of the right one: ids show each split.
///
/// In descending order, the pair across the start of a character beyond ASCII merges before its neighbours, since
/// first bytes are greater than those that follow; in ascending order, the pair across the start of an ASCII character.
fn with_every_pair(json: &str, is_descending: bool) -> String {
    let mut file: Value = serde_json::from_str(json).unwrap();
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 0x100..;
    let letters: Vec<String> = (0..=0xff)
        .map(|byte| {
            if printable(&byte) {
                byte
            } else {
                others.next().unwrap()
            }
        })
        .map(|letter| char::from_u32(letter).unwrap().to_string())
        .collect();
    let mut rights: Vec<&String> = letters.iter().collect();
    if is_descending {
        rights.reverse();
    }
    let pairs = rights.into_iter().flat_map(|right| {
        letters
            .iter()
            .map(move |left| [left.clone(), right.clone()])
    });
    let pairs: Vec<[String; 2]> = pairs.collect();
    let tokens = letters
        .iter()
        .cloned()
        .chain(pairs.iter().map(|pair| pair.concat()));
    let vocab: serde_json::Map<String, Value> = tokens.zip((0..).map(Value::from)).collect();
    file["model"]["vocab"] = vocab.into();
    file["model"]["merges"] = json!(pairs);
    file["model"]["ignore_merges"] = false.into();
    file["added_tokens"] = json!([]);
    file.to_string()
}

/// Tries the orders of merges for which `is_tried` is true, given the number of the pattern.
fn assert_splits_agree(step: usize, is_tried: impl Fn(usize, bool) -> bool) {
    for (i, (name, pre_tokenizer)) in all_splits().into_iter().enumerate() {
        for is_descending in [true, false]
            .into_iter()
            .filter(|&order| is_tried(i, order))
        {
            let json = with_every_pair(
                &with_splits(name, pre_tokenizer.clone(), false),
                is_descending,
            );
            let tokenizer = Tokenizer::from_json(name, json).unwrap();
            let [mut fast, mut reference] =
                [EngineChoice::Fast, EngineChoice::Reference].map(|engine| {
                    let options = EncodeOptions {
                        engine,
                        ..EncodeOptions::default()
                    };
                    tokenizer.encoder(&options).unwrap()
                });
            let (mut ids, mut expected) = (Vec::new(), Vec::new());
            let scalars: Vec<char> = ('\0'..=char::MAX).step_by(step).collect();
            for scalars in scalars.chunks(32) {
                let around = |c: &char| {
                    format!(
                        "{c}\n {c}\na{c}\n1{c}\n\u{301}{c}\n{c} \n{c}a\n{c}1\n{c}\u{301}\n{c}{c}\n {c}{c}.\n"
                    )
                };
                let text: String = scalars.iter().map(around).collect();
                ids.clear();
                expected.clear();
                fast.encode_into(&text, &mut ids).unwrap();
                reference.encode_into(&text, &mut expected).unwrap();
                assert_eq!(ids, expected, "{text:?}");
            }
        }
    }
}

#[test]
fn every_split_around_some_scalars() {
    assert_splits_agree(extent(1997, 4999), |i, is_descending| {
        extent(true, is_descending == i.is_multiple_of(2))
    });
}

#[test]
#[ignore = "takes minutes; run with --release -- --ignored"]
fn every_split_around_many_scalars() {
    assert_splits_agree(7, |_, _| true);
}
