//! Any text: packtok's fast engine gives the ids of the reference engine.
//!
//! The first byte of an input selects a tokenizer; there is one with a small vocabulary per family.
//! The second byte determines how the rest becomes a text: verbatim, or as pairs of a part and its
//! number of repetitions. Each text is encoded by an encoder that has encoded all previous texts,
//! and by a new one. Seeds: `tests/fuzz/seeds/*.text`.
//!
//! With `ENGINE_BYTES=N` the program compares texts of N bytes in all without libFuzzer, starting at the seed
//! `ENGINE_SEED`, and prints the bytes of each tokenizer.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use packtok_jobs::splitmix::{GAMMA, mixed};
use packtok_tokenizer::{EncodeOptions, Encoder, EngineChoice, SpecialTokensInText, Tokenizer};
use serde_json::{Map, Value, json};

const BLANK: &str = "▁";

const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI_K2: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_LLM_LETTERS: &str =
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-Ⴥ]+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

/// Strings at the edges of words and vectors, each class in all byte lengths that characters have.
const PARTS: [&str; 64] = [
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{b}",
    "\u{a0}",
    "\u{85}",
    "\u{3000}",
    "\u{2003}",
    "a",
    "b",
    "Z",
    "s",
    "the",
    "ing",
    "é",
    "ſ",
    "я",
    "語",
    "々",
    "ー",
    "𐐷",
    "0",
    "1",
    "22",
    "²",
    "٣",
    "Ⅷ",
    "𝟘",
    ".",
    ",",
    ";",
    "--",
    "/",
    "'",
    "'s",
    "'LL",
    "'re",
    "«",
    "€",
    "—",
    "😀",
    "\u{301}",
    "\u{323}",
    "\u{93c}",
    "\u{1161}",
    "\u{344}",
    "\0",
    "\u{200d}",
    "abcdefg",
    "internationalization",
    "привет",
    "日本語",
    "▁",
    "<|endoftext|>",
    "<s>",
    "</s>",
    "s></",
    "|x y|",
    "x y|a",
    "|",
    "İ",
    "\u{e000}",
];

thread_local! {
    static TOKENIZERS: RefCell<Vec<Ways>> = RefCell::new(tokenizers().iter().map(Ways::of).collect());
}

/// Encoders of a tokenizer with both engines, for both ways to read special tokens.
struct Ways {
    tokenizer: Tokenizer,
    encoders: [[Encoder; 2]; 2],
}

impl Ways {
    fn of(tokenizer: &Tokenizer) -> Self {
        assert_eq!(tokenizer.not_fast(), None);
        let both = |special| {
            [EngineChoice::Fast, EngineChoice::Reference]
                .map(|engine| encoder(tokenizer, engine, special))
        };
        Self {
            tokenizer: tokenizer.clone(),
            encoders: [SpecialTokensInText::Parse, SpecialTokensInText::Text].map(both),
        }
    }
}

fn encoder(
    tokenizer: &Tokenizer,
    engine: EngineChoice,
    special_tokens_in_text: SpecialTokensInText,
) -> Encoder {
    let options = EncodeOptions {
        engine,
        special_tokens_in_text,
        // There are many encoders, and texts are short.
        cache_bytes: Some(1 << 20),
        ..EncodeOptions::default()
    };
    tokenizer.encoder(&options).expect("the engine serves")
}

fuzz_target!(init: start(), |bytes: &[u8]| {
    let [which, how, rest @ ..] = bytes else {
        return;
    };
    let text = match how & 1 {
        0 => String::from_utf8_lossy(rest).into_owned(),
        _ => rest
            .chunks(2)
            .map(|two| {
                let times = two.get(1).map_or(1, |&times| usize::from(times) % 70);
                PARTS[usize::from(two[0]) % PARTS.len()].repeat(times)
            })
            .collect(),
    };
    TOKENIZERS.with_borrow_mut(|all| {
        let which = usize::from(*which) % all.len();
        all[which].check(&text, how >> 1 & 1 == 1);
    });
});

impl Ways {
    /// Encodes a text in all ways and compares the ids.
    fn check(&mut self, text: &str, special_tokens_are_text: bool) {
        let special = usize::from(special_tokens_are_text);
        let [warm, other] = &mut self.encoders[special];
        let modes = [SpecialTokensInText::Parse, SpecialTokensInText::Text];
        let mut new = encoder(&self.tokenizer, EngineChoice::Fast, modes[special]);
        let ids = |encoder: &mut Encoder| {
            let mut ids = Vec::new();
            encoder
                .encode_into(text, &mut ids)
                .expect("any text has ids");
            ids
        };
        let expected = ids(other);
        let name = self.tokenizer.name();
        assert!(ids(warm) == expected, "met before, {name}, {text:?}");
        assert!(ids(&mut new) == expected, "new, {name}, {text:?}");
    }
}

