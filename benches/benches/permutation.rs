//! Shuffled items per second, compared with a list shuffled in memory and with single-item access.
//!
//! The list corresponds to `torch.randperm`: it is built completely before the first item is
//! served, and needs the memory that the permutation saves.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::num::NonZeroU64;

use criterion::{BatchSize, Criterion, Throughput};
use packtok_benches::SplitMix;
use packtok_dataset::order::permutation::Permutation;

/// Number of items per call, as in the sampler.
const CHUNK_ITEMS: u64 = 4096;
const SEED: u64 = 1;
const RANKS: u64 = 8;

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    for log in [10, 20, 24] {
        against_a_list(&mut criterion, 1 << log);
    }
    strides(&mut criterion);
    criterion.final_summary();
}

/// A complete epoch of `len` items.
fn against_a_list(criterion: &mut Criterion, len: u64) {
    assert_eq!(sorted(&epoch_of(len)), sorted(&shuffled_list(len)));
    let mut group = criterion.benchmark_group(format!("permutation/{len}"));
    group.throughput(Throughput::Elements(len));
    group.bench_function("packtok", |bencher| bencher.iter(|| sum_of_epoch(len)));
    group.bench_function("list", |bencher| {
        bencher.iter_batched(
            || (),
            |()| shuffled_list(len).iter().sum::<u64>(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// The items of one of several ranks among a billion, in chunks and one by one.
fn strides(criterion: &mut Criterion) {
    let permutation = Permutation::new(positive(1_000_000_007), SEED, 0);
    let chunk = || {
        let mut out = vec![0; CHUNK_ITEMS as usize];
        permutation.fill(3, RANKS, black_box(&mut out));
        out
    };
    let one_by_one = || -> Vec<u64> {
        (0..CHUNK_ITEMS)
            .map(|i| permutation.at(black_box(3 + i * RANKS)))
            .collect()
    };
    assert_eq!(chunk(), one_by_one());
    let mut group = criterion.benchmark_group("permutation/billion");
    group.throughput(Throughput::Elements(CHUNK_ITEMS));
    group.bench_function("packtok", |bencher| bencher.iter(chunk));
    group.bench_function("one by one", |bencher| bencher.iter(one_by_one));
    group.finish();
}

fn epoch_of(len: u64) -> Vec<u64> {
    let mut out = vec![0; len as usize];
    Permutation::new(positive(len), SEED, 0).fill(0, 1, &mut out);
    out
}

/// The epoch in chunks, as it is served, without a buffer of its length.
fn sum_of_epoch(len: u64) -> u64 {
    let permutation = Permutation::new(positive(len), SEED, 0);
    let mut out = vec![0; CHUNK_ITEMS.min(len) as usize];
    let mut sum = 0;
    for start in (0..len).step_by(out.len()) {
        permutation.fill(start, 1, &mut out);
        sum += out.iter().sum::<u64>();
    }
    sum
}

/// Fisher-Yates over a list.
fn shuffled_list(len: u64) -> Vec<u64> {
    let mut numbers = SplitMix::new(SEED);
    let mut list: Vec<u64> = (0..len).collect();
    for last in (1..list.len()).rev() {
        list.swap(last, numbers.below(last as u64 + 1) as usize);
    }
    list
}

fn sorted(numbers: &[u64]) -> Vec<u64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers
}

fn positive(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("lengths of the bench are positive")
}
