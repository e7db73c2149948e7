//! Texts that are encoded word by word have the ids of whole texts, whatever the model.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use packtok_tokenizer::{EncodeOptions, EngineKind, SpecialTokensInText, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::extent;

/// What texts are made of: words, separators, marks that combine with their neighbours, what normalizers change, and
/// added tokens.
const PARTS: [&str; 48] = [
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{b}",
    "\u{85}",
    "\u{a0}",
    "\u{3000}",
    "\u{200d}",
    "\u{301}",
    "\u{344}",
    "\u{600}",
    "\u{0}",
    "\u{fffd}",
    "\u{ad}",
    "a",
    // As a private character, the last `a` of a word.
    "\u{100061}",
    "b",
    "the",
    "ing",
    "The",
    "É",
    "é",
    "ß",
    "İ",
    "Σ",
    "ﬁ",
    "ﾞ",
    "¨",
    "語",
    "数字",
    "한",
    "1",
    "22",
    ".",
    ",",
    "--",
    "'s",
    "``",
    "▁",
    "[UNK]",
    "[SEP]",
    "<mask>",
    "whole",
    "abcdefghijklmnopqrstuvw",
];

/// A vocabulary that has pieces of most parts.
fn vocab() -> Vec<String> {
    let mut vocab: Vec<String> = [
        "[UNK]", "[SEP]", "the", "##ing", "##the", "e", "##e", "\u{301}", "¨", "語", "한",
    ]
    .map(str::to_owned)
    .into();
    for letter in ('a'..='z').filter(|&letter| letter != 'e').chain('0'..='9') {
        vocab.push(letter.to_string());
        vocab.push(format!("##{letter}"));
    }
    vocab.extend([".", ",", "-", "'", "É", "é", "ß", "fi"].map(str::to_owned));
    vocab
}

fn of_words(normalizer: &Value, pre_tokenizer: &Value, kind: &str) -> Tokenizer {
    with_prefix("##", normalizer, pre_tokenizer, kind)
}

/// With what stands before tokens that are for the inside of words.
fn with_prefix(prefix: &str, normalizer: &Value, pre_tokenizer: &Value, kind: &str) -> Tokenizer {
    let ids: serde_json::Map<String, Value> =
        vocab().into_iter().zip((0..).map(Value::from)).collect();
    let model = match kind {
        "WordPiece" => {
            json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": 20, "vocab": ids})
        }
        "WordLevel" => json!({"type": "WordLevel", "unk_token": "[UNK]", "vocab": ids}),
        "BPE" => suffixed_bpe("</w>"),
        "BPE without a suffix" => suffixed_bpe(""),
        _ => {
            let byte_fallback = kind == "Unigram of bytes";
            let pieces = vocab()
                .into_iter()
                .zip(1..)
                .map(|(piece, i)| json!([piece.replace("##", ""), -1.5 / f64::from(i % 9 + 1)]));
            let mut pieces: Vec<Value> = pieces.collect();
            pieces.extend([
                json!(["▁", -2.0]),
                json!(["▁the", -1.0]),
                json!(["``", -1.5]),
            ]);
            if byte_fallback {
                pieces.extend((0..256).map(|byte| json!([format!("<0x{byte:02X}>"), -9.0])));
            }
            json!({"type": "Unigram", "unk_id": 0, "byte_fallback": byte_fallback, "vocab": pieces})
        }
    };
    let added = |id: u32, content: &str, normalized: bool, flag: &str| {
        json!({"id": id, "content": content, "special": !normalized, "normalized": normalized,
            "single_word": flag == "single_word", "lstrip": flag == "lstrip", "rstrip": flag == "rstrip"})
    };
    let file = json!({"version": "1.0", "model": model, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
    "post_processor": null, "decoder": null, "truncation": null, "padding": null, "added_tokens": [
        added(1, "[SEP]", false, ""), added(900, "<mask>", false, "lstrip"), added(901, "whole", true, "single_word"),
    ]});
    Tokenizer::from_json(kind, file.to_string()).unwrap()
}