fn start() {
    let number = |key: &str| -> Option<u64> {
        let value = std::env::var(key).ok()?;
        Some(value.parse().expect("a number"))
    };
    if let Some(num_bytes) = number("ENGINE_BYTES") {
        survey(number("ENGINE_SEED").unwrap_or(0), num_bytes);
        std::process::exit(0);
    }
}

/// Compares random texts, for one tokenizer after the other.
fn survey(seed: u64, num_bytes: u64) {
    let mut random = Random(seed);
    TOKENIZERS.with_borrow_mut(|all| {
        let mut compared = vec![0; all.len()];
        while compared.iter().sum::<u64>() < num_bytes {
            for (ways, compared) in all.iter_mut().zip(&mut compared) {
                let text = random.text();
                ways.check(&text, random.below(4) == 0);
                *compared += text.len() as u64;
            }
        }
        for (ways, compared) in all.iter().zip(compared) {
            println!("{compared:>12} bytes, {}", ways.tokenizer.name());
        }
    });
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(GAMMA);
        (mixed(self.0) % limit as u64) as usize
    }

    /// Parts, some of them repeated, and characters; a text has few or many different ones.
    fn text(&mut self) -> String {
        let len = 1 << self.below(15);
        let parts: Vec<String> = (0..1 + self.below(40)).map(|_| self.part()).collect();
        let mut text = String::new();
        while text.len() < len {
            if self.below(8) == 0 {
                text.push_str(&self.part());
            } else {
                text.push_str(&parts[self.below(parts.len())]);
            }
        }
        text
    }

    fn part(&mut self) -> String {
        match self.below(6) {
            0 => PARTS[self.below(PARTS.len())].repeat(self.below(70)),
            1 => {
                // Of any plane, or of one block of 256.
                let block = self.below(0x1100) as u32 * 0x100;
                let first = if self.below(2) == 0 {
                    block
                } else {
                    self.below(0x30) as u32 * 0x100
                };
                let scalars = (0..1 + self.below(6)).map(|_| first + self.below(0x100) as u32);
                scalars.filter_map(char::from_u32).collect()
            }
            _ => PARTS[self.below(PARTS.len())].to_owned(),
        }
    }
}

