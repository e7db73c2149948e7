//! Best-fit plans, compared with best-fit decreasing on an ordered set of bins, which yields the
//! same blocks.
//!
//! Document lengths are log-normal, or drawn at random from the document lengths of the corpora in
//! GPT-2 tokens.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput};
use packtok_benches::{Corpus, SplitMix, token_counter};
use packtok_dataset::plans::best_fit::{WINDOW_PIECES, plan_best_fit};
use packtok_dataset::plans::plan::{PlanWriter, TokenSpan};
use packtok_dataset::plans::plan_file::{Key, Kind};
use packtok_tokenizer::{EngineChoice, Tokenizer};

const NUM_DOCUMENTS: usize = 4 << 20;
/// The baseline is slow, and its rate does not depend on the number of documents.
const NUM_BASELINE_DOCUMENTS: usize = 1 << 18;
const CONTEXT_LENGTHS: [u64; 2] = [2048, 131_072];
/// Median and spread of the logarithm of lengths, similar to web pages.
const MEDIAN_TOKENS: f64 = 450.0;
const LOG_SPREAD: f64 = 1.1;
/// Bytes of lines per corpus: tens of thousands of documents to draw from.
const CORPUS_BYTES: usize = 16 << 20;
const SEED: u64 = 1;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    for (name, lens) in [("log-normal", log_normal()), ("corpora", of_corpora())] {
        for context_length in CONTEXT_LENGTHS {
            bench(&mut criterion, name, &lens, context_length);
        }
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, name: &str, lens: &[u32], context_length: u64) {
    let part = &lens[..NUM_BASELINE_DOCUMENTS];
    assert_eq!(blocks(part, context_length), baseline(part, context_length));
    report(name, lens, context_length);
    let mut group = criterion.benchmark_group(format!("best_fit/{name}"));
    group.throughput(Throughput::Elements(lens.len() as u64));
    group.bench_function(BenchmarkId::new("packtok", context_length), |bencher| {
        bencher.iter(|| num_blocks(lens, context_length));
    });
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let path = folder.path().join("plan");
    group.bench_function(
        BenchmarkId::new("packtok-file", context_length),
        |bencher| {
            bencher.iter(|| write(&path, lens, context_length));
        },
    );
    group.throughput(Throughput::Elements(part.len() as u64));
    group.bench_function(BenchmarkId::new("ordered-set", context_length), |bencher| {
        bencher.iter(|| baseline(part, context_length).len());
    });
    group.finish();
}

/// Prints to standard error how full the blocks are.
fn report(name: &str, lens: &[u32], context_length: u64) {
    let num_tokens: u64 = lens.iter().map(|&len| u64::from(len)).sum();
    let places = num_blocks(lens, context_length) * context_length;
    let padding = (places - num_tokens) as f64 / places as f64;
    eprintln!(
        "{name}, {context_length}: {num_tokens} tokens, padding {:.4} %",
        100.0 * padding
    );
}

fn documents(lens: &[u32]) -> impl Iterator<Item = Range<u64>> {
    lens.iter().scan(0, |stop, &len| {
        let start = *stop;
        *stop += u64::from(len);
        Some(start..*stop)
    })
}

fn plan(lens: &[u32], context_length: u64, mut emit: impl FnMut(&[TokenSpan])) {
    plan_best_fit(documents(lens).map(Ok), context_length, &mut |pieces| {
        emit(pieces);
        Ok(())
    })
    .expect("this cannot fail");
}

fn num_blocks(lens: &[u32], context_length: u64) -> u64 {
    let mut num_blocks = 0;
    plan(lens, context_length, |_| num_blocks += 1);
    num_blocks
}

fn blocks(lens: &[u32], context_length: u64) -> Vec<Vec<u64>> {
    let mut blocks = Vec::new();
    plan(lens, context_length, |pieces| {
        blocks.push(pieces.iter().map(|piece| piece.start).collect());
    });
    blocks
}

/// Plans into a file, as datasets do, including disk writes.
fn write(path: &Path, lens: &[u32], context_length: u64) {
    let key = Key {
        kind: Kind::BestFit,
        options: [context_length, 0],
        data: [0; 32],
    };
    let mut writer = PlanWriter::create(path, key).expect("the plan can be written");
    plan_best_fit(documents(lens).map(Ok), context_length, &mut |pieces| {
        writer.push(pieces)
    })
    .expect("the plan can be written");
    let num_tokens = lens.iter().map(|&len| u64::from(len)).sum();
    writer
        .publish(num_tokens, 0)
        .expect("the plan can be written");
}

/// Starts of the pieces of each block, as [`plan_best_fit`] orders them.
fn baseline(lens: &[u32], context_length: u64) -> Vec<Vec<u64>> {
    let pieces: Vec<Range<u64>> = documents(lens)
        .flat_map(|document| {
            let starts = document.clone().step_by(context_length as usize);
            starts.map(move |start| start..document.end.min(start + context_length))
        })
        .collect();
    let mut blocks: Vec<Vec<u64>> = Vec::new();
    for window in pieces.chunks(WINDOW_PIECES) {
        blocks.extend(baseline_window(window, context_length));
    }
    blocks
}

fn baseline_window(pieces: &[Range<u64>], context_length: u64) -> Vec<Vec<u64>> {
    let mut pieces = pieces.to_vec();
    pieces.sort_by_key(|piece| Reverse(piece.end - piece.start));
    let mut bins: Vec<Vec<u64>> = Vec::new();
    // Room, time of the last piece, and bin.
    let mut rooms: BTreeSet<(u64, Reverse<usize>, usize)> = BTreeSet::new();
    for (time, piece) in pieces.into_iter().enumerate() {
        let len = piece.end - piece.start;
        let least = (len, Reverse(usize::MAX), 0);
        let entry = rooms.range(least..).next().copied();
        let (room, bin) = match entry {
            Some(entry) => {
                rooms.remove(&entry);
                (entry.0, entry.2)
            }
            None => {
                bins.push(Vec::new());
                (context_length, bins.len() - 1)
            }
        };
        bins[bin].push(piece.start);
        if room > len {
            rooms.insert((room - len, Reverse(time), bin));
        }
    }
    bins.iter_mut().for_each(|bin| bin.sort_unstable());
    bins.sort_unstable_by_key(|bin| bin[0]);
    bins
}

/// Log-normal lengths, by the Box-Muller method.
fn log_normal() -> Vec<u32> {
    let mut numbers = SplitMix::new(SEED);
    let mut unit = || (numbers.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (0..NUM_DOCUMENTS)
        .map(|_| {
            let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * unit()).cos();
            (MEDIAN_TOKENS * (LOG_SPREAD * normal).exp()).max(1.0) as u32
        })
        .collect()
}

/// Lengths drawn from the document lengths of the corpora, EOD included.
fn of_corpora() -> Vec<u32> {
    let tokenizer = Tokenizer::builtin("gpt2").expect("it is built in");
    let mut num_tokens = token_counter(&tokenizer, EngineChoice::Auto);
    let mut lens = Vec::new();
    for name in Corpus::NAMES {
        for text in Corpus::load(name, CORPUS_BYTES).texts() {
            lens.push(num_tokens(text) as u32 + 1);
        }
    }
    let mut numbers = SplitMix::new(SEED);
    (0..NUM_DOCUMENTS)
        .map(|_| lens[numbers.below(lens.len() as u64) as usize])
        .collect()
}
