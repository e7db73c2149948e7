//! The fast engine gives the ids of the reference engine, on difficult texts.

use std::collections::HashMap;
use std::sync::OnceLock;

use packtok_tokenizer::{EncodeOptions, EngineChoice, EngineKind, SpecialTokensInText, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::patterns::{
    CL100K_IN_TIKTOKEN, DEEPSEEK, KIMI_K2, QWEN, QWEN_3_5, TEKKEN, after_a_space, between_numbers,
    deepseek_coder, deepseek_llm, falcon, splits,
};
use crate::{builtin_file, extent};

/// All patterns, with and without `ignore_merges`, and normal form C.
fn tokenizers() -> &'static [Tokenizer] {
    static ALL: OnceLock<Vec<Tokenizer>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        let nfc = Some(json!({"type": "NFC"}));
        // The vocabularies of cl100k and o200k take long to load.
        let mut files = vec![
            ("gpt2", false, None, None),
            ("gpt2", false, Some(after_a_space()), None),
            ("gpt2", false, Some(after_a_space()), nfc.clone()),
            ("gpt2", false, Some(between_numbers()), nfc.clone()),
            ("cl100k_base", true, None, None),
            ("gpt2", true, Some(splits(&[QWEN])), None),
            ("gpt2", true, Some(splits(&[QWEN_3_5])), nfc.clone()),
            ("gpt2", true, Some(splits(&DEEPSEEK)), None),
            ("o200k_base", true, None, None),
            ("gpt2", true, Some(splits(&[TEKKEN])), None),
            ("gpt2", false, Some(falcon()), None),
            ("gpt2", false, Some(deepseek_llm()), None),
            ("gpt2", false, None, Some(json!({"type": "NFKC"}))),
            ("gpt2", true, Some(splits(&[KIMI_K2])), None),
        ];
        files.extend(extent(
            vec![
                ("gpt2", false, Some(deepseek_coder()), None),
                ("gpt2", true, Some(splits(&[QWEN])), nfc.clone()),
                ("cl100k_base", true, Some(splits(&[QWEN])), nfc.clone()),
                ("cl100k_base", true, Some(splits(&[QWEN_3_5])), nfc),
                (
                    "cl100k_base",
                    true,
                    Some(splits(&[CL100K_IN_TIKTOKEN])),
                    None,
                ),
                ("o200k_base", true, Some(splits(&[TEKKEN])), None),
            ],
            vec![],
        ));
        for (name, ignores_merges, pre_tokenizer, normalizer) in files {
            let mut file = match (name, &pre_tokenizer) {
                ("gpt2", Some(_)) => gpt2(),
                _ => builtin_file(name),
            };
            if let Some(pre_tokenizer) = pre_tokenizer {
                file["pre_tokenizer"] = pre_tokenizer;
            }
            file["normalizer"] = normalizer.into();
            file["model"]["ignore_merges"] = ignores_merges.into();
            all.push(Tokenizer::from_json(name, file.to_string()).unwrap());
        }
        all.extend(without_some_bytes());
        all.extend(with_surroundings());
        all
    })
}

/// GPT-2's file with its first merges, which loads in a fraction of the time.
fn gpt2() -> Value {
    const NUM_BYTES: usize = 256;
    static FILE: OnceLock<Value> = OnceLock::new();
    FILE.get_or_init(|| {
        let mut file = builtin_file("gpt2");
        let model = &mut file["model"];
        let num_merges = extent(50_000, 8_000);
        model["merges"].as_array_mut().unwrap().truncate(num_merges);
        let last_ids = num_merges + NUM_BYTES..50_256;
        model["vocab"]
            .as_object_mut()
            .unwrap()
            .retain(|_, id| !last_ids.contains(&(id.as_u64().unwrap() as usize)));
        file
    })
    .clone()
}

