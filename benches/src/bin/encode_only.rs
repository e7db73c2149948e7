//! Encodes the texts of a corpus repeatedly: the baseline rate for packing.
//!
//! `encode_only TOKENIZER CORPUS.jsonl REPEAT [auto|fast|reference]` prints the bytes of text
//! encoded and the number of tokens, as JSON. All texts are in memory before the first one is
//! encoded, and all ids go to one buffer that is cleared for each document, so that it stays in the
//! L1 cache. With REPEAT 0 it only loads, which gives the time to subtract.
#![forbid(unsafe_code)]

use packtok_benches::{Corpus, token_counter};
use packtok_tokenizer::{EngineChoice, Tokenizer};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, path, repeat, engine @ ..] = &arguments[..] else {
        eprintln!("usage: encode_only TOKENIZER CORPUS.jsonl REPEAT [auto|fast|reference]");
        std::process::exit(2);
    };
    let engine = match engine.first().map_or("auto", String::as_str) {
        "auto" => EngineChoice::Auto,
        "fast" => EngineChoice::Fast,
        "reference" => EngineChoice::Reference,
        other => panic!("{other:?} is no engine"),
    };
    let tokenizer = Tokenizer::builtin(tokenizer).expect("a built-in tokenizer");
    let repeat: u64 = repeat.parse().expect("REPEAT is a number");
    let jsonl = std::fs::read(path).expect("the corpus can be read");
    let corpus = Corpus::from_jsonl(path, jsonl);
    let mut num_tokens = token_counter(&tokenizer, engine);
    let mut tokens = 0;
    for _ in 0..repeat {
        for text in corpus.texts() {
            tokens += num_tokens(text);
        }
    }
    let bytes = repeat * corpus.text_bytes();
    println!("{{\"text_bytes\": {bytes}, \"tokens\": {tokens}}}");
}