/// A model whose letters are those of bytes, and some others.
fn suffixed_bpe(suffix: &str) -> Value {
    let merges = [
        ["t", "h"],
        ["a", "b"],
        ["i", "n"],
        ["h", "e$"],
        ["th", "e$"],
        ["in", "g$"],
        ["Ã", "©"],
        ["c", "d"],
        ["ab", "cd"],
        ["-", "-$"],
        ["2", "2$"],
        ["'", "s$"],
        ["▁", "th"],
        ["▁", "a$"],
        ["▁th", "e$"],
        ["▁", "ab"],
    ]
    .map(|[left, right]| [left.to_owned(), right.replace('$', suffix)]);
    let letters = ('!'..='~').filter(|&letter| letter != 'q');
    let letters = letters.chain("éßÃ©¨ªŀ語▁".chars()).map(String::from);
    let mut names: Vec<String> = vec!["[UNK]".to_owned(), "[SEP]".to_owned()];
    for letter in letters {
        names.push(format!("{letter}{suffix}"));
        names.push(letter);
    }
    names.extend(merges.iter().map(|merge| merge.concat()));
    names.sort_unstable();
    names.dedup();
    let vocab: serde_json::Map<String, Value> =
        names.into_iter().zip((0..).map(Value::from)).collect();
    json!({"type": "BPE", "unk_token": "[UNK]", "end_of_word_suffix": suffix, "fuse_unk": true,
        "vocab": vocab, "merges": merges})
}

fn files() -> Vec<Tokenizer> {
    let bert = |lowercase, strip_accents: Option<bool>| {
        json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": strip_accents, "lowercase": lowercase})
    };
    let as_it_is = json!({"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false,
        "strip_accents": null, "lowercase": true});
    let sequence = |steps: &[Value]| json!({"type": "Sequence", "pretokenizers": steps});
    let metaspace =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let as_in_old_files =
        json!({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true});
    let by_bert = json!({"type": "BertPreTokenizer"});
    let by_space = json!({"type": "WhitespaceSplit"});
    let forms = json!({"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "``"}, "content": "\""}, {"type": "Strip", "strip_left": true, "strip_right": true},
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]});
    let as_in_clip = json!({"type": "Sequence", "normalizers": [
        {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]});
    let words = json!({"type": "Split", "behavior": "Removed", "invert": true, "pattern":
        {"Regex": r"'s|'t|<\|x\|>|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"}});
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    let digits = json!({"type": "Digits", "individual_digits": true});
    vec![
        of_words(&bert(false, None), &by_bert, "BPE"),
        of_words(&bert(true, None), &by_space, "BPE without a suffix"),
        of_words(
            &as_in_clip,
            &sequence(&[words.clone(), digits.clone(), byte_level.clone()]),
            "BPE",
        ),
        of_words(
            &Value::Null,
            &sequence(&[words.clone(), byte_level, digits]),
            "BPE without a suffix",
        ),
        of_words(&as_in_clip, &words, "WordPiece"),
        of_words(&bert(true, None), &by_bert, "WordPiece"),
        of_words(&bert(false, None), &by_bert, "WordPiece"),
        of_words(&bert(false, Some(true)), &by_space, "WordPiece"),
        of_words(&bert(true, Some(false)), &by_bert, "WordPiece"),
        of_words(&bert(false, Some(true)), &by_bert, "WordPiece"),
        of_words(&as_it_is, &by_bert, "WordPiece"),
        of_words(&Value::Null, &by_bert, "WordPiece"),
        with_prefix("", &bert(true, None), &by_bert, "WordPiece"),
        with_prefix("@@", &bert(true, None), &by_bert, "WordPiece"),
        of_words(
            &json!({"type": "NFC"}),
            &json!({"type": "Whitespace"}),
            "WordLevel",
        ),
        of_words(&json!({"type": "Nmt"}), &by_bert, "WordLevel"),
        of_words(
            &forms,
            &sequence(&[by_space.clone(), metaspace.clone()]),
            "Unigram",
        ),
        of_words(
            &json!({"type": "NFKC"}),
            &sequence(&[by_space.clone(), metaspace.clone()]),
            "Unigram",
        ),
        of_words(
            &Value::Null,
            &sequence(&[by_space.clone(), metaspace]),
            "Unigram of bytes",
        ),
        of_words(
            &Value::Null,
            &sequence(&[by_space, as_in_old_files]),
            "Unigram",
        ),
    ]
}

