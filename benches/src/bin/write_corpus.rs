//! Writes a corpus of the benches to a file, repeated until it has the requested length.
//!
//! `write_corpus NAME PATH MIN_BYTES` accepts `prose`, `code`, `multi` or `short` (lines of 20
//! bytes). With 0 the corpus is written once. Prints lines and bytes of text, as JSON.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, Write};

use packtok_benches::Corpus;

/// A line of `short`: 20 bytes including its end, eight of them text.
const SHORT_LINES: &[u8] =
    b"{\"text\":\"one line\"}\n{\"text\":\"a second\"}\n{\"text\":\"3rd: 9.5\"}\n";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, min_bytes] = &arguments[..] else {
        eprintln!("usage: write_corpus prose|code|multi|short PATH MIN_BYTES");
        std::process::exit(2);
    };
    let min_bytes: u64 = min_bytes.parse().expect("MIN_BYTES is a number");
    let corpus = match &name[..] {
        "short" => Corpus::from_jsonl(name, SHORT_LINES.repeat(1 << 14)),
        name => Corpus::load(name, usize::MAX),
    };
    let copy_bytes = corpus.jsonl().len() as u64;
    let repeat = min_bytes.div_ceil(copy_bytes).max(1);
    let mut out = BufWriter::new(File::create(path).expect("the file can be made"));
    for _ in 0..repeat {
        out.write_all(corpus.jsonl()).expect("the disk has room");
    }
    out.flush().expect("the disk has room");
    let lines = repeat * corpus.lines().count() as u64;
    let text_bytes = repeat * corpus.text_bytes();
    let bytes = repeat * copy_bytes;
    println!(
        "{{\"lines\": {lines}, \"text_bytes\": {text_bytes}, \"bytes\": {bytes}, \"repeat\": {repeat}}}"
    );
}
