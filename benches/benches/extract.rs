//! Extracts the text of a document from its line: fast path, jq path, and plain serde_json.
//!
//! serde_json reads into a struct with one field and checks less than either path must.
#![forbid(unsafe_code)]

use std::borrow::Cow;

use criterion::{BenchmarkId, Criterion, Throughput};
use packtok_benches::Corpus;
use packtok_corpus::field::{Extractor, Field};
use serde::Deserialize;

const CORPUS_BYTES: usize = 8 << 20;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    for name in Corpus::NAMES {
        bench(&mut criterion, &Corpus::load(name, CORPUS_BYTES));
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, corpus: &Corpus) {
    let mut fast = extractor(".text", true);
    // With the pipe, the pattern is not a plain path and uses jq; the result is the same.
    let mut jq = extractor(".text | .", false);
    for line in corpus.lines() {
        let expected = serde_text(line);
        assert_eq!(fast.text(line).expect("the line has a text"), expected);
        assert_eq!(jq.text(line).expect("the line has a text"), expected);
    }
    let mut group = criterion.benchmark_group("extract");
    group.throughput(Throughput::Bytes(corpus.jsonl().len() as u64));
    for (way, extractor) in [("packtok/plain-path", &mut fast), ("packtok/jq", &mut jq)] {
        group.bench_function(BenchmarkId::new(way, &corpus.name), |bencher| {
            bencher.iter(|| {
                corpus
                    .lines()
                    .map(|line| len(extractor, line))
                    .sum::<usize>()
            });
        });
    }
    group.bench_function(BenchmarkId::new("serde_json", &corpus.name), |bencher| {
        bencher.iter(|| {
            corpus
                .lines()
                .map(|line| serde_text(line).len())
                .sum::<usize>()
        });
    });
    group.finish();
}

fn extractor(pattern: &str, is_plain_path: bool) -> Extractor {
    let field = Field::compile(pattern).expect("the pattern is jq");
    assert_eq!(field.is_plain_path(), is_plain_path);
    field.extractor()
}

fn len(extractor: &mut Extractor, line: &[u8]) -> usize {
    extractor.text(line).expect("the line has a text").len()
}

fn serde_text(line: &[u8]) -> Cow<'_, str> {
    serde_json::from_slice::<Document<'_>>(line)
        .expect("the line has a text")
        .text
}
