//! Joined shards equal the file of one run, and joins verify and resume.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;

use packtok_corpus::OnBadDocument;
use packtok_corpus::RecordNumber;
use packtok_pack::Error;
use packtok_pack::pack::Existing;
use packtok_pack::shard::{JoinOptions, join, list};
use proptest::prelude::*;

use super::{Kind, PROCEED, Setting, bytes_of, kind, output_files, pack_one};
use crate::extent;
use crate::fixture::{byte_tokenizer, line, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(20, 6)))]

    #[test]
    fn joined_shards_are_the_file_of_one_run(
        files in prop::collection::vec((prop::collection::vec(line(), 0..20), kind()), 1..5),
        count in prop_oneof![Just(1u64), Just(2), Just(3), Just(7), 1u64..60],
    ) {
        let files: Vec<_> = files.iter().map(|(lines, kind)| bytes_of(lines, *kind)).collect();
        let setting = Setting::new(&files);
        run(&setting.options("one.pbin")).unwrap();
        setting.pack_all(count);
        let report = setting.join().unwrap();
        prop_assert_eq!(report.num_shards, count);
        prop_assert_eq!(
            output_files(&setting.path("joined.pbin")),
            output_files(&setting.path("one.pbin"))
        );
        // The existing output is verified, not written again, and the folder contains only shards.
        let again = setting.join_as("joined.pbin", Existing::Skip).unwrap();
        prop_assert!(again.skipped_existing);
        let rejects = fs::read_dir(setting.path("out")).unwrap().count() as u64 - 2 * count - 2;
        prop_assert!(rejects <= count);
        prop_assert_eq!(list(&setting.path("out"), None).unwrap().len() as u64, count);
    }

    #[test]
    fn the_error_has_the_line_number_in_the_complete_file(
        lines in prop::collection::vec("[a-z]{0,9}", 1..30),
        bad in any::<prop::sample::Index>(),
        count in 1u64..20,
    ) {
        let bad = bad.index(lines.len());
        let text = |(i, text): (usize, &String)| if i == bad { b"{\"text\": 1}".to_vec() } else { format!("{{\"text\": \"{text}\"}}").into_bytes() };
        let lines: Vec<_> = lines.iter().enumerate().map(text).collect();
        let setting = Setting::new(&[bytes_of(&lines, Kind::Plain)]);
        let mut options = setting.options("out");
        options.spec.on_bad_document = OnBadDocument::Fail;
        let failed: Vec<_> = (0..count).filter_map(|index| pack_one(&options, index, Some(count)).err()).collect();
        let [Error::BadDocument { location, .. }] = &failed[..] else {
            panic!("{failed:?}");
        };
        prop_assert_eq!(location.number, RecordNumber::Line(bad as u64 + 1));
    }
}

#[test]
fn more_shards_than_documents_and_than_bytes() {
    let setting = Setting::new(&[
        b"{\"text\": \"a\"}\n".to_vec(),
        Vec::new(),
        b"\n{\"text\": \"b\"}".to_vec(),
    ]);
    run(&setting.options("one.pbin")).unwrap();
    setting.pack_all(200);
    assert_eq!(setting.join().unwrap().documents, 2);
    assert_eq!(
        output_files(&setting.path("joined.pbin")),
        output_files(&setting.path("one.pbin"))
    );
}

#[test]
fn empty_files_are_listed_as_sources() {
    let setting = Setting::new(&[Vec::new(), Vec::new()]);
    run(&setting.options("one.pbin")).unwrap();
    setting.pack_all(3);
    assert_eq!(setting.join().unwrap().num_sources, 2);
    assert_eq!(
        output_files(&setting.path("joined.pbin")),
        output_files(&setting.path("one.pbin"))
    );
}

#[test]
fn many_more_shards_than_documents_are_one_file() {
    let setting = Setting::small();
    setting.pack_all(extent(1000, 100));
    setting.join().unwrap();
    run(&setting.options("expected.pbin")).unwrap();
    let read = |name| fs::read(setting.path(name)).unwrap();
    assert_eq!(read("joined.pbin"), read("expected.pbin"));
}

