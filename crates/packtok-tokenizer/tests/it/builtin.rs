//! Built-in tokenizers give the ids of tiktoken's own code.

use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use packtok_tokenizer::{EncodeOptions, SpecialTokensInText, Tokenizer};
use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

const TEXTS: &[&str] = &[
    "",
    " ",
    "Hello world, it's 12345 o'clock!",
    "if (x == 10) {\n\treturn \"ok\";\r\n}\n\n\n",
    "Das Ünglück — 東京タワー, Привет мир, مرحبا بالعالم, नमस्ते दुनिया",
    "👩‍👩‍👧‍👦 e\u{301} \u{0} \u{feff} \u{200d}  \u{a0}\u{3000}",
    "a<|endoftext|>b <|endofprompt|><|fim_prefix|>",
    "<|unused_100256|><|unused_199998|>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// Loaded once, because that takes longer than the tests.
fn pairs() -> &'static [(&'static str, Tokenizer, CoreBPE)] {
    static ALL: OnceLock<Vec<(&'static str, Tokenizer, CoreBPE)>> = OnceLock::new();
    ALL.get_or_init(|| {
        [
            ("r50k_base", tiktoken_rs::r50k_base()),
            ("cl100k_base", tiktoken_rs::cl100k_base()),
            ("o200k_base", tiktoken_rs::o200k_base()),
            ("p50k_base", tiktoken_rs::p50k_base()),
            ("p50k_edit", tiktoken_rs::p50k_edit()),
            ("o200k_harmony", tiktoken_rs::o200k_harmony()),
        ]
        .into_iter()
        .map(|(name, bpe)| (name, Tokenizer::builtin(name).unwrap(), bpe.unwrap()))
        .collect()
    })
}

#[test]
fn ids_are_tiktokens() {
    for (name, tokenizer, tiktoken) in pairs() {
        let parse = EncodeOptions::default();
        let as_text = EncodeOptions {
            special_tokens_in_text: SpecialTokensInText::Text,
            ..EncodeOptions::default()
        };
        for text in TEXTS {
            // The crate names id 200018 otherwise than gpt-oss does.
            if *name == "o200k_harmony" && text.contains("<|endofprompt|>") {
                continue;
            }
            assert_eq!(
                tokenizer.encode(text, &parse).unwrap(),
                tiktoken.encode_with_special_tokens(text),
                "{name} {text:?}"
            );
            assert_eq!(
                tokenizer.encode(text, &as_text).unwrap(),
                tiktoken.encode_ordinary(text),
                "{name} {text:?}"
            );
        }
    }
}

/// The files of ranks that OpenAI publishes are recognized by their content.
#[test]
fn files_of_their_ranks_are_the_built_in_tokenizers() {
    let path = std::env::temp_dir().join(format!("packtok-ranks-{}", std::process::id()));
    for (name, tokenizer, tiktoken) in pairs() {
        let num_ranks = match *name {
            "r50k_base" => 50_256,
            "p50k_base" => 50_281,
            "cl100k_base" => 100_256,
            "o200k_base" => 199_998,
            // Their files are those of others.
            _ => continue,
        };
        // Rank 50,256 of p50k_base is a special token, which the file does not have.
        let lines = (0..num_ranks)
            .filter(|&rank| rank != 50_256 || *name != "p50k_base")
            .map(|rank: u32| {
                let token = tiktoken.decode_bytes(&[rank]).unwrap();
                format!("{} {rank}\n", BASE64_STANDARD.encode(token))
            });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let of_file = Tokenizer::from_file(&path, None).unwrap();
        assert_eq!(of_file.json(), tokenizer.json(), "{name}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn vocabulary_sizes_and_special_ids_are_tiktokens() {
    let gpt2 = Tokenizer::builtin("gpt2").unwrap();
    let [r50k, cl100k, o200k, p50k, p50k_edit, harmony] = [0, 1, 2, 3, 4, 5].map(|i| &pairs()[i].1);
    for (name, tokenizer, vocab_size, endoftext) in [
        ("gpt2", &gpt2, 50_257, 50_256),
        ("r50k_base", r50k, 50_257, 50_256),
        ("cl100k_base", cl100k, 100_277, 100_257),
        ("o200k_base", o200k, 200_019, 199_999),
        ("p50k_base", p50k, 50_281, 50_256),
        ("p50k_edit", p50k_edit, 50_284, 50_256),
        ("o200k_harmony", harmony, 201_088, 199_999),
    ] {
        assert_eq!(tokenizer.vocab_size(), vocab_size, "{name}");
        assert_eq!(
            tokenizer.token_to_id("<|endoftext|>"),
            Some(endoftext),
            "{name}"
        );
        assert_eq!(
            tokenizer.id_to_token(endoftext).unwrap(),
            "<|endoftext|>",
            "{name}"
        );
        assert!(
            tokenizer.notes().is_empty(),
            "{name}: {:?}",
            tokenizer.notes()
        );
    }
}

#[test]
fn random_text_encodes_like_tiktoken_and_decodes_to_itself() {
    proptest!(ProptestConfig::with_cases(300), |(text in any::<String>(), words in "[ a-zA-Z0-9'\\n\\t.,äß東👍<|>]{0,60}")| {
        for (_, tokenizer, tiktoken) in pairs() {
            for text in [&text, &words] {
                let ids = tokenizer.encode(text, &EncodeOptions::default()).unwrap();
                prop_assert_eq!(&ids, &tiktoken.encode_with_special_tokens(text));
                prop_assert_eq!(&tokenizer.decode(&ids).unwrap(), text);
            }
        }
    });
}
