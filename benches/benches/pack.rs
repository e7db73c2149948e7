//! Packs a corpus on disk into a pbin with one thread, compared with only encoding the same texts.
#![forbid(unsafe_code)]

use std::ops::ControlFlow;

use criterion::{BenchmarkId, Criterion, Throughput};
use packtok_benches::{Corpus, encode_options, pack_options, token_counter};
use packtok_pack::pack::pack;
use packtok_pbin::Reader;
use packtok_tokenizer::{EngineChoice, Tokenizer};

const CORPUS_BYTES: usize = 32 << 20;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let tokenizer = Tokenizer::builtin("gpt2").expect("it is built in");
    for name in Corpus::NAMES {
        bench(
            &mut criterion,
            &tokenizer,
            &Corpus::load(name, CORPUS_BYTES),
        );
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, tokenizer: &Tokenizer, corpus: &Corpus) {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let input = folder.path().join("corpus.jsonl");
    std::fs::write(&input, corpus.jsonl()).expect("the corpus can be written");
    let options = pack_options(tokenizer, &input, folder.path().join("corpus.pbin"), 1);
    let run = || {
        pack(&options, tokenizer, &mut |_| ControlFlow::Continue(()))
            .expect("the corpus can be packed")
    };
    let mut num_tokens = token_counter(tokenizer, EngineChoice::Auto);
    run();
    check(&options.spec.output, tokenizer, corpus, options.eod.id);

    let mut group = criterion.benchmark_group("pack/gpt2");
    group.throughput(Throughput::Bytes(corpus.text_bytes()));
    group.bench_function(BenchmarkId::new("packtok", &corpus.name), |bencher| {
        bencher.iter(run);
    });
    group.bench_function(BenchmarkId::new("encode-only", &corpus.name), |bencher| {
        bencher.iter(|| corpus.texts().map(&mut num_tokens).sum::<usize>());
    });
    group.finish();
}

/// Compares each document of the file with the ids of its text.
fn check(path: &std::path::Path, tokenizer: &Tokenizer, corpus: &Corpus, eod_id: u32) {
    let reader = Reader::open(path).expect("the file can be read");
    let mut documents = 0;
    for text in corpus.texts() {
        let mut ids = tokenizer
            .encode(text, &encode_options())
            .expect("the text can be encoded");
        if ids.is_empty() {
            continue;
        }
        if ids.last() != Some(&eod_id) {
            ids.push(eod_id);
        }
        let expected: Vec<u8> = ids
            .iter()
            .flat_map(|&id| (id as u16).to_le_bytes())
            .collect();
        assert_eq!(
            reader.document(documents).expect("the document exists"),
            expected
        );
        documents += 1;
    }
    assert_eq!(reader.len(), documents);
}
