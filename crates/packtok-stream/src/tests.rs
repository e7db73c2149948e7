//! Compares streams with simple reference versions, and resumes them at every sample.

use std::path::Path;
use std::sync::Arc;

use packtok_corpus::ForeignFiles;
use packtok_jobs::Shard;
use packtok_tokenizer::Tokenizer;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

const TOKENIZER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/support/stories_tokenizer.json"
);

/// The only object is the tokenizer.
struct OnlyTokenizer;

impl Objects for OnlyTokenizer {
    fn tokenizer(&self, _: usize) -> Result<Tokenizer> {
        Ok(Tokenizer::from_file(Path::new(TOKENIZER), None)?)
    }

    fn function(&self, _: usize) -> Result<Arc<dyn Function>> {
        unreachable!("no step calls a function")
    }

    fn samples(&self, _: usize, _: Option<Shard>) -> Result<Box<dyn Samples>> {
        unreachable!("no step reads samples of the caller")
    }

    fn files(&self, _: usize) -> ForeignFiles {
        unreachable!("all files are local")
    }
}

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

/// Steps, each of which reads from the one before.
fn spec(steps: &[Json]) -> Spec {
    let numbered = steps.iter().enumerate().map(|(number, step)| {
        let mut step = step.clone();
        step["from"] = number.checked_sub(1).into_iter().collect();
        step
    });
    Spec::from_json(&Json::from_iter(numbered).to_string()).unwrap()
}

fn start(steps: &[Json], num_threads: usize, state: Option<&StreamState>) -> Result<Stream> {
    let tick = Arc::new(|| Ok(()));
    Stream::new(&spec(steps), &OnlyTokenizer, num_threads, state, tick)
}

fn files(paths: &[String], num_active: usize, repeat: bool, shuffle_seed: Option<u64>) -> Json {
    let len_bytes = |path| std::fs::metadata(path).unwrap().len();
    json!({
        "op": "from_files",
        "inputs": paths,
        "bytes": paths.iter().map(len_bytes).collect::<Vec<_>>(),
        "zstd_window_log": 27,
        "text_column": "text",
        "num_active": num_active,
        "repeat": repeat,
        "shuffle_seed": shuffle_seed,
        "shuffles_documents": false,
        "on_bad_document": "fail",
        "max_document_bytes": 1 << 30,
        "num_files": paths.len(),
        "files": null,
    })
}

fn tokenize() -> Json {
    json!({
        "op": "tokenize",
        "object": 0,
        "drops_record": true,
        "form": "tensor",
        "add_special_tokens": true,
        "text_column": "text",
        "ensured": [null, 0],
        "max_document_bytes": 1 << 30,
        "tokenizer": "",
    })
}

/// A step that makes rows, with more arguments.
fn rows(op: &str, length: usize, drop_remainder: bool, more: Json) -> Json {
    let mut step = json!({
        "op": op,
        "chunk_length": length,
        "columns": ["input_ids"],
        "drop_remainder": drop_remainder,
        "fields": {},
    });
    let arguments = more.as_object().unwrap().clone();
    step.as_object_mut().unwrap().extend(arguments);
    step
}

fn pack(length: usize, discard_long: bool) -> Json {
    let more = json!({"strategy": "next_fit", "discard_long": discard_long});
    rows("pack_chunk", length, true, more)
}

fn shuffle(size: usize) -> Json {
    json!({"op": "shuffle", "buffer_size": size, "seed": 5})
}

fn take(count: u64) -> Json {
    json!({"op": "take", "max_count": count})
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
        other => panic!("expected ids, found {other:?}"),
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
        let stream = start(&[files(&paths, num_active, false, None)], 1, None).unwrap();
        assert_eq!(all(stream, name).join(" "), expected, "{num_active} active");
    }
}