#[test]
fn joining_verifies_every_byte_of_a_shard() {
    let setting = Setting::small();
    setting.pack_all(2);
    let path = setting.path("out/shard-00001-of-00002.pbin");
    let original = fs::read(&path).unwrap();
    for place in (0..original.len()).step_by(13) {
        let mut damaged = original.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        assert!(setting.join().is_err(), "byte {place}");
        assert!(!setting.path("joined.pbin").exists());
    }
}

#[test]
fn an_existing_output_is_kept_verified_or_replaced() {
    let setting = Setting::small();
    setting.pack_all(2);
    let output = setting.path("joined.pbin");
    setting.join().unwrap();
    let original = fs::read(&output).unwrap();
    let exists = "joined.pbin: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace";
    assert_eq!(setting.message(setting.join()), exists);
    for place in (0..original.len()).step_by(13) {
        let mut damaged = original.clone();
        damaged[place] ^= 0x10;
        fs::write(&output, &damaged).unwrap();
        assert!(
            setting.join_as("joined.pbin", Existing::Skip).is_err(),
            "byte {place}"
        );
    }
    let mut other = setting.options("other.pbin");
    other.spec.recorded.truncate_to = Some(3);
    run(&other).unwrap();
    assert_eq!(
        setting.message(setting.join_as("other.pbin", Existing::Skip)),
        "other.pbin: the existing output differs from what this run would write: its counts.tokens is 80, expected 240; set --existing (existing) to replace, or choose another output"
    );
    setting.join_as("joined.pbin", Existing::Replace).unwrap();
    assert_eq!(fs::read(&output).unwrap(), original);
    assert_eq!(
        setting.message(setting.join_as("out/shard-00001-of-00002.pbin", Existing::Replace)),
        "out/shard-00001-of-00002.pbin: file is both input and output; choose another output"
    );
    assert_eq!(
        setting.message(setting.join_as("corpus", Existing::Replace)),
        "corpus: the output is a folder, not a file; choose another path"
    );
}

#[test]
fn a_stopped_join_resumes_after_the_shards_in_the_file() {
    let setting = Setting::small();
    setting.pack_all(4);
    setting.join_as("expected.pbin", Existing::Error).unwrap();
    let expected = fs::read(setting.path("expected.pbin")).unwrap();
    let options = JoinOptions {
        folder: setting.path("out"),
        output: setting.path("joined.pbin"),
        existing: Existing::Error,
        max_rejects: None,
    };
    let partial = setting.path("joined.pbin.partial");
    let mut most_resumed = 0;
    for num_calls in 0.. {
        let mut calls = 0;
        let stopped = join(&options, &mut |_| {
            calls += 1;
            if calls > num_calls {
                ControlFlow::Break(())
            } else {
                PROCEED
            }
        });
        let is_complete = stopped.is_ok();
        if !is_complete {
            assert!(!options.output.exists());
            // As after a power failure while the next shard was written.
            if let Ok(mut data) = fs::File::options().append(true).open(partial.join("data")) {
                data.write_all(b"torn").unwrap();
            }
            let mut resumed = 0;
            join(&options, &mut |progress| {
                resumed = resumed.max(progress.resumed_bytes);
                PROCEED
            })
            .unwrap();
            most_resumed = most_resumed.max(resumed);
        }
        assert_eq!(fs::read(&options.output).unwrap(), expected);
        assert!(!partial.exists());
        fs::remove_file(&options.output).unwrap();
        if is_complete {
            break;
        }
    }
    let three_shards: u64 = (0..3).map(|i| setting.shard_bytes(i, 4)).sum();
    assert!(most_resumed >= three_shards, "{most_resumed}");
}

#[test]
fn a_join_does_not_replace_an_unfinished_packing_run() {
    let setting = Setting::small();
    setting.pack_all(2);
    let mut calls = 0;
    let mut packing = setting.options("joined.pbin");
    packing.spec.span_bytes = 1;
    packing.spec.chunk_bytes = 16;
    let stopped = packtok_pack::pack::pack(&packing, &byte_tokenizer(), &mut |_| {
        calls += 1;
        if calls > 6 {
            ControlFlow::Break(())
        } else {
            PROCEED
        }
    });
    assert!(stopped.is_err());
    assert_eq!(
        setting.message(setting.join()),
        "joined.pbin.partial: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again"
    );
}
