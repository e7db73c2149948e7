//! Compares the generators with values of CPython 3.11.7 and NumPy 2.4.6, and shuffling through
//! buckets with a shuffle in memory and a naive shuffle.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use packtok_pack::pack::Existing;
use packtok_pbin::{
    ChunkInfo, Counts, Metadata, Origin, Reader, Replace, ShuffleGenerator, Source, TokenWidth,
    Writer,
};
use proptest::prelude::*;

use super::order::{Shuffle, inverted};
use super::{Budget, Seed, ShuffleOptions, chunk, shuffle_lines, shuffle_pbins};

fn order(generator: ShuffleGenerator, seed: &str, len: u32) -> Vec<u32> {
    let seed = Seed::from_hex(seed).unwrap();
    Shuffle { generator, seed }
        .order(len, &mut || Ok(()))
        .unwrap()
}

#[test]
fn orders_of_python_are_those_of_cpython() {
    let golden = [
        ("0", [1, 9, 8, 5, 10, 2, 3, 7, 4, 0, 11, 6]),
        ("1", [7, 11, 0, 8, 5, 6, 3, 10, 4, 1, 9, 2]),
        ("2a", [7, 5, 2, 8, 9, 6, 11, 3, 4, 0, 1, 10]),
        ("ffffffff", [0, 6, 1, 5, 8, 2, 7, 4, 11, 3, 9, 10]),
        ("100000000", [11, 10, 7, 3, 9, 2, 4, 8, 0, 6, 5, 1]),
        ("10000000000000005", [3, 4, 10, 6, 2, 0, 7, 5, 1, 11, 9, 8]),
        (
            "9f4f2726179a224501d762422c946590d91000000000000000",
            [4, 6, 5, 11, 1, 10, 3, 9, 2, 7, 8, 0],
        ),
    ];
    for (seed, expected) in golden {
        assert_eq!(
            order(ShuffleGenerator::Python, seed, 12),
            expected,
            "seed {seed}"
        );
    }
    let long = order(ShuffleGenerator::Python, "7", 100_000);
    assert_eq!(long[..6], [26567, 77215, 84363, 16229, 78976, 54897]);
    assert_eq!(long[99_994..], [9494, 6328, 85319, 51750, 19772, 42445]);
}

#[test]
fn orders_of_numpy_are_those_of_numpy() {
    let golden = [
        ("0", [9, 2, 7, 4, 5, 11, 0, 3, 6, 10, 8, 1]),
        ("1", [8, 11, 4, 7, 5, 0, 1, 9, 2, 10, 6, 3]),
        ("2a", [0, 7, 6, 9, 11, 3, 5, 2, 4, 10, 1, 8]),
        ("fffffffe", [3, 1, 0, 6, 5, 4, 7, 10, 2, 11, 8, 9]),
        ("100000000", [0, 7, 1, 11, 3, 10, 4, 6, 9, 8, 2, 5]),
        ("10000000000000005", [0, 2, 10, 6, 5, 9, 11, 4, 8, 3, 7, 1]),
        (
            "9f4f2726179a224501d762422c946590d91000000000000000",
            [0, 11, 2, 9, 8, 4, 6, 10, 5, 3, 1, 7],
        ),
    ];
    for (seed, expected) in golden {
        assert_eq!(
            order(ShuffleGenerator::Numpy, seed, 12),
            expected,
            "seed {seed}"
        );
    }
    let long = order(ShuffleGenerator::Numpy, "7", 100_000);
    assert_eq!(long[..6], [45070, 71435, 99538, 45453, 95412, 41945]);
    assert_eq!(long[99_994..], [10050, 87647, 63842, 27285, 16809, 84619]);
}

#[test]
fn seeds_of_chunks_are_those_of_modalities() {
    let golden = [
        ("1", 0, 1_053_073_905),
        ("1", 2, 1_314_866_181),
        ("2", 1, 1_314_866_181),
        ("-5", 7, 3_737_476_102),
        ("1000000000000000000000000000000", 3, 2_041_931_625),
    ];
    for (global_seed, chunk_id, expected) in golden {
        assert_eq!(Seed::of_chunk(global_seed, chunk_id), Seed::from(expected));
    }
}