/// A normalizer that marks upper case and punctuation, as translation models have it.
fn marks() -> Value {
    let mut entries: Vec<(Vec<u8>, u32)> = Vec::new();
    let mut texts = String::new();
    for (from, to) in [
        ("T", "Ut"),
        (".", "P."),
        (",", "P,"),
        ("-", "P-"),
        ("É", "Ué"),
        ("\u{a0}", " "),
    ] {
        entries.push((from.into(), texts.len() as u32));
        texts += to;
        texts.push('\0');
    }
    entries.sort();
    let trie = yada::builder::DoubleArrayBuilder::build(&entries).unwrap();
    let map = [
        &(trie.len() as u32).to_le_bytes(),
        &trie[..],
        texts.as_bytes(),
    ]
    .concat();
    json!({"type": "Precompiled", "precompiled_charsmap": BASE64_STANDARD.encode(map)})
}

/// Files whose only pre-tokenizer is `Metaspace`.
fn marked_files() -> Vec<Tokenizer> {
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true});
    let steps = |steps: &[Value]| json!({"type": "Sequence", "normalizers": steps});
    let [nfkc, nmt, lowercase] = ["NFKC", "Nmt", "Lowercase"].map(|name| json!({"type": name}));
    let strip = |left: bool| json!({"type": "Strip", "strip_left": left, "strip_right": true});
    let several = |content: &str| json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": content});
    let quotes = json!({"type": "Replace", "pattern": {"String": "``"}, "content": "\""});
    let file = |normalizer: Value, scheme: &str, kind: &str| {
        of_words(&normalizer, &metaspace(scheme), kind)
    };
    vec![
        file(Value::Null, "always", "Unigram"),
        file(Value::Null, "first", "Unigram of bytes"),
        file(nmt.clone(), "never", "Unigram"),
        file(nfkc.clone(), "always", "WordLevel"),
        file(nfkc.clone(), "always", "BPE without a suffix"),
        file(Value::Null, "first", "BPE"),
        file(
            steps(&[nmt.clone(), nfkc.clone(), several(" "), strip(true)]),
            "always",
            "BPE without a suffix",
        ),
        file(
            steps(&[nmt.clone(), nfkc.clone(), several(" ")]),
            "always",
            "Unigram",
        ),
        file(
            steps(&[nmt.clone(), nfkc.clone(), strip(false), several("▁")]),
            "first",
            "Unigram",
        ),
        file(
            steps(&[
                lowercase,
                strip(true),
                quotes,
                nmt.clone(),
                nfkc.clone(),
                several(" "),
            ]),
            "always",
            "Unigram of bytes",
        ),
        file(
            steps(&[nmt, nfkc, several(" "), strip(true)]),
            "always",
            "Unigram",
        ),
        file(
            steps(&[marks(), strip(false), several("▁")]),
            "always",
            "Unigram",
        ),
        of_words(
            &strip(false),
            &json!({"type": "Sequence", "pretokenizers": [metaspace("never")]}),
            "Unigram",
        ),
    ]
}

