//! Encodes a corpus several times with one engine and prints the time of each pass.
//!
//! `packtok-engine-passes ENGINE TOKENIZER.json CORPUS.jsonl PASSES`, where ENGINE is packtok,
//! reference or fastokens, prints JSON: CPU seconds of this thread for each pass and for the last
//! fifth of the first pass, bytes of text, and number of ids. Each document is one call. Ids go to
//! one buffer that is cleared each time, or are copied there if the engine returns its own buffer.
//! What an engine does at its first text counts. `engine_passes.py` does the same for tools called from
//! Python.

use std::process::exit;

use packtok_tokenizer::{EncodeOptions, EngineChoice, Tokenizer};

type Encode = Box<dyn FnMut(&str, &mut Vec<u32>)>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, tokenizer, corpus, passes] = &arguments[..] else {
        eprintln!("usage: packtok-engine-passes ENGINE TOKENIZER.json CORPUS.jsonl PASSES");
        exit(2);
    };
    let passes: usize = passes.parse().expect("PASSES is a number");
    let texts = texts(corpus);
    let loading = on_processor();
    let mut encode: Encode = match engine.as_str() {
        "packtok" => of_packtok(tokenizer, EngineChoice::Fast),
        "reference" => of_packtok(tokenizer, EngineChoice::Reference),
        "fastokens" => of_fastokens(tokenizer),
        other => {
            eprintln!("{other:?} is no engine; expected packtok, reference or fastokens");
            exit(2);
        }
    };
    let load_seconds = on_processor() - loading;
    let text_bytes: usize = texts.iter().map(String::len).sum();
    let mut seconds = Vec::new();
    let mut last_fifth = (0.0, 0);
    let (mut ids, mut num_ids) = (Vec::new(), 0);
    for pass in 0..passes {
        num_ids = 0;
        let (begin, mut done, mut fifth) = (on_processor(), 0, None);
        for text in &texts {
            if pass == 0 && fifth.is_none() && done >= text_bytes / 5 * 4 {
                fifth = Some((on_processor(), done));
            }
            ids.clear();
            encode(text, &mut ids);
            num_ids += ids.len();
            done += text.len();
        }
        let end = on_processor();
        seconds.push(end - begin);
        if let Some((begin, done)) = fifth {
            last_fifth = (end - begin, text_bytes - done);
        }
    }
    let printed = serde_json::json!({
        "load_seconds": load_seconds,
        "seconds": seconds,
        "last_fifth_seconds": last_fifth.0,
        "last_fifth_bytes": last_fifth.1,
        "text_bytes": text_bytes,
        "num_ids": num_ids,
    });
    println!("{printed}");
}

fn texts(path: &str) -> Vec<String> {
    let jsonl = std::fs::read(path).expect("the corpus can be read");
    let lines = jsonl.split(|&byte| byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let document: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            document["text"].as_str().expect("a text").to_owned()
        })
        .collect()
}

fn of_packtok(tokenizer: &str, engine: EngineChoice) -> Encode {
    let tokenizer = Tokenizer::from_file(tokenizer.as_ref(), None).expect("a tokenizer.json");
    let options = EncodeOptions {
        engine,
        ..EncodeOptions::default()
    };
    let mut encoder = tokenizer.encoder(&options).expect("the engine covers it");
    Box::new(move |text, ids| encoder.encode_into(text, ids).expect("ids"))
}

fn of_fastokens(tokenizer: &str) -> Encode {
    let tokenizer = fastokens::Tokenizer::from_file(tokenizer.as_ref()).expect("a tokenizer.json");
    Box::new(move |text, ids| ids.extend_from_slice(&tokenizer.encode(text).expect("ids")))
}

/// CPU seconds of this thread, unaffected by other processes.
fn on_processor() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
