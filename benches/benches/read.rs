//! Random documents and random blocks of a pbin, compared with reading the same bytes from the
//! file.
//!
//! Everything is in the page cache: the bench measures the access path, not the disk.
#![forbid(unsafe_code)]

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use criterion::{Criterion, Throughput};
use packtok_benches::SplitMix;
use packtok_benches::pbin::write_random_documents;
use packtok_pbin::{HEADER_BYTES, Reader};

const NUM_DOCUMENTS: u64 = 100_000;
const NUM_READS: usize = 20_000;
const BLOCK_TOKENS: u64 = 2049;
const SEED: u64 = 1;

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let path = folder.path().join("documents.pbin");
    write_random_documents(&path, NUM_DOCUMENTS, SEED);
    let reader = Reader::open(&path).expect("the file can be read");
    let mut numbers = SplitMix::new(SEED);

    let documents: Vec<u64> = (0..NUM_READS)
        .map(|_| numbers.below(reader.len()))
        .collect();
    let spans = documents
        .iter()
        .map(|&i| reader.document_span(i).expect("the document exists"))
        .collect();
    bench(&mut criterion, "read/documents", &path, spans, |i| {
        sum(reader.document(documents[i]).expect("the document exists"))
    });

    let last_start = reader.num_tokens() - BLOCK_TOKENS;
    let starts: Vec<u64> = (0..NUM_READS).map(|_| numbers.below(last_start)).collect();
    let spans = starts
        .iter()
        .map(|start| start * 2..(start + BLOCK_TOKENS) * 2)
        .collect();
    bench(&mut criterion, "read/blocks", &path, spans, |i| {
        let block = starts[i]..starts[i] + BLOCK_TOKENS;
        sum(reader.tokens(block).expect("the tokens exist"))
    });
    criterion.final_summary();
}

/// Compares `read`, which sums the tokens of read number i, with reading `spans` of the data with
/// pread.
fn bench(
    criterion: &mut Criterion,
    name: &str,
    path: &Path,
    spans: Vec<Range<u64>>,
    read: impl Fn(usize) -> u64,
) {
    let file = File::open(path).expect("the file can be read");
    let mut buffer = Vec::new();
    let mut pread = |span: &Range<u64>| {
        buffer.resize((span.end - span.start) as usize, 0);
        file.read_exact_at(&mut buffer, HEADER_BYTES + span.start)
            .expect("the bytes exist");
        sum(&buffer)
    };
    for (i, span) in spans.iter().enumerate() {
        assert_eq!(read(i), pread(span));
    }
    let mut group = criterion.benchmark_group(name);
    let bytes = spans.iter().map(|span| span.end - span.start).sum();
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function("packtok", |bencher| {
        bencher.iter(|| (0..spans.len()).map(&read).sum::<u64>());
    });
    group.bench_function("pread", |bencher| {
        bencher.iter(|| spans.iter().map(&mut pread).sum::<u64>());
    });
    group.finish();
}

/// Reads every token, like the input pipeline of a model.
fn sum(tokens: &[u8]) -> u64 {
    let tokens = tokens.chunks_exact(2);
    tokens
        .map(|token| u64::from(u16::from_le_bytes([token[0], token[1]])))
        .sum()
}