/// Added tokens that take white space beside them, or are single words; in the original text, and in normal forms.
fn with_surroundings() -> impl Iterator<Item = Tokenizer> {
    let normalizers = [Value::Null, json!({"type": "NFC"}), json!({"type": "NFKC"})];
    normalizers.into_iter().map(|normalizer| {
        let mut file = gpt2();
        file["normalizer"] = normalizer;
        let tokens = [
            ("<s>", "lstrip"),
            ("</s>", "rstrip"),
            ("|x y|", "single_word"),
            ("s></", ""),
            // In white space that the token before it has taken.
            ("  ", ""),
            ("\n", "rstrip"),
            ("\u{301}", "lstrip"),
            ("'s", "single_word"),
            ("语 a", "rstrip"),
        ];
        for (i, (content, flag)) in tokens.into_iter().enumerate() {
            let mut token = json!({"id": 50_257 + i, "content": content, "special": i % 2 == 0,
                "single_word": false, "lstrip": i == 7, "rstrip": i == 0, "normalized": i % 3 != 0});
            if !flag.is_empty() {
                token[flag] = true.into();
            }
            file["added_tokens"].as_array_mut().unwrap().push(token);
        }
        Tokenizer::from_json("surroundings", file.to_string()).unwrap()
    })
}

/// Vocabularies that lack tokens of bytes: those that no text has, as that of NeoX and with its normal form, and
/// also some that texts have. Texts are split by a pattern whose matches are kept.
fn without_some_bytes() -> impl Iterator<Item = Tokenizer> {
    let never = [0xc0, 0xc1].into_iter().chain(0xf5..=0xff);
    let never: Vec<u8> = never.collect();
    let some = [&never[..], &[0x00, 0x0b, 0xf1]].concat();
    [(never, json!({"type": "NFC"})), (some, Value::Null)]
        .into_iter()
        .map(|(bytes, normalizer)| {
            let mut file = gpt2();
            file["pre_tokenizer"] = splits(&[QWEN]);
            let split = &mut file["pre_tokenizer"]["pretokenizers"][0];
            split["behavior"] = "Removed".into();
            split["invert"] = true.into();
            file["normalizer"] = normalizer;
            let vocab = file["model"]["vocab"].as_object_mut().unwrap();
            // Printable characters of Latin-1 stand for themselves, the other bytes for U+0100 on.
            let letter = |byte: u8| match byte {
                0x00 | 0x0b => char::from_u32(0x100 + u32::from(byte)).unwrap(),
                _ => char::from(byte),
            };
            for byte in bytes {
                vocab.remove(&letter(byte).to_string()).unwrap();
            }
            let vocab = vocab.clone();
            let merges = file["model"]["merges"].as_array_mut().unwrap();
            let is_known = |part: &str| vocab.contains_key(part);
            merges.retain(|merge| {
                let mut parts = merge.as_array().unwrap().iter();
                parts.all(|part| is_known(part.as_str().unwrap()))
            });
            Tokenizer::from_json("without bytes", file.to_string()).unwrap()
        })
}

/// As in SentencePiece: all ways to write spaces, and one vocabulary with tokens across words.
fn sentence_pieces() -> &'static [Tokenizer] {
    static ALL: OnceLock<Vec<Tokenizer>> = OnceLock::new();
    ALL.get_or_init(|| {
        let prepend = json!({"type": "Prepend", "prepend": "▁"});
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let llama = json!({"type": "Sequence", "normalizers": [prepend, replace]});
        let at_blanks = json!({"type": "Split", "pattern": {"String": " "}, "invert": false,
                               "behavior": "MergedWithPrevious"});
        let other_space = json!({"type": "Replace", "pattern": {"String": "--"}, "content": "▁"});
        let at_others = json!({"type": "Split", "pattern": {"String": "--"}, "invert": false,
                               "behavior": "MergedWithNext"});
        let metaspace = |scheme: &str, split: bool| {
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split})
        };
        [
            (false, llama.clone(), Value::Null, 0),
            (true, llama, Value::Null, 0),
            (true, replace.clone(), at_blanks.clone(), 0),
            // As many as Gemma has: they are isolated.
            (false, replace.clone(), at_blanks.clone(), 100),
            (true, replace.clone(), at_blanks, 200),
            (true, json!({"type": "Sequence", "normalizers": [other_space, replace]}), at_others, 0),
            (true, Value::Null, metaspace("first", false), 0),
            (true, Value::Null, metaspace("always", true), 0),
            (false, Value::Null, metaspace("never", true), 0),
        ]
        .into_iter()
        .map(|(across_words, normalizer, pre_tokenizer, num_unused)| {
            let added = |id, content: &str| {
                let is_special = !["x y", "un", "\n", "▁"].iter().any(|part| content.contains(part));
                json!({"id": id, "content": content, "special": is_special, "single_word": false,
                       "lstrip": false, "rstrip": false, "normalized": num_unused == 0 && !content.contains('/')})
            };
            let tokens = match num_unused {
                0 => ["<s>", "</s>", "s></", "|x y|", "x y|a"].map(str::to_owned).into(),
                _ => many_tokens(num_unused),
            };
            let tokens: Vec<Value> = tokens.iter().zip([0, 1].into_iter().chain(997..))
                .map(|(content, id)| added(id, content))
                .collect();
            let file = json!({"added_tokens": tokens,
                "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null,
                "decoder": null, "model": model(across_words)});
            Tokenizer::from_json("pieces", file.to_string()).unwrap()
        })
        .collect()
    })
}

