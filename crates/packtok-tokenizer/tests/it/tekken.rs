//! A tekken.json gives the ids of tiktoken's code, which Mistral's own library uses.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use packtok_tokenizer::{EncodeOptions, EngineKind, NewToken, SpecialTokensInText, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::patterns::{QWEN, TEKKEN};

const NUM_TOKENS: u32 = 20_000;
const NUM_SPECIAL: u32 = 100;

/// A vocabulary of the first tokens of another one, which are closed under merging.
fn files() -> &'static [(Tokenizer, CoreBPE)] {
    static ALL: std::sync::OnceLock<Vec<(Tokenizer, CoreBPE)>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let o200k = tiktoken_rs::o200k_base().unwrap();
        let tokens: Vec<Vec<u8>> = (0..NUM_TOKENS)
            .map(|rank| o200k.decode_bytes(&[rank]).unwrap())
            .collect();
        let vocab: Vec<Value> = (0u32..)
            .zip(&tokens)
            .map(|(rank, bytes)| json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(bytes), "token_str": null}))
            .collect();
        let of_pattern = |pattern: &str| {
            let file = json!({"config": {"pattern": pattern, "default_vocab_size": NUM_TOKENS + NUM_SPECIAL,
                "default_num_special_tokens": NUM_SPECIAL, "version": "v3"}, "vocab": vocab});
            let tiktoken = CoreBPE::new(
                tokens.iter().cloned().zip(0..).collect(),
                Default::default(),
                pattern,
            );
            (Tokenizer::from_json("tekken.json", file.to_string()).unwrap(), tiktoken.unwrap())
        };
        vec![of_pattern(TEKKEN), of_pattern(QWEN)]
    })
}

fn check(text: &str) {
    let options = EncodeOptions {
        special_tokens_in_text: SpecialTokensInText::Text,
        ..EncodeOptions::default()
    };
    for (tokenizer, tiktoken) in files() {
        assert_eq!(tokenizer.engine(), EngineKind::Fast);
        let expected: Vec<u32> = tiktoken
            .encode_ordinary(text)
            .into_iter()
            .map(|rank| rank + NUM_SPECIAL)
            .collect();
        assert_eq!(
            tokenizer.encode(text, &options).unwrap(),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn texts_get_the_ids_of_tiktoken() {
    for text in [
        "Hello world, it's 12345 o'clock!",
        "if (x == 10) {\n\treturn \"ok\";\r\n}\n\n\n",
        "Das Ünglück — 東京タワー, Привет мир, مرحبا بالعالم, नमस्ते दुनिया",
        "[INST] a </s><SPECIAL_99>",
        "HTTPServerError camelCaseWords DON'T don't",
    ] {
        check(text);
    }
    check(&"a".repeat(1000));
    check(&" ".repeat(1000));
}

/// The file with more tokens is a tokenizer.json, which alone would have the other rule.
#[test]
fn names_of_special_tokens_remain_text_after_tokens_are_added() {
    let (tokenizer, _) = &files()[0];
    let new = NewToken {
        content: "<new>".to_owned(),
        special: true,
        matching: None,
    };
    let more = tokenizer.with_tokens(&[new]).unwrap();
    let rule_of_file = EncodeOptions {
        special_tokens_in_text: SpecialTokensInText::OfFile,
        ..EncodeOptions::default()
    };
    let ids = |tokenizer: &Tokenizer, text| tokenizer.encode(text, &rule_of_file).unwrap();
    for text in ["<SPECIAL_99>", "<new>", "a <s> b"] {
        assert_eq!(ids(&more, text), ids(tokenizer, text), "{text:?}");
    }
    let json = more.json().to_owned();
    let alone = Tokenizer::from_json("tokenizer.json", json).unwrap();
    assert_ne!(ids(&alone, "<new>"), ids(&more, "<new>"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_text_gets_the_ids_of_tiktoken(text in any::<String>(), words in "[ a-zA-Z0-9'\\n\\t.,äß東👍<|>]{0,60}") {
        check(&text);
        check(&words);
    }
}