#[test]
fn epochs_follow_each_other_without_mixing_and_an_empty_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[2, 1]);
    let repeat = |seed| files(&paths, 2, true, seed);
    let stream = start(&[repeat(None), take(7)], 1, None).unwrap();
    assert_eq!(all(stream, name).join(" "), "0.0 1.0 0.1 0.0 1.0 0.1 0.0");
    let stream = start(&[repeat(Some(3)), take(300)], 1, None).unwrap();
    let names = all(stream, name);
    for epoch in names.chunks(3) {
        let mut sorted = epoch.to_vec();
        sorted.sort();
        assert_eq!(sorted, ["0.0", "0.1", "1.0"]);
    }
    assert!(names.chunks(3).any(|epoch| epoch[0] == "1.0"));
    std::fs::write(folder.path().join("0.jsonl"), "\n").unwrap();
    let mut stream = start(&[files(&paths[..1], 2, true, None)], 1, None).unwrap();
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
    let stream = start(&[files(paths, 2, false, None), tokenize()], 1, None).unwrap();
    all(stream, ids)
}

#[test]
fn rows_equal_those_of_the_plain_version() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[50, 3, 60, 20]);
    let documents = documents(&paths);
    assert_eq!(documents.len(), 133);
    let rows_of = |step| {
        let steps = [files(&paths, 2, false, None), tokenize(), step];
        all(start(&steps, 2, None).unwrap(), ids)
    };
    let made = |op, length, drop_remainder| rows_of(rows(op, length, drop_remainder, json!({})));
    let stream = documents.concat();
    for length in [1, 7, 64, 10_000] {
        let chunks = |ids: &[u32]| ids.chunks(length).map(<[u32]>::to_vec).collect::<Vec<_>>();
        let complete = |rows: Vec<Vec<u32>>| {
            let is_complete = |row: &Vec<u32>| row.len() == length;
            rows.into_iter().filter(is_complete).collect::<Vec<_>>()
        };
        let each: Vec<Vec<u32>> = documents.iter().flat_map(|ids| chunks(ids)).collect();
        assert_eq!(made("concat_chunk", length, false), chunks(&stream));
        assert_eq!(
            made("concat_chunk", length, true),
            complete(chunks(&stream))
        );
        assert_eq!(made("chunk", length, false), each);
        assert_eq!(made("chunk", length, true), complete(each));
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
            assert_eq!(rows_of(pack(length, discard_long)), expected);
        }
    }
}

#[test]
fn a_shuffle_buffer_serves_every_sample_once_in_an_order_of_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_files(folder.path(), &[40, 30]);
    let expected = all(
        start(&[files(&paths, 2, false, None)], 1, None).unwrap(),
        name,
    );
    for size in [1, 2, 10, 1000] {
        let steps = [files(&paths, 2, false, None), shuffle(size)];
        let mut names = all(start(&steps, 1, None).unwrap(), name);
        assert_eq!(names, all(start(&steps, 1, None).unwrap(), name));
        assert_eq!(names == expected, size == 1);
        names.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        assert_eq!(names, sorted);
    }
}

/// A chain of steps after the files; each number selects a step.
fn chain(paths: &[String], num_active: usize, steps: &[u8]) -> Vec<Json> {
    let step = |step: &u8| match step {
        0 => rows("concat_chunk", 16, true, json!({})),
        1 => rows("chunk", 5, false, json!({})),
        2 => pack(24, false),
        3 => pack(12, true),
        4 => shuffle(20),
        5 => shuffle(3),
        6 => json!({"op": "stride", "interval": 3, "offset": 1}),
        7 => {
            let more = json!({"strategy": "best_fit", "window": 9});
            rows("pack_chunk", 20, true, more)
        }
        8 => json!({"op": "ends", "column": "input_ids", "ends": [null, 7], "always": true}),
        _ => take(90),
    };
    let documents = [files(paths, num_active, false, Some(1)), tokenize()];
    documents
        .into_iter()
        .chain(steps.iter().map(step))
        .collect()
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
        let chain = chain(&paths, num_active, &steps);
        let expected = all(start(&chain, threads[0], None).unwrap(), ids);
        let mut stream = start(&chain, threads[1], None).unwrap();
        let mut samples = Vec::new();
        // Every state resumes, including the states of a resumed stream.
        for (stop, &num_threads) in stops.iter().zip(&threads[1..]) {
            for _ in 0..*stop {
                samples.extend(stream.next_sample().unwrap().as_ref().map(ids));
            }
            let state = stream.state();
            stream = start(&chain, num_threads, Some(&state)).unwrap();
            prop_assert_eq!(stream.state().position.is_empty(), false);
        }
        samples.extend(all(stream, ids));
        prop_assert_eq!(samples, expected);
    }
}

