//! Items and batches of a dataset, compared with copying the same number of bytes in memory.
//!
//! Everything is in the page cache. The output arrays are allocated once, as in a training loop
//! that reuses its buffers, so that the bench measures gathering and not the zeroing of fresh
//! pages.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use packtok_benches::SplitMix;
use packtok_benches::pbin::write_random_documents;
use packtok_dataset::files::file_set::Files;
use packtok_dataset::files::manifest::{Entry, read_manifest, write_manifest};
use packtok_dataset::items::IdsMut;
use packtok_dataset::items::batch::{Batch, Filling, fill};
use packtok_dataset::items::items::{Items, Packing};
use packtok_dataset::items::token_stream::TokenStream;
use packtok_formats::OpenOptions;
use packtok_pbin::Replace;

const NUM_DOCUMENTS: u64 = 100_000;
const NUM_BATCHES: usize = 64;
const NUM_ROWS: usize = 64;
const CONTEXT_LENGTH: usize = 2048;
const NUM_FILES: usize = 10_000;
const SEED: u64 = 1;
const BLOCKS: Packing = Packing::Fixed {
    block_size: CONTEXT_LENGTH as u64 + 1,
    overlap: 1,
    by_file: false,
};
const FILLING: Filling = Filling {
    pad_token_id: 0,
    ignore_index: -100,
    aligned: false,
    segments: false,
    number_padding: false,
    loss_markers: None,
};

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let path = folder.path().join("documents.pbin");
    write_random_documents(&path, NUM_DOCUMENTS, SEED);
    let single = open(vec![path.clone()]);
    bench_batches(&mut criterion, &single);

    let entry = Entry::of(
        single
            .stream()
            .files()
            .token_file(0)
            .expect("it was opened"),
    );
    let manifest = folder.path().join("all.jsonl");
    let entries = vec![entry; NUM_FILES];
    write_manifest(&manifest, &entries, Replace::Never).expect("the manifest can be written");
    criterion.bench_function("gather/open 10,000 files by manifest", |bencher| {
        bencher.iter(|| listed(&manifest));
    });
    let many = listed(&manifest);
    bench_items(&mut criterion, &single, &many);
    criterion.final_summary();
}

/// Batches of 64 × 2048 in random order, as int64.
fn bench_batches(criterion: &mut Criterion, items: &Items) {
    let mut group = criterion.benchmark_group("gather/batches of 64 x 2048");
    let num_tokens = NUM_ROWS * CONTEXT_LENGTH;
    let mut numbers = SplitMix::new(SEED);
    let batches: Vec<Vec<(&Items, u64)>> = (0..NUM_BATCHES)
        .map(|_| {
            (0..NUM_ROWS)
                .map(|_| (items, numbers.below(items.len())))
                .collect()
        })
        .collect();
    let mut arrays = vec![0i64; 3 * num_tokens];
    check(&batches[0], &mut arrays);

    group.throughput(Throughput::Bytes((2 * num_tokens * 8) as u64));
    let source = vec![1i64; 2 * num_tokens];
    group.bench_function("memcpy of input_ids and labels", |bencher| {
        bencher.iter(|| arrays[..2 * num_tokens].copy_from_slice(&source));
    });
    bench_fill(
        &mut group,
        "input_ids, labels",
        &batches,
        |ids| {
            let (input_ids, labels) = ids.split_at_mut(num_tokens);
            (batch(input_ids, labels, None), false)
        },
        &mut arrays,
    );
    bench_fill(
        &mut group,
        "and position_ids, cu_seqlens",
        &batches,
        |ids| {
            let (input_ids, rest) = ids.split_at_mut(num_tokens);
            let (labels, position_ids) = rest.split_at_mut(num_tokens);
            (batch(input_ids, labels, Some(position_ids)), true)
        },
        &mut arrays,
    );
    group.finish();
}

fn bench_fill(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    batches: &[Vec<(&Items, u64)>],
    parts: impl Fn(&mut [i64]) -> (Batch<'_>, bool),
    arrays: &mut [i64],
) {
    let mut turn = (0..batches.len()).cycle();
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let rows = &batches[turn.next().unwrap_or(0)];
            let (mut batch, segments) = parts(arrays);
            let filling = Filling {
                segments,
                number_padding: false,
                loss_markers: None,
                ..FILLING
            };
            fill(rows, filling, &mut batch).expect("the items exist")
        });
    });
}

fn batch<'a>(
    input_ids: &'a mut [i64],
    labels: &'a mut [i64],
    position_ids: Option<&'a mut [i64]>,
) -> Batch<'a> {
    Batch {
        input_ids: IdsMut::I64(input_ids),
        labels: Some(IdsMut::I64(labels)),
        position_ids: position_ids.map(IdsMut::I64),
        document_ids: None,
        loss_mask: None,
    }
}

/// Checks the batch against a loop over documents.
fn check(rows: &[(&Items, u64)], arrays: &mut [i64]) {
    let num_tokens = NUM_ROWS * CONTEXT_LENGTH;
    let (input_ids, rest) = arrays.split_at_mut(num_tokens);
    let (labels, position_ids) = rest.split_at_mut(num_tokens);
    let filling = Filling {
        segments: true,
        number_padding: false,
        loss_markers: None,
        ..FILLING
    };
    let mut batch = batch(input_ids, labels, Some(position_ids));
    let segments = fill(rows, filling, &mut batch).expect("the items exist");
    let mut starts = Vec::new();
    for (row, &(items, item)) in rows.iter().enumerate() {
        let block = items.copied::<i64>(item).expect("the item exists");
        let place = row * CONTEXT_LENGTH..(row + 1) * CONTEXT_LENGTH;
        assert_eq!(input_ids[place.clone()], block[..CONTEXT_LENGTH]);
        assert_eq!(labels[place.clone()], block[1..]);
        let mut at = place.start;
        for part in items.locate(item).expect("the item exists") {
            if at < place.end {
                starts.push(at as i32);
            }
            for n in 0..part.tokens.end - part.tokens.start {
                if at < place.end {
                    assert_eq!(position_ids[at], n as i64);
                }
                at += 1;
            }
        }
    }
    starts.push(num_tokens as i32);
    assert_eq!(
        segments.expect("segments were requested").cu_seqlens,
        starts
    );
}

/// Single items as views, from one file and from 10,000 files.
fn bench_items(criterion: &mut Criterion, single: &Items, many: &Items) {
    let mut group = criterion.benchmark_group("gather/items as views");
    group.throughput(Throughput::Elements(NUM_FILES as u64));
    for (name, items) in [("1 file", single), ("10,000 files", many)] {
        let mut numbers = SplitMix::new(SEED);
        let order: Vec<u64> = (0..NUM_FILES).map(|_| numbers.below(items.len())).collect();
        let first = |i: &u64| {
            let view = items.one_piece(*i).expect("the item exists");
            view.map_or(0, |bytes| bytes.as_ptr() as usize ^ bytes.len())
        };
        group.bench_function(name, |bencher| {
            bencher.iter(|| order.iter().map(first).fold(0, |all, start| all ^ start));
        });
    }
    group.finish();
}

fn open(paths: Vec<PathBuf>) -> Items {
    let files = Files::open(&paths, false).expect("the files can be read");
    Items::new(TokenStream::new(files), BLOCKS).expect("there are blocks")
}

fn listed(manifest: &Path) -> Items {
    let entries = read_manifest(manifest).expect("the manifest can be read");
    let files =
        Files::listed(entries, &OpenOptions::default(), false).expect("the files are compatible");
    Items::new(TokenStream::new(files), BLOCKS).expect("there are blocks")
}