/// A name, a tokenizer file, and the normalizer and pre-tokenizer to put into it.
type Steps = (&'static str, Value, Value, Value);

fn tokenizers() -> Vec<Tokenizer> {
    let steps = [byte_level_steps(), wordwise_steps(), sentencepiece_steps()];
    let loaded = steps
        .into_iter()
        .flatten()
        .map(|(name, mut file, normalizer, pre_tokenizer)| {
            file["normalizer"] = normalizer;
            file["pre_tokenizer"] = pre_tokenizer;
            Tokenizer::from_json(name, file.to_string()).expect("a tokenizer.json")
        });
    loaded.collect()
}

fn sequence(steps: Vec<Value>) -> Value {
    json!({"type": "Sequence", "pretokenizers": steps})
}

fn metaspace(scheme: &str, split: bool) -> Value {
    json!({"type": "Metaspace", "replacement": BLANK, "prepend_scheme": scheme, "split": split})
}

fn byte_level_steps() -> Vec<Steps> {
    let nfc = json!({"type": "NFC"});
    let digits = json!({"type": "Digits", "individual_digits": true});
    let byte_level = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let splits = |regexes: &[&str]| {
        let mut steps: Vec<Value> = regexes.iter().map(|regex| split(regex)).collect();
        steps.push(byte_level(false));
        sequence(steps)
    };
    let steps = [
        ("gpt2", Value::Null, byte_level(true)),
        ("neox", nfc.clone(), byte_level(true)),
        (
            "starcoder",
            Value::Null,
            sequence(vec![digits.clone(), byte_level(true)]),
        ),
        ("cl100k", Value::Null, splits(&[CL100K])),
        ("cl100k in form C", nfc, splits(&[CL100K])),
        ("o200k", Value::Null, splits(&[O200K])),
        ("tekken", Value::Null, splits(&[TEKKEN])),
        ("kimi k2", Value::Null, splits(&[KIMI_K2])),
        ("deepseek", Value::Null, splits(&DEEPSEEK)),
        (
            "deepseek coder",
            Value::Null,
            sequence(vec![
                split("[\r\n]"),
                split(r"\s?\p{L}+"),
                split(r"\s?\p{P}+"),
                split("[一-龥ࠀ-一가-퟿]+"),
                digits.clone(),
                byte_level(false),
            ]),
        ),
        (
            "deepseek llm",
            Value::Null,
            sequence(vec![
                split("[\r\n]"),
                split(DEEPSEEK_LLM_LETTERS),
                split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
                split(r"\s+$"),
                split("[一-龥ࠀ-一가-퟿]+"),
                digits,
                byte_level(false),
            ]),
        ),
        (
            "falcon",
            Value::Null,
            sequence(vec![
                json!({"type": "Punctuation", "behavior": "Contiguous"}),
                byte_level(true),
                json!({"type": "Digits", "individual_digits": false}),
                split("[0-9][0-9][0-9]"),
            ]),
        ),
    ];
    steps
        .into_iter()
        .map(|(name, normalizer, pre_tokenizer)| (name, of_bytes(), normalizer, pre_tokenizer))
        .collect()
}

fn wordwise_steps() -> Vec<Steps> {
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": BLANK});
    let prepend = json!({"type": "Prepend", "prepend": BLANK});
    let llama = json!({"type": "Sequence", "normalizers": [prepend, replace]});
    let by_words = json!({"type": "WhitespaceSplit"});
    let by_bert = json!({"type": "BertPreTokenizer"});
    let bert = |lowercase: bool| {
        json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": lowercase})
    };
    let (text, pieces) = (of_text(), of_pieces());
    let clip = json!({"type": "Sequence", "normalizers": [
        {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]});
    let words = json!({"type": "Split", "behavior": "Removed", "invert": true,
        "pattern": {"Regex": r"<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"}});
    let letters = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    vec![
        ("llama", text.clone(), llama, Value::Null),
        (
            "first",
            text.clone(),
            Value::Null,
            metaspace("first", false),
        ),
        ("always", text, Value::Null, metaspace("always", true)),
        ("bert", pieces.clone(), bert(true), by_bert.clone()),
        ("bert, cased", pieces.clone(), bert(false), by_bert.clone()),
        (
            "bpe of bert's words",
            suffixed(),
            bert(false),
            by_bert.clone(),
        ),
        ("clip", suffixed(), clip, sequence(vec![words, letters])),
        ("pieces as they are", pieces, Value::Null, by_bert),
        (
            "unigram",
            of_scores("Unigram", false),
            json!({"type": "NFKC"}),
            sequence(vec![by_words, metaspace("always", true)]),
        ),
    ]
}

fn sentencepiece_steps() -> Vec<Steps> {
    let steps = [
        (
            "sentencepiece unigram",
            "SentencePieceUnigram",
            false,
            (true, true),
        ),
        (
            "sentencepiece unigram of bytes",
            "SentencePieceUnigram",
            true,
            (false, false),
        ),
        (
            "sentencepiece bpe",
            "SentencePieceBPE",
            false,
            (false, true),
        ),
        (
            "sentencepiece bpe of bytes",
            "SentencePieceBPE",
            true,
            (true, false),
        ),
    ];
    let steps = steps.map(|(name, model, has_bytes, (dummy, removes))| {
        let normalizer = json!({"type": "SentencePiece", "precompiled_charsmap": "", "add_dummy_prefix": dummy,
            "remove_extra_whitespaces": removes, "escape_whitespaces": true, "treat_whitespace_as_suffix": false});
        (name, of_scores(model, has_bytes), normalizer, Value::Null)
    });
    steps.into()
}

/// The characters for bytes, and some merges.
fn of_bytes() -> Value {
    let letters = (0..=255u8).scan(0x100, |next, byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => Some(char::from(byte)),
        _ => {
            *next += 1;
            char::from_u32(*next - 1)
        }
    });
    let letters: Vec<String> = letters.map(String::from).collect();
    let merges = "h e|Ġ t|Ġt he|i n|in g|Ġ Ġ|ĠĠ ĠĠ|Ċ Ċ|č Ċ|Ã ©|Å ¿|Ì ģ|e r|2 2|- -|-- --|. .|.. .|' s|Ġ a|a b|ab c|Ġ '|1 2|a a|aa aa|æ Ĺ|æĹ ¥|Ġ Ã|n t|nt er|L L";
    let merges = pairs(merges);
    let names = letters
        .into_iter()
        .chain(merges.iter().map(|merge| merge.concat()));
    let vocab = numbered(names.collect());
    json!({"version": "1.0", "added_tokens": added(&["<|endoftext|>"]), "post_processor": null, "decoder": null,
           "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
           "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
           "merges": merges}})
}