fn files_once() -> &'static [(Tokenizer, Tokenizer)] {
    static ALL: std::sync::OnceLock<Vec<(Tokenizer, Tokenizer)>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let all = files().into_iter().chain(marked_files());
        let with_others = all.map(|tokenizer| {
            assert_eq!(
                tokenizer.engine(),
                EngineKind::Fast,
                "{:?}",
                tokenizer.not_fast()
            );
            let other = tokenizer.without_fast().unwrap().unwrap();
            assert_eq!(other.engine(), EngineKind::Reference);
            (tokenizer, other)
        });
        with_others.collect()
    })
}

fn check(text: &str) {
    for (number, (tokenizer, other)) in files_once().iter().enumerate() {
        for special_tokens_in_text in [SpecialTokensInText::Parse, SpecialTokensInText::Text] {
            let options = EncodeOptions {
                special_tokens_in_text,
                ..EncodeOptions::default()
            };
            let mut encoder = tokenizer.encoder(&options).unwrap();
            let expected = other.encode(text, &options).unwrap();
            for turn in ["all words are new", "all words are known"] {
                let mut ids = vec![7];
                encoder.encode_into(text, &mut ids).unwrap();
                assert_eq!(ids[1..], expected, "file {number}, {turn}: {text:?}");
            }
        }
    }
}

#[test]
fn every_pair_of_parts_beside_words() {
    for (i, first) in PARTS.iter().enumerate() {
        // In CI, each part still comes before and after many others.
        for second in PARTS.iter().skip(i % extent(1, 6)).step_by(extent(1, 6)) {
            check(&format!("{first}{second}"));
            check(&format!("a{first}{second}b {first} {second}"));
        }
    }
}

#[test]
fn texts_of_many_words() {
    let num_words = extent(5000, 1000);
    let words = (0..num_words).map(|i| format!("w{i}{}", ["ing", " ", "\n", ". "][i % 4]));
    check(&words.collect::<String>());
    check(&"a ".repeat(2 * num_words));
    check(&"語".repeat(num_words));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_mix(parts in prop::collection::vec(0..PARTS.len(), 0..60)) {
        check(&parts.into_iter().map(|part| PARTS[part]).collect::<String>());
    }

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        check(&text);
    }
}

#[test]
fn what_is_not_apart_is_not_covered() {
    let reason = |normalizer: Value, pre_tokenizer: Value| {
        let tokenizer = of_words(&normalizer, &pre_tokenizer, "WordLevel");
        assert_eq!(tokenizer.engine(), EngineKind::Reference);
        tokenizer.not_fast().unwrap().to_owned()
    };
    let by_bert = || json!({"type": "BertPreTokenizer"});
    assert_eq!(
        reason(json!({"type": "Prepend", "prepend": "x"}), by_bert()),
        "its normalizer Prepend may change more than one word"
    );
    let blanks = json!({"type": "Replace", "pattern": {"String": " "}, "content": "_"});
    assert_eq!(
        reason(blanks, by_bert()),
        "its normalizer Replace may change more than one word"
    );
    assert_eq!(
        reason(
            Value::Null,
            json!({"type": "Punctuation", "behavior": "Isolated"})
        ),
        "its pre-tokenizer Punctuation does not remove whitespace"
    );
    let first =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true});
    let steps = json!({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, first]});
    assert_eq!(
        reason(Value::Null, steps),
        "its pre-tokenizer Metaspace depends on where in the text a word is"
    );
    let marks =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    let strip = json!({"type": "Strip", "strip_left": true, "strip_right": true});
    assert_eq!(
        reason(strip.clone(), marks.clone()),
        "its normalizer Strip changes the start of a text alone"
    );
    let right = json!({"type": "Strip", "strip_left": false, "strip_right": true});
    let steps =
        json!({"type": "Sequence", "normalizers": [{"type": "NFKC"}, right, {"type": "NFD"}]});
    assert_eq!(
        reason(steps, marks),
        "its normalizer Strip is between other steps"
    );
    let token_of_two_words = json!({"type": "Replace", "pattern": {"String": "l"}, "content": " "});
    assert_eq!(
        reason(token_of_two_words, by_bert()),
        "the added token \"whole\" may match across words"
    );
}