/// Tokens without spaces, so many that they are isolated: of white space, of one byte, long, of `▁`, overlapping, and a
/// special one that is a word as text, too.
fn many_tokens(num_unused: usize) -> Vec<String> {
    let mut tokens: Vec<String> = [
        "<s>",
        "</s>",
        "s></",
        "\n",
        "\n\n",
        "\n\n\n",
        "▁▁",
        "▁▁▁▁▁▁▁▁",
        "un-1",
        "n-12",
        "-un",
        "the",
    ]
    .map(str::to_owned)
    .into();
    tokens.push("\n".repeat(20));
    tokens.push(format!("un{}", "-1".repeat(12)));
    tokens.extend((0..num_unused).map(|number| format!("<unused{number}>")));
    tokens
}

/// A vocabulary learned from the example: bytes, its characters, and its most frequent pairs.
fn model(across_words: bool) -> Value {
    const TEXT: &str = include_str!("../../../../examples/corpus.jsonl");
    let text: String = TEXT.chars().take(20_000).collect();
    let text = format!("{text}{}", PARTS.concat()).replace(' ', "▁");
    let mut vocab = vec!["<s>".to_owned(), "</s>".to_owned()];
    vocab.extend((0..=255).map(|byte: u8| format!("<0x{byte:02X}>")));
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut symbols: Vec<usize> = Vec::new();
    for char in text.chars().filter(|char| !"\n\t0語".contains(*char)) {
        let next = vocab.len();
        let id = *ids.entry(char.to_string()).or_insert(next);
        if id == next {
            vocab.push(char.to_string());
        }
        symbols.push(id);
    }
    let mut merges = Vec::new();
    while merges.len() < 300 {
        let mut counts: HashMap<(usize, usize), usize> = HashMap::new();
        for pair in symbols.windows(2) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
        let is_good = |&(left, right): &(usize, usize)| {
            let is_across =
                vocab[right].starts_with('▁') && vocab[left] != "▁".repeat(vocab[left].len() / 3);
            across_words || !is_across
        };
        let best = counts.into_iter().filter(|(pair, _)| is_good(pair));
        let ((left, right), _) = best.max_by_key(|&(pair, count)| (count, pair)).unwrap();
        merges.push(json!([vocab[left], vocab[right]]));
        let merged = format!("{}{}", vocab[left], vocab[right]);
        let id = vocab.iter().position(|token| *token == merged);
        let id = id.unwrap_or_else(|| {
            vocab.push(merged);
            vocab.len() - 1
        });
        let mut after: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < symbols.len() {
            let is_pair = symbols[at] == left && symbols.get(at + 1) == Some(&right);
            after.push(if is_pair { id } else { symbols[at] });
            at += if is_pair { 2 } else { 1 };
        }
        symbols = after;
    }
    let vocab: serde_json::Map<String, Value> =
        vocab.into_iter().zip((0..).map(Value::from)).collect();
    json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
           "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
           "merges": merges})
}

fn options(engine: EngineChoice, special: bool) -> EncodeOptions {
    EncodeOptions {
        engine,
        add_special_tokens: special,
        special_tokens_in_text: if special {
            SpecialTokensInText::Parse
        } else {
            SpecialTokensInText::Text
        },
        ..EncodeOptions::default()
    }
}

/// Three rounds through one encoder: with misses, with hits, and with both after other ids.
fn check(texts: &[String]) {
    check_each(tokenizers(), texts);
    check_each(sentence_pieces(), texts);
}

