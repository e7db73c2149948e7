//! Compares streams with simple reference versions, and resumes them at every sample.

use std::path::Path;
use std::sync::Arc;

use packtok_corpus::OnBadDocument;
use packtok_corpus::{ReadOptions, Selection, expand};
use packtok_tokenizer::{EncodeOptions, Tokenizer};
use proptest::prelude::*;

use super::*;

const TOKENIZER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/support/stories_tokenizer.json"
);

/// Files with these numbers of samples, whose texts are `file.index`.
fn write_files(folder: &Path, lengths: &[usize]) -> Vec<String> {
    let write = |(file, &len): (usize, &usize)| {
        let line = |i| format!("{{\"text\": \"{file}.{i}{}\"}}\n", " word".repeat(i % 7));
        let lines: String = (0..len).map(line).collect();
        let path = folder.join(format!("{file}.jsonl"));
        std::fs::write(&path, lines).unwrap();
        path.to_str().unwrap().to_owned()
    };
    lengths.iter().enumerate().map(write).collect()
}

fn start(recipe: Recipe, num_threads: usize, state: Option<&StreamState>) -> Result<Stream> {
    Stream::new(recipe, num_threads, state, Arc::new(|| Ok(())))
}

fn files(paths: &[String], ring: RingOptions) -> Recipe {
    Recipe::Files {
        sources: expand(paths, &Selection::default()).unwrap().sources.into(),
        read: ReadOptions::for_json_lines(1 << 30),
        ring,
    }
}

fn ring(num_active: usize) -> RingOptions {
    RingOptions {
        num_active,
        repeat: false,
        shuffle_seed: None,
        text_column: "text".into(),
        on_bad_document: OnBadDocument::Fail,
    }
}

fn tokenize(recipe: Recipe) -> Recipe {
    let options = TokenizeOptions {
        tokenizer: Tokenizer::from_file(Path::new(TOKENIZER), None).unwrap(),
        encode: EncodeOptions::default(),
        text_column: "text".into(),
        ids_column: "input_ids".into(),
        mask_column: None,
        ensured: (None, Some(0)),
        max_document_bytes: 1 << 30,
        drops_record: true,
        form: TokenForm::Tensor,
    };
    let work = Work::new(WorkKind::Tokenize(Arc::new(options)));
    Recipe::Step(Box::new(recipe), Step::Work(work))
}

fn rows(recipe: Recipe, of: RowsOf, length: usize, drop_remainder: bool) -> Recipe {
    let options = RowOptions {
        of,
        length,
        columns: vec!["input_ids".into()],
        drop_remainder,
        fields: RowFields::default(),
    };
    Recipe::Step(Box::new(recipe), Step::Rows(options))
}

fn shuffle(recipe: Recipe, size: usize) -> Recipe {
    Recipe::Step(Box::new(recipe), Step::Shuffle { size, seed: 5 })
}

/// The text of the record of a sample, up to the first space.
fn name(sample: &Sample) -> String {
    let Some(SourceRecord::JsonLine(line)) = &sample.record else {
        panic!("expected a line");
    };
    let line = std::str::from_utf8(line).unwrap();
    let text = line.split('"').nth(3).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

fn ids(sample: &Sample) -> Vec<u32> {
    match sample.column("input_ids") {
        Some(Value::Ids(ids)) => ids.clone(),
        found => panic!("expected ids, found {found:?}"),
    }
}

fn all<T>(mut stream: Stream, of: impl Fn(&Sample) -> T) -> Vec<T> {
    std::iter::from_fn(|| stream.next_sample().unwrap().map(|sample| of(&sample))).collect()
}

#[test]
fn the_ring_reads_in_the_order_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[5, 3, 6, 2]);
    for (num_active, expected) in [
        (
            2,
            "0.0 1.0 0.1 1.1 0.2 1.2 0.3 0.4 2.0 2.1 3.0 2.2 3.1 2.3 2.4 2.5",
        ),
        (
            4,
            "0.0 1.0 2.0 3.0 0.1 1.1 2.1 3.1 0.2 1.2 2.2 0.3 2.3 0.4 2.4 2.5",
        ),
        (
            9,
            "0.0 1.0 2.0 3.0 0.1 1.1 2.1 3.1 0.2 1.2 2.2 0.3 2.3 0.4 2.4 2.5",
        ),
    ] {
        let stream = start(files(&paths, ring(num_active)), 1, None).unwrap();
        assert_eq!(all(stream, name).join(" "), expected, "{num_active} active");
    }
}

#[test]
fn epochs_follow_each_other_without_mixing_and_an_empty_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[2, 1]);
    let repeat = |seed| RingOptions {
        repeat: true,
        shuffle_seed: seed,
        ..ring(2)
    };
    let take = |recipe, n| Recipe::Step(Box::new(recipe), Step::Count(Counting::Take(n)));
    let stream = start(take(files(&paths, repeat(None)), 7), 1, None).unwrap();
    assert_eq!(all(stream, name).join(" "), "0.0 1.0 0.1 0.0 1.0 0.1 0.0");
    let stream = start(take(files(&paths, repeat(Some(3))), 300), 1, None).unwrap();
    let names = all(stream, name);
    for epoch in names.chunks(3) {
        let mut sorted = epoch.to_vec();
        sorted.sort();
        assert_eq!(sorted, ["0.0", "0.1", "1.0"]);
    }
    assert!(names.chunks(3).any(|epoch| epoch[0] == "1.0"));
    std::fs::write(folder.path().join("0.jsonl"), "\n").unwrap();
    let mut stream = start(files(&paths[..1], repeat(None)), 1, None).unwrap();
    assert!(stream.next_sample().is_err());
    assert!(
        stream
            .next_sample()
            .unwrap_err()
            .to_string()
            .contains("before: an epoch has no sample")
    );
}

