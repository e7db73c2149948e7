//! Special tokens, templates, truncation and refusals, on small files made here.

use std::error::Error;

use packtok_tokenizer::{EncodeOptions, EngineKind, SpecialTokensInText, Tokenizer};
use serde_json::{Value, json};

fn small() -> Value {
    json!({
        "version": "1.0", "truncation": {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": null,
        "added_tokens": [
            {"id": 9, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
            {"id": 20, "content": "<x>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<x>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}, "<x>": {"id": "<x>", "ids": [10], "tokens": ["<x>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false,
            "vocab": {"a": 0, "b": 1, "ab": 2, "<": 3, "s": 4, ">": 5, "x": 6, "\u{120}": 7, "\u{120}b": 8, "<s>": 9},
            "merges": [["a", "b"], ["\u{120}", "b"]]},
    })
}

fn load(file: &Value) -> Tokenizer {
    Tokenizer::from_json("small.json", file.to_string()).unwrap()
}

#[test]
fn the_template_stands_around_and_truncation_leaves_room_for_it() {
    let tokenizer = load(&small());
    let with = |add_special_tokens, truncate_to| {
        let options = EncodeOptions {
            add_special_tokens,
            truncate_to,
            ..EncodeOptions::default()
        };
        tokenizer.encode("abab b", &options).unwrap()
    };
    // The truncation that the file asks for is off.
    assert_eq!(with(false, None), [2, 2, 8]);
    assert_eq!(with(true, None), [9, 2, 2, 8, 10]);
    assert_eq!(with(true, Some(3)), [9, 2, 10]);
    assert_eq!(with(true, Some(2)), [9, 10]);
    assert_eq!(with(false, Some(2)), [2, 2]);
    let options = EncodeOptions {
        add_special_tokens: true,
        truncate_to: Some(1),
        ..EncodeOptions::default()
    };
    assert_eq!(
        tokenizer.encoder(&options).err().unwrap().to_string(),
        "max_length 1 is below the 2 special tokens that the tokenizer adds to every document; raise max_length or set add_special_tokens to false"
    );
}

#[test]
fn special_token_text_is_parsed_kept_or_refused() {
    let tokenizer = load(&small());
    let with = |special_tokens_in_text| {
        let options = EncodeOptions {
            special_tokens_in_text,
            ..EncodeOptions::default()
        };
        tokenizer.encode("a<x>", &options)
    };
    assert_eq!(with(SpecialTokensInText::Parse).unwrap(), [0, 10]);
    assert_eq!(with(SpecialTokensInText::Text).unwrap(), [0, 3, 6, 5]);
    assert_eq!(
        with(SpecialTokensInText::Fail).unwrap_err().to_string(),
        "the text contains the special token \"<x>\""
    );
}

#[test]
fn a_refused_text_leaves_the_buffer_as_it_was() {
    let options = EncodeOptions {
        add_special_tokens: true,
        special_tokens_in_text: SpecialTokensInText::Fail,
        ..EncodeOptions::default()
    };
    let mut encoder = load(&small()).encoder(&options).unwrap();
    let mut ids = vec![77];
    encoder.encode_into("a<x>", &mut ids).unwrap_err();
    assert_eq!(ids, [77]);
    encoder.encode_into("a", &mut ids).unwrap();
    assert_eq!(ids, [77, 9, 0, 10]);
}

#[test]
fn ids_of_two_bytes_are_those_of_four() {
    let options = EncodeOptions {
        add_special_tokens: true,
        special_tokens_in_text: SpecialTokensInText::Fail,
        ..EncodeOptions::default()
    };
    let mut encoder = load(&small()).encoder(&options).unwrap();
    let mut ids = vec![u16::MAX];
    for _ in 0..2 {
        encoder.encode_u16_into("a", &mut ids).unwrap();
        encoder.encode_u16_into("a<x>", &mut ids).unwrap_err();
    }
    assert_eq!(ids, [u16::MAX, 9, 0, 10, 9, 0, 10]);

    let gpt2 = Tokenizer::builtin("gpt2").unwrap();
    let text = "Ids of two bytes, 数字 and <|endoftext|>\n".repeat(100);
    let mut encoder = gpt2.encoder(&EncodeOptions::default()).unwrap();
    let (mut wide, mut narrow) = (Vec::new(), Vec::new());
    encoder.encode_into(&text, &mut wide).unwrap();
    encoder.encode_u16_into(&text, &mut narrow).unwrap();
    assert!(wide.len() > 1000 && wide.contains(&50_256));
    assert!(narrow.iter().copied().map(u32::from).eq(wide));

    let cl100k = Tokenizer::builtin("cl100k_base").unwrap();
    let mut encoder = cl100k.encoder(&EncodeOptions::default()).unwrap();
    let error = encoder.encode_u16_into("", &mut narrow).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cl100k_base: vocabulary of 100277 ids does not fit 2-byte ids, which hold 65536; use 4-byte ids"
    );
}

#[test]
fn added_tokens_past_a_gap_are_renumbered_and_that_is_said() {
    let tokenizer = load(&small());
    assert_eq!(tokenizer.vocab_size(), 11);
    assert_eq!(tokenizer.token_to_id("<x>"), Some(10));
    assert_eq!(tokenizer.token_to_id("<s>"), Some(9));
    assert_eq!(tokenizer.token_to_id("nothing"), None);
    assert_eq!(
        tokenizer.notes()[0],
        "added token \"<x>\" is declared with id 20, but the tokenizers library and packtok assign id 10"
    );
}

#[test]
fn the_fingerprint_ignores_layout_truncation_and_padding_but_nothing_else() {
    let original = load(&small());
    let pretty =
        Tokenizer::from_json("other", serde_json::to_string_pretty(&small()).unwrap()).unwrap();
    assert_eq!(original.fingerprint(), pretty.fingerprint());
    let mut untruncated = small();
    untruncated["truncation"] = Value::Null;
    assert_eq!(original.fingerprint(), load(&untruncated).fingerprint());
    let mut other = small();
    other["model"]["vocab"]["c"] = 11.into();
    assert_ne!(original.fingerprint(), load(&other).fingerprint());
}

#[test]
fn dropout_is_refused() {
    let mut file = small();
    file["model"]["dropout"] = 0.1.into();
    assert_eq!(
        Tokenizer::from_json("d.json", file.to_string())
            .unwrap_err()
            .to_string(),
        "d.json: model.dropout is 0.1, so ids would differ from run to run; set it to null in tokenizer.json"
    );
}

#[test]
fn what_is_no_tokenizer_is_said_to_be_none() {
    let message = |json: &str| {
        Tokenizer::from_json("x.json", json.to_owned())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message("{"),
        "x.json: not a tokenizer.json: the file is not valid JSON"
    );
    assert_eq!(
        message("{}"),
        "x.json: not a tokenizer.json: model is missing, expected an object"
    );
    assert_eq!(
        message(r#"{"model": {"vocab": 3}}"#),
        "x.json: not a tokenizer.json: model.vocab is a number, expected an object or an array"
    );
}

#[test]
fn a_post_processor_that_contradicts_the_vocabulary_is_refused() {
    let mut file = small();
    file["added_tokens"].as_array_mut().unwrap().pop();
    file["post_processor"]["special_tokens"]["<x>"]["ids"] = json!([10]);
    // Whatever each engine makes of an id without a token: it loads and agrees, or it is refused.
    if let Ok(tokenizer) = Tokenizer::from_json("x.json", file.to_string()) {
        assert_eq!(tokenizer.suffix(), [10]);
    }
}

#[test]
fn a_pattern_that_tries_too_many_ways_gives_up_on_the_text_and_not_on_the_next() {
    let file = json!({"version": "1.0", "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+c|."}, "behavior": "Isolated", "invert": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "aac": 1}}});
    let tokenizer = load(&file);
    let mut encoder = tokenizer.encoder(&EncodeOptions::default()).unwrap();
    let mut ids = vec![7];
    for _ in 0..2 {
        let error = encoder.encode_into(&"a".repeat(60), &mut ids).unwrap_err();
        assert_eq!(
            error.source().unwrap().to_string(),
            "a pattern of the tokenizer stopped without a result (retry-limit-in-match over)"
        );
        encoder.encode_into("aac", &mut ids).unwrap();
    }
    assert_eq!(ids, [7, 1, 1]);
}

#[test]
fn word_level_files_are_served_by_the_reference_engine_and_say_so() {
    let file = json!({"version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "hello": 1, "world": 2}}});
    let tokenizer = load(&file);
    assert_eq!(tokenizer.engine(), EngineKind::Reference);
    assert_eq!(
        tokenizer.notes(),
        [
            "uses tokenizers 0.23.2, which is exact but slower, because its pre-tokenizer Split does not remove whitespace"
        ]
    );
    assert_eq!(
        tokenizer
            .encode("Hello WORLD x", &EncodeOptions::default())
            .unwrap(),
        [1, 2, 0]
    );
}