fn check_each(tokenizers: &[Tokenizer], texts: &[String]) {
    for tokenizer in tokenizers {
        for special in [true, false] {
            let mut fast = tokenizer
                .encoder(&options(EngineChoice::Fast, special))
                .unwrap();
            let mut reference = tokenizer
                .encoder(&options(EngineChoice::Reference, special))
                .unwrap();
            // The reference engine is slow: it encodes each text once.
            let expected: Vec<Vec<u32>> = texts
                .iter()
                .map(|text| {
                    let mut ids = Vec::new();
                    reference.encode_into(text, &mut ids).unwrap();
                    ids
                })
                .collect();
            let mut ids = vec![7];
            for round in 0..3 {
                for (text, expected) in texts.iter().zip(&expected) {
                    if round < 2 {
                        ids.clear();
                    }
                    let start = ids.len();
                    fast.encode_into(text, &mut ids).unwrap();
                    assert_eq!(ids[start..], expected[..], "{} {text:?}", tokenizer.name());
                }
            }
        }
    }
}

#[test]
fn built_in_tokenizers_are_served_by_it() {
    for tokenizer in tokenizers().iter().chain(sentence_pieces()) {
        assert_eq!(tokenizer.not_fast(), None);
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
        let reason = tokenizer.engine_reason();
        let falls_back = [
            "texts that contain \"--\" fall back",
            "texts that contain the bytes 0x00, 0x0B, 0xF1, which have no token,",
        ];
        let falls_back = falls_back.iter().any(|phrase| reason.contains(phrase));
        assert_eq!(falls_back, reason.contains("fall back"), "{reason}");
        assert!(
            tokenizer
                .notes()
                .iter()
                .all(|note| !note.contains("slower"))
        );
    }
}

#[test]
fn words_of_every_length_have_the_ids_of_the_reference() {
    let mut texts = Vec::new();
    for part in [
        "a", "ab", "-", " ", "\n", "7", "é", "я", "語", "😀", "\u{301}", "=-", "Zq9", "\u{a0}",
    ] {
        texts.extend((0..70).map(|times| part.repeat(times)));
        texts.extend((0..20).map(|times| format!("x {}y", part.repeat(times * 13))));
    }
    check(&texts);
}

#[test]
fn a_word_of_many_letters_takes_no_time() {
    let words =
        |num_bytes: usize| ["a", "é", " ", "ab12"].map(|part| part.repeat(num_bytes / part.len()));
    // The reference engine takes time that grows with the square for some of these: it gets short ones.
    check(&words(extent(1 << 12, 1 << 9)));
    for tokenizer in tokenizers().iter().chain(sentence_pieces()) {
        let options = options(EngineChoice::Fast, false);
        for text in words(extent(1 << 20, 1 << 14)) {
            let ids = tokenizer.encode(&text, &options).unwrap();
            // Far from the ends, a word of one repeated part has the ids of any other length.
            let half = tokenizer.encode(&text[..text.len() / 2], &options).unwrap();
            assert_eq!(ids[..half.len() / 2], half[..half.len() / 2]);
            assert!(ids.len() > half.len());
        }
    }
}

/// White space that a pattern reads to its end at every character, in vain, takes the square of its length.
#[test]
fn texts_that_take_too_long_to_split_fall_back() {
    let mut file = gpt2();
    file["pre_tokenizer"] = splits(&[r"\s+$", r"\p{L}+"]);
    let tokenizer = Tokenizer::from_json("spaces", file.to_string()).unwrap();
    assert_eq!(tokenizer.engine(), EngineKind::Fast);
    assert!(!tokenizer.is_linear());
    let spaces = " ".repeat(3000);
    let texts = ["", "a ", "x<|endoftext|>"].map(|before| format!("{before}{spaces}x, y "));
    check_each(std::slice::from_ref(&tokenizer), &texts);
}

#[test]
fn added_tokens_in_text_are_found() {
    check(&[
        "a<|endoftext|>b".to_owned(),
        " <|endoftext|> ".to_owned(),
        "<|endoftext".to_owned(),
        "<|fim_prefix|>x".to_owned(),
        "a <s> b</s>".to_owned(),
        "<s></s><s></s></s>a".to_owned(),
        "|x y|a|x y|x y|a".to_owned(),
        " </s> </s>  x".to_owned(),
        "|x y|".to_owned(),
        "|x▁y| a▁b".to_owned(),
        "▁".to_owned(),
        "x<s>".to_owned(),
        "<s>x <s>".to_owned(),
        " <s>▁<s>  <s>".to_owned(),
        " |x y|  |x▁y|".to_owned(),
        "|x▁y|▁|x y|▁x▁y|a".to_owned(),
        "▁▁</s>▁a</s>▁".to_owned(),
        "</s><s></s> <s></s>x<s>".to_owned(),
    ]);
}

