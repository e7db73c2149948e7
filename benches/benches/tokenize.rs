//! Tokenizes with the fast engine, compared with the reference engine, and with Hugging Face
//! tokenizers 0.23.2 on a part of the same texts.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput};
use packtok_benches::{Corpus, encode_options, token_counter};
use packtok_tokenizer::{EngineChoice, Tokenizer};

/// Bytes of lines per corpus; enough words that they do not all fit in the engine's cache.
const CORPUS_BYTES: usize = 16 << 20;

/// The baseline is slow, and its rate does not depend on the length.
const BASELINE_BYTES: usize = 1 << 20;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    for name in Corpus::NAMES {
        let corpus = Corpus::load(name, CORPUS_BYTES);
        let part = Corpus::load(name, BASELINE_BYTES);
        for tokenizer in ["gpt2", "cl100k_base"] {
            let tokenizer = Tokenizer::builtin(tokenizer).expect("it is built in");
            bench(&mut criterion, &tokenizer, &corpus, &part);
        }
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, tokenizer: &Tokenizer, corpus: &Corpus, part: &Corpus) {
    let peer: tokenizers::Tokenizer = tokenizer.json().parse().expect("the peer loads the file");
    let peer_ids = |text: &str| {
        let encoding = peer
            .encode_fast(text, true)
            .expect("the peer encodes the text");
        encoding.get_ids().to_vec()
    };
    let mut num_tokens = token_counter(tokenizer, EngineChoice::Fast);
    let mut num_reference_tokens = token_counter(tokenizer, EngineChoice::Reference);
    for text in part.texts() {
        let ids = tokenizer
            .encode(text, &encode_options())
            .expect("the text can be encoded");
        assert_eq!(ids, peer_ids(text));
    }
    let mut group = criterion.benchmark_group(format!("tokenize/{}", tokenizer.name()));
    group.throughput(Throughput::Bytes(corpus.text_bytes()));
    group.bench_function(BenchmarkId::new("packtok", &corpus.name), |bencher| {
        bencher.iter(|| corpus.texts().map(&mut num_tokens).sum::<usize>());
    });
    group.bench_function(BenchmarkId::new("reference", &corpus.name), |bencher| {
        bencher.iter(|| corpus.texts().map(&mut num_reference_tokens).sum::<usize>());
    });
    group.throughput(Throughput::Bytes(part.text_bytes()));
    group.bench_function(
        BenchmarkId::new("tokenizers-0.23.2", &part.name),
        |bencher| {
            bencher.iter(|| part.texts().map(|text| peer_ids(text).len()).sum::<usize>());
        },
    );
    group.finish();
}
