//! Compares the ids of the fast engine with those of the reference engine, for every document of a corpus.
//!
//! `fast TOKENIZER CORPUS.jsonl[.zst]` takes a built-in name or a tokenizer's file. `benches/peers/engines.py`
//! measures their speed.

use std::io::Read;

use packtok_tokenizer::{EncodeOptions, Encoder, EngineChoice, SpecialTokensInText, Tokenizer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, corpus] = &arguments[..] else {
        eprintln!("usage: fast TOKENIZER CORPUS.jsonl[.zst]");
        std::process::exit(2);
    };
    let tokenizer = if std::path::Path::new(tokenizer).exists() {
        Tokenizer::from_file(tokenizer.as_ref(), None)
    } else {
        Tokenizer::builtin(tokenizer)
    };
    let tokenizer = tokenizer.expect("the tokenizer can be loaded");
    compare(&tokenizer, &texts(corpus));
}

fn texts(path: &str) -> Vec<String> {
    let mut jsonl = std::fs::read(path).expect("the corpus can be read");
    if path.ends_with(".zst") {
        let mut whole = Vec::new();
        let decoder = zstd::Decoder::new(&jsonl[..]);
        decoder
            .and_then(|mut decoder| decoder.read_to_end(&mut whole))
            .expect("it is a zstd file");
        jsonl = whole;
    }
    jsonl
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let document: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            document["text"].as_str().expect("a text").to_owned()
        })
        .collect()
}

fn encoder(tokenizer: &Tokenizer, engine: EngineChoice, adds: bool, is_text: bool) -> Encoder {
    let options = EncodeOptions {
        engine,
        add_special_tokens: adds,
        special_tokens_in_text: if is_text {
            SpecialTokensInText::Text
        } else {
            SpecialTokensInText::Parse
        },
        ..EncodeOptions::default()
    };
    tokenizer.encoder(&options).expect("the engine covers it")
}

/// Twice, so that in the second round every word is a cache hit.
fn compare(tokenizer: &Tokenizer, texts: &[String]) {
    for (adds, is_text) in [(true, false), (false, true)] {
        let mut fast = encoder(tokenizer, EngineChoice::Fast, adds, is_text);
        let mut reference = encoder(tokenizer, EngineChoice::Reference, adds, is_text);
        let (mut ids, mut expected) = (Vec::new(), Vec::new());
        let (mut num_ids, mut num_different) = (0, 0);
        for round in 0..2 {
            for (i, text) in texts.iter().enumerate() {
                ids.clear();
                expected.clear();
                fast.encode_into(text, &mut ids).expect("ids");
                reference.encode_into(text, &mut expected).expect("ids");
                num_ids += ids.len();
                if ids != expected {
                    num_different += 1;
                    if num_different < 4 {
                        let at = ids.iter().zip(&expected).position(|(a, b)| a != b);
                        println!("document {i}, round {round}: differs at {at:?}");
                    }
                }
            }
        }
        println!(
            "special tokens added: {adds}, in text read as text: {is_text}: {num_different} of 2 x {} documents \
             differ, {num_ids} ids",
            texts.len()
        );
    }
}