#[test]
fn seeds_are_shown_in_decimal_up_to_64_bits() {
    let decimal = |hex: &str| Seed::from_hex(hex).unwrap().to_string();
    assert_eq!(decimal("002a"), "42");
    assert_eq!(decimal("ffffffffffffffff"), "18446744073709551615");
    assert_eq!(decimal("10000000000000005"), "0x10000000000000005");
    assert_eq!(Seed::from_hex("0x1"), None);
    assert_eq!(Seed::from_hex(""), None);
}

#[test]
fn orders_of_packtok_are_permutations_by_seed() {
    for len in [0, 1, 2, 1000, 70_000] {
        let shuffled = order(ShuffleGenerator::Packtok, "5", len);
        let mut sorted = shuffled.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..len));
        assert_eq!(shuffled, order(ShuffleGenerator::Packtok, "5", len));
    }
    assert_ne!(
        order(ShuffleGenerator::Packtok, "5", 1000),
        order(ShuffleGenerator::Packtok, "6", 1000)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn both_inversions_invert(len in 0u32..500, seed in any::<u64>()) {
        let order = order(ShuffleGenerator::Packtok, &format!("{seed:x}"), len);
        let positions = inverted(order.clone());
        for (position, &document) in (0..).zip(&order) {
            prop_assert_eq!(positions[document as usize], position);
        }
        prop_assert_eq!(super::order::inverted_in_place(order), positions);
    }

    #[test]
    fn chunks_divide_a_file_as_modalities_does(len in 0u64..200, count in 1u64..50) {
        let mut next = 0;
        for index in 0..count {
            let range = chunk::documents(ChunkInfo { index, count }, len);
            let longest = len.div_ceil(count);
            let num_full = if len % count == 0 { count } else { len % count };
            let start = longest * num_full.min(index)
                + index.saturating_sub(num_full) * longest.saturating_sub(1);
            prop_assert_eq!(range.start, start);
            prop_assert_eq!(range.start, next);
            next = range.end;
        }
        prop_assert_eq!(next, len);
    }
}

const TINY: Budget = Budget {
    in_memory_bytes: 0,
    bucket_bytes: 200,
    buffer_bytes: 1 << 20,
    inline_bytes: 60,
};
/// As [`TINY`], with buckets of a few blocks on disk.
const BLOCKS: Budget = Budget {
    in_memory_bytes: 0,
    bucket_bytes: 12 << 10,
    buffer_bytes: 0,
    inline_bytes: 5000,
};

fn options(inputs: &[&Path], output: &Path, seed: u64, budget: Budget) -> ShuffleOptions {
    ShuffleOptions {
        inputs: inputs.iter().map(|&path| path.to_owned()).collect(),
        output: output.to_owned(),
        existing: Existing::Error,
        shuffle: Shuffle {
            generator: ShuffleGenerator::Python,
            seed: Seed::from(seed),
        },
        is_seed_given: true,
        chunk: None,
        budget,
    }
}