#[test]
fn more_words_than_the_cache_has_room_for_are_no_matter() {
    // Numbers of up to 15 digits are short words of many ids; hexadecimal ones are split into pieces.
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 20
    };
    let texts: Vec<String> = (0..40)
        .map(|_| {
            let words = (0..2000).map(|i| match i % 3 {
                0 => format!(" {:x}", next()),
                1 => format!(" q{}", next() % 1_000_000_000),
                _ => format!(" {:b}", next() % 4096)
                    .replace('1', "ż")
                    .replace('0', "k"),
            });
            words.collect()
        })
        .collect();
    // The cache is the same for all.
    let some = |all: &'static [Tokenizer]| extent(all, &all[..2]);
    check_each(some(tokenizers()), &texts);
    check_each(some(sentence_pieces()), &texts);
}

/// GPT-2's without some of its merges, so that tokens are left which only `ignore_merges` gives.
fn with_tokens_that_nothing_merges() -> Tokenizer {
    let mut file = builtin_file("gpt2");
    file["model"]["ignore_merges"] = true.into();
    let merges = file["model"]["merges"].as_array_mut().unwrap();
    let mut number = 0;
    merges.retain(|_| {
        number += 1;
        number % 5 != 0
    });
    Tokenizer::from_json("gpt2", file.to_string()).unwrap()
}

#[test]
fn tokens_that_are_known_beforehand_have_the_ids_of_the_reference() {
    let not_merged = with_tokens_that_nothing_merges();
    let all = tokenizers().iter().chain(sentence_pieces());
    for tokenizer in all.chain([&not_merged]) {
        let mut reference = tokenizer
            .encoder(&options(EngineChoice::Reference, false))
            .unwrap();
        // The second cache has no room for most of them.
        for cache_bytes in [None, Some(1 << 20)] {
            let options = EncodeOptions {
                cache_bytes,
                ..options(EngineChoice::Fast, false)
            };
            let mut fast = tokenizer.encoder(&options).unwrap();
            // After some hundred words, the cache grows, and the tokens are put into it.
            let words: String = (0..1500).map(|number| format!("w{number}x ")).collect();
            for text in [&words, "a"] {
                fast.encode_into(text, &mut Vec::new()).unwrap();
            }
            for id in (0..tokenizer.vocab_size() as u32).step_by(extent(31, 97)) {
                let Ok(token) = tokenizer.decode(&[id]) else {
                    continue;
                };
                for text in [token.clone(), format!("a {token}b"), token.repeat(3)] {
                    let (mut ids, mut expected) = (Vec::new(), Vec::new());
                    fast.encode_into(&text, &mut ids).unwrap();
                    reference.encode_into(&text, &mut expected).unwrap();
                    assert_eq!(ids, expected, "{} {text:?}", tokenizer.name());
                }
            }
        }
    }
}

/// What occurs at the edges of words: each class, with characters of all lengths.
const PARTS: [&str; 60] = [
    " ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "a",
    "the",
    "Zq",
    "s",
    "é",
    "ſ",
    "я",
    "語",
    "𐐷",
    "0",
    "22",
    "²",
    "٣",
    "𝟘",
    ".",
    "--",
    "'",
    "'s",
    "'LL",
    "'re",
    "«",
    "😀",
    "\u{301}",
    "\0",
    "abcdefg",
    "internationalization",
    "привет",
    "日本語",
    "<|endoftext|>",
    "\u{200d}",
    "▁",
    "<unused7>",
    "un-1-12-1",
    "un-1-1-1-1-1-1-1-1-1-1-1-1",
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "|x y|",
    "x y|a",
    "<s>",
    "</s>",
    "s></",
    "|",
    "\u{344}",
    "\u{1112}\u{1161}",
    "\u{915}\u{93c}",
    "\u{323}",
    "e\u{301}",
    "\u{0b}",
    "\u{40000}",
    "…",
    "¨",
    "ｗｈｏｌｅ",
    "ﬁ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_mix_has_the_ids_of_the_reference(
        parts in prop::collection::vec((0..PARTS.len(), 1..4usize, 0..40usize), 0..100)
    ) {
        let text = parts
            .into_iter()
            .map(|(part, few, chance)| PARTS[part].repeat(if chance == 0 { 60 + few } else { few }))
            .collect();
        check(&[text]);
    }
}