/// The message about a specification that is not valid.
fn refusal(steps: Json) -> String {
    Spec::from_json(&steps.to_string()).unwrap_err().to_string()
}

#[test]
fn a_step_reads_from_steps_before_it_as_many_as_it_takes() {
    let reads = |from: &[usize]| json!({"op": "take", "max_count": 1, "from": from});
    let source = json!({"op": "from_pbin", "paths": [], "read_as": [null, null, null], "repeat": false,
        "fingerprint": "", "from": []});
    let wrong = |number: usize| {
        format!(
            "step {number} of the stream reads from a wrong number of steps, or from one that is not before it"
        )
    };
    assert_eq!(refusal(json!([])), wrong(0));
    assert_eq!(refusal(json!([reads(&[])])), wrong(0));
    assert_eq!(refusal(json!([reads(&[0])])), wrong(0));
    assert_eq!(refusal(json!([source, reads(&[1])])), wrong(1));
    assert_eq!(refusal(json!([source, source, reads(&[0, 1])])), wrong(2));
    assert_eq!(
        refusal(json!([source, {"op": "concat", "from": []}])),
        wrong(1)
    );
    assert_eq!(
        refusal(json!([source, {"op": "interleave", "weights": [1, 2], "from": [0]}])),
        "there are 2 weights for 1 streams; give one for each"
    );
    assert!(refusal(json!([{"op": "other", "from": []}])).starts_with("unknown variant `other`"));
}

#[test]
fn a_description_has_what_changes_the_samples_in_the_order_of_all_versions() {
    let paths = ["a.jsonl".to_owned()];
    let source = json!({
        "op": "from_files", "inputs": paths, "bytes": [9], "zstd_window_log": 27, "format": null,
        "text_column": "text", "num_active": 1, "repeat": true, "shuffle_seed": 42,
        "shuffles_documents": false, "on_bad_document": "skip", "max_document_bytes": 1 << 30,
        "num_files": 1, "files": [["a.jsonl", 9]],
    });
    let lanes = |division| {
        json!({
            "op": "distribute", "rank": 0, "num_ranks": 2, "num_lanes": 4, "may_be_short": true,
            "division": division,
        })
    };
    let batch = json!({"op": "batch", "global_batch_size": 4, "drop_last": false});
    let best_fit = json!({"strategy": "best_fit", "window": 9});
    let rows = rows("pack_chunk", 16, true, best_fit);
    let described = serde_json::to_string(&spec(&[
        source.clone(),
        tokenize(),
        rows,
        lanes("equal"),
        batch,
    ]));
    assert_eq!(
        described.unwrap(),
        concat!(
            r#"[{"op":"from_files","format":null,"text_column":"text","num_active":1,"repeat":true,"#,
            r#""shuffle_seed":42,"shuffles_documents":false,"on_bad_document":"skip","#,
            r#""max_document_bytes":1073741824,"num_files":1,"files":[["a.jsonl",9]]},"#,
            r#"{"op":"tokenize","add_special_tokens":true,"truncate_to":null,"text_column":"text","#,
            r#""mask_column":null,"ensured":[null,0],"max_document_bytes":1073741824,"tokenizer":""},"#,
            r#"{"op":"pack_chunk","chunk_length":16,"columns":["input_ids"],"drop_remainder":true,"#,
            r#""fields":{"labels":null,"position_ids":false,"document_ids":false,"loss_mask":false,"#,
            r#""cu_seqlens":false},"strategy":"best_fit","window":9},"#,
            r#"{"op":"distribute","num_lanes":4,"may_be_short":true,"division":"equal"},"#,
            r#"{"op":"batch","drop_last":false,"collate_fn":null,"global_batch_size":4}]"#,
        )
    );
    let old = serde_json::to_value(spec(&[source, lanes("by_first_byte")])).unwrap();
    assert_eq!(
        old[1],
        json!({"op": "distribute", "num_lanes": 4, "may_be_short": true})
    );
}