fn write_pbin(path: &Path, documents: &[Vec<u8>], has_origins: bool) {
    let mut writer = Writer::create(path, TokenWidth::U8, has_origins).unwrap();
    for (offset, document) in (0..).zip(documents) {
        writer.append(document, &[document.len() as u64]).unwrap();
        writer
            .push_origins([Origin {
                source: offset % 2,
                offset,
            }])
            .unwrap();
    }
    let metadata = Metadata {
        counts: Counts {
            documents: documents.len() as u64,
            tokens: documents.iter().map(|document| document.len() as u64).sum(),
            ..Counts::default()
        },
        ..Metadata::default()
    };
    let source = |path: &str| Source {
        path: path.to_owned(),
        bytes: 1,
        crc32c: None,
        format: None,
        input: None,
    };
    let sources = [source("a"), source("b")];
    writer
        .finish(&metadata, &sources)
        .unwrap()
        .publish(Replace::Never)
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn pbins_through_buckets_equal_those_in_memory_and_naive_ones(
        lens in prop::collection::vec(prop_oneof![4 => 0usize..30, 1 => 0usize..6000], 0..80),
        cut in 0usize..80, has_origins: bool, seed: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let documents: Vec<Vec<u8>> = lens
            .iter()
            .enumerate()
            .map(|(i, &len)| vec![i as u8; len])
            .collect();
        let (first, second) = documents.split_at(cut.min(documents.len()));
        let inputs = [folder.path().join("a.pbin"), folder.path().join("b.pbin")];
        write_pbin(&inputs[0], first, has_origins);
        write_pbin(&inputs[1], second, has_origins);
        let inputs = [&*inputs[0], &*inputs[1]];
        let mut written = Vec::new();
        for (name, budget) in [("memory", Budget::default()), ("disk", TINY), ("blocks", BLOCKS)] {
            let output = folder.path().join(name);
            let options = options(&inputs, &output, seed, budget);
            shuffle_pbins(&options, &mut |_| ControlFlow::Continue(())).unwrap();
            written.push(fs::read(&output).unwrap());
            let reader = Reader::open(&output).unwrap();
            reader.verify(&mut |_| ControlFlow::Continue(())).unwrap();
            let order = options.shuffle.order(documents.len() as u32, &mut || Ok(())).unwrap();
            for (i, &document) in (0..).zip(&order) {
                prop_assert_eq!(reader.document(i).unwrap(), &*documents[document as usize]);
                let (in_file, first_source) = match document as usize {
                    document if document < first.len() => (document, 0),
                    document => (document - first.len(), 2),
                };
                let offset = in_file as u64;
                let expected = Origin { source: first_source + offset % 2, offset };
                prop_assert_eq!(reader.origin(i).unwrap(), has_origins.then_some(expected));
            }
        }
        prop_assert_eq!(&written[0], &written[1]);
        prop_assert_eq!(&written[0], &written[2]);
    }

    #[test]
    fn lines_through_buckets_equal_those_in_memory_and_naive_ones(
        lens in prop::collection::vec(prop_oneof![4 => 0usize..30, 1 => 0usize..6000], 0..80),
        is_ended: bool, seed: u64, chunk in prop::option::of((0u64..3, 3u64..5)),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<Vec<u8>> = lens
            .iter()
            .enumerate()
            .map(|(i, &len)| [&vec![b'!' + (i % 90) as u8; len][..], b"\n"].concat())
            .collect();
        let mut content = lines.concat();
        // Only a last line with content can lack its line end. A blank line without a line end
        // would not exist.
        if !is_ended && lens.last().is_some_and(|&len| len > 0) {
            content.pop();
        }
        let input = folder.path().join("a.jsonl");
        fs::write(&input, &content).unwrap();
        let chunk = chunk.map(|(index, count)| ChunkInfo { index, count });
        let used = match chunk {
            Some(chunk) => chunk::documents(chunk, lines.len() as u64),
            None => 0..lines.len() as u64,
        };
        // Twice the same file: its last line is in the middle.
        let used = &lines[used.start as usize..used.end as usize];
        let expected = [used, used].concat();
        for (name, budget) in [("memory", Budget::default()), ("disk", TINY), ("blocks", BLOCKS)] {
            let output = folder.path().join(name);
            let mut options = options(&[&input, &input], &output, seed, budget);
            options.chunk = chunk;
            let result = shuffle_lines(&options, &mut |_| ControlFlow::Continue(()));
            if chunk.is_some() && used.is_empty() {
                prop_assert!(result.is_err());
                continue;
            }
            result.unwrap();
            let order = options.shuffle.order(expected.len() as u32, &mut || Ok(())).unwrap();
            let naive: Vec<u8> = order.iter().flat_map(|&line| expected[line as usize].clone()).collect();
            prop_assert_eq!(fs::read(&output).unwrap(), naive);
        }
    }
}