/// All ids of the documents in the order of the ring, with their lengths.
fn documents(paths: &[String]) -> Vec<Vec<u32>> {
    let stream = start(tokenize(files(paths, ring(2))), 1, None).unwrap();
    all(stream, ids)
}

#[test]
fn rows_equal_those_of_the_plain_version() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[50, 3, 60, 20]);
    let documents = documents(&paths);
    assert_eq!(documents.len(), 133);
    let found = |of, length, drop_remainder| {
        let recipe = rows(tokenize(files(&paths, ring(2))), of, length, drop_remainder);
        all(start(recipe, 2, None).unwrap(), ids)
    };
    let stream = documents.concat();
    for length in [1, 7, 64, 10_000] {
        let chunks = |ids: &[u32]| ids.chunks(length).map(<[u32]>::to_vec).collect::<Vec<_>>();
        let complete = |rows: Vec<Vec<u32>>| {
            let is_complete = |row: &Vec<u32>| row.len() == length;
            rows.into_iter().filter(is_complete).collect::<Vec<_>>()
        };
        let each: Vec<Vec<u32>> = documents.iter().flat_map(|ids| chunks(ids)).collect();
        assert_eq!(found(RowsOf::Concat, length, false), chunks(&stream));
        assert_eq!(
            found(RowsOf::Concat, length, true),
            complete(chunks(&stream))
        );
        assert_eq!(found(RowsOf::Document, length, false), each);
        assert_eq!(found(RowsOf::Document, length, true), complete(each));
        for discard_long in [true, false] {
            let mut expected: Vec<Vec<u32>> = Vec::new();
            let mut open: Vec<u32> = Vec::new();
            for document in &documents {
                let mut document = document.clone();
                if document.len() > length {
                    if discard_long {
                        continue;
                    }
                    document.truncate(length);
                }
                if open.len() + document.len() > length {
                    expected.push(std::mem::take(&mut open));
                }
                open.extend(document);
            }
            expected.push(open);
            expected.retain(|row| !row.is_empty());
            assert_eq!(
                found(RowsOf::Whole { discard_long }, length, true),
                expected
            );
        }
    }
}

#[test]
fn a_shuffle_buffer_serves_every_sample_once_in_an_order_of_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[40, 30]);
    let expected = all(start(files(&paths, ring(2)), 1, None).unwrap(), name);
    for size in [1, 2, 10, 1000] {
        let recipe = || shuffle(files(&paths, ring(2)), size);
        let mut names = all(start(recipe(), 1, None).unwrap(), name);
        assert_eq!(names, all(start(recipe(), 1, None).unwrap(), name));
        assert_eq!(names == expected, size == 1);
        names.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        assert_eq!(names, sorted);
    }
}

/// A chain of steps after the files; each number selects one.
fn chain(paths: &[String], num_active: usize, steps: &[u8]) -> Recipe {
    let options = RingOptions {
        shuffle_seed: Some(1),
        ..ring(num_active)
    };
    let mut recipe = tokenize(files(paths, options));
    for &step in steps {
        recipe = match step {
            0 => rows(recipe, RowsOf::Concat, 16, true),
            1 => rows(recipe, RowsOf::Document, 5, false),
            2 => rows(
                recipe,
                RowsOf::Whole {
                    discard_long: false,
                },
                24,
                true,
            ),
            3 => rows(recipe, RowsOf::Whole { discard_long: true }, 12, true),
            4 => shuffle(recipe, 20),
            5 => shuffle(recipe, 3),
            6 => {
                let counting = Counting::Stride {
                    interval: 3,
                    offset: 1,
                };
                Recipe::Step(Box::new(recipe), Step::Count(counting))
            }
            7 => {
                let Recipe::Step(_, Step::Rows(options)) =
                    rows(files(paths, ring(1)), RowsOf::Concat, 20, true)
                else {
                    unreachable!("rows are a step");
                };
                let of = RowsOf::Whole {
                    discard_long: false,
                };
                let options = RowOptions { of, ..options };
                Recipe::Step(Box::new(recipe), Step::Fit { options, window: 9 })
            }
            8 => Recipe::Step(
                Box::new(recipe),
                Step::Each(Change::Ends {
                    column: "input_ids".into(),
                    mask_column: "attention_mask".into(),
                    ends: (None, Some(7)),
                    always: true,
                }),
            ),
            _ => Recipe::Step(Box::new(recipe), Step::Count(Counting::Take(90))),
        };
    }
    recipe
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_stream_resumes_at_every_sample(
        lengths in prop::collection::vec(0usize..60, 1..5),
        num_active in 1usize..4,
        steps in prop::collection::vec(0u8..10, 0..5),
        threads in prop::collection::vec(1usize..4, 3),
        stops in prop::collection::vec(0usize..150, 2),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let paths = write_files(folder.path(), &lengths);
        let recipe = || chain(&paths, num_active, &steps);
        let expected = all(start(recipe(), threads[0], None).unwrap(), ids);
        let mut stream = start(recipe(), threads[1], None).unwrap();
        let mut found = Vec::new();
        // Every state resumes, including the states of a resumed stream.
        for (stop, &num_threads) in stops.iter().zip(&threads[1..]) {
            for _ in 0..*stop {
                found.extend(stream.next_sample().unwrap().as_ref().map(ids));
            }
            let state = stream.state();
            stream = start(recipe(), num_threads, Some(&state)).unwrap();
            prop_assert_eq!(stream.state().position.is_empty(), false);
        }
        found.extend(all(stream, ids));
        prop_assert_eq!(found, expected);
    }
}