/// As [`of_bytes`], with a suffix at the end of words.
fn suffixed() -> Value {
    const SUFFIX: &str = "</w>";
    let mut file = of_bytes();
    let model = &mut file["model"];
    let names: Vec<String> = model["vocab"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let at_ends = names.iter().map(|name| format!("{name}{SUFFIX}"));
    model["vocab"] = numbered(names.iter().cloned().chain(at_ends).collect());
    let merges: Vec<[String; 2]> = model["merges"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|merge| [0, 1].map(|part| merge[part].as_str().unwrap_or_default().to_owned()))
        .collect();
    // In turns, so that their ranks mix.
    let merges: Vec<[String; 2]> = merges
        .into_iter()
        .flat_map(|[left, right]| {
            let at_end = [left.clone(), format!("{right}{SUFFIX}")];
            [at_end, [left, right]]
        })
        .collect();
    model["merges"] = json!(merges);
    model["end_of_word_suffix"] = SUFFIX.into();
    file
}

fn pairs(merges: &str) -> Vec<[&str; 2]> {
    let pairs = merges.split('|').filter_map(|merge| merge.split_once(' '));
    pairs.map(|pair| pair.into()).collect()
}

/// Bytes, characters and some merges, a few of them across spaces.
fn of_text() -> Value {
    let merges = "h e|i n|▁ t|▁t he|▁ a|▁a b|▁ ▁|▁▁ ▁▁|e r|, ▁|,▁ a|日 本|日本 語|2 2|a ▁|\n \n|b a|▁ 日|. .|.. ..|a b|ab c|п р|é .|- -|-- --|1 ▁";
    let merges = pairs(merges);
    let mut names: Vec<String> = (0..=255)
        .map(|byte: u8| format!("<0x{byte:02X}>"))
        .collect();
    let chars = merges.iter().flatten().flat_map(|part| part.chars());
    names.extend(chars.map(String::from));
    names.extend(merges.iter().map(|merge| merge.concat()));
    let added = added(&["<s>", "</s>", "s></", "|x y|", "x y|a"]);
    json!({"version": "1.0", "added_tokens": added, "post_processor": null, "decoder": null, "model": {
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "vocab": numbered(names),
        "merges": merges}})
}

/// Pieces that most words consist of; a few words need others.
fn of_pieces() -> Value {
    let pieces = "[UNK]|the|##he|##the|in|##ing|##g|a|##a|b|##b|z|##z|Z|s|##s|e|é|##e|e\u{301}|ſ|я|##я|при|##вет|語|日|ー|0|1|22|##2|##²|²|.|,|;|-|'|«|—|abc|##defg|inter|##nation|##al|▁|<|##|endoftext|ا|\u{301}|x|##y||";
    let pieces = pieces.split('|').map(str::to_owned).chain(["|".to_owned()]);
    json!({"version": "1.0", "added_tokens": added(&["<|endoftext|>", "|x"]), "post_processor": null, "decoder": null,
           "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
           "max_input_chars_per_word": 40, "vocab": numbered(pieces.filter(|piece| !piece.is_empty()).collect())}})
}

/// Pieces with few different scores, so that there are often several best segmentations.
fn of_scores(model_type: &str, byte_fallback: bool) -> Value {
    let pieces = "▁|the|▁the|he|in|ing|▁in|a|▁a|ab|abc|b|▁b|▁▁|▁▁▁▁|日|日本|語|本語|22|2|.|..|-|--|----|'|'s|s|e|é|п|при|вет|0|1|<|>|endoftext|ter|na|tion|al";
    let scores = [-1.0, -1.5, -2.25, -3.1, 0.0, -0.5];
    let of_ours = model_type != "Unigram";
    let mut vocab = vec![if of_ours {
        json!(["<unk>", 0.0, "unknown"])
    } else {
        json!(["<unk>", 0.0])
    }];
    vocab.extend(pieces.split('|').enumerate().map(|(i, piece)| {
        let score = scores[i * 5 % 7 % scores.len()];
        if of_ours {
            json!([piece, score, "normal"])
        } else {
            json!([piece, score])
        }
    }));
    if byte_fallback {
        vocab.extend((0..256).map(|byte| json!([format!("<0x{byte:02X}>"), 0.0, "byte"])));
    }
    let decoder = if of_ours {
        json!({"type": "SentencePiece", "unk_surface": "?"})
    } else {
        Value::Null
    };
    json!({"version": "1.0", "added_tokens": [], "post_processor": null, "decoder": decoder,
           "model": {"type": model_type, "unk_id": 0, "byte_fallback": byte_fallback, "vocab": vocab}})
}

fn numbered(names: Vec<String>) -> Value {
    let mut vocab = Map::new();
    for name in names {
        let next = vocab.len();
        vocab.entry(name).or_insert(next.into());
    }
    vocab.into()
}

fn added(contents: &[&str]) -> Value {
    let token = |(i, content): (usize, &&str)| {
        json!({"id": 900_000 + i, "content": content, "special": !content.contains("x y"), "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": !content.contains('/')})
    };
    contents.iter().enumerate().map(token).collect()
}
