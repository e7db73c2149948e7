//! Runs that were killed, interrupted or stopped, and are then started again.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use packtok_corpus::OnBadDocument;
use packtok_corpus::field::Field;
use packtok_pack::Error;
use packtok_pack::pack::{Existing, PackOptions, pack};
use packtok_pack::pbin::{crash, write_pairs};
use packtok_pack::shard::{Choice, JoinOptions, join, pack_shard};
use proptest::prelude::*;

use crate::fixture::{byte_tokenizer, line, options, run};

/// The variable with the folder for a child process of these tests.
const FOLDER: &str = "PACKTOK_TEST_FOLDER";
/// The variable with the filter for a child process, instead of `.text`.
const FIELD: &str = "PACKTOK_TEST_FIELD";

/// Long enough that every source has several spans.
const NUM_LINES: usize = 400;

/// Uncompressed files, a compressed one and an empty one, with lines of every kind.
fn write_sources(folder: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let lines = |seed: usize| -> Vec<u8> {
        let line = |i: usize| match (seed + i) % 7 {
            0 => "{\"text\": \"\"}".to_owned(),
            1 => "{broken".to_owned(),
            2 => String::new(),
            3 => "x".repeat(900),
            kind => format!(
                "{{\"text\": \"document {seed} {i} {}\"}}",
                "é".repeat(3 * kind)
            ),
        };
        (0..NUM_LINES)
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
            .into_bytes()
    };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&lines(1)).unwrap();
    let files = [
        ("part0.jsonl", lines(0)),
        ("part1.jsonl.gz", gzip.finish().unwrap()),
        ("part2.jsonl", Vec::new()),
        ("part3.jsonl", lines(3)),
    ];
    files
        .map(|(name, text)| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        })
        .into()
}

fn resumable(folder: &Path) -> PackOptions {
    let inputs = write_sources(&folder.join("corpus"));
    let mut options = options(&inputs, &folder.join("out.pbin"), 2, 500);
    options.spec.span_bytes = 3000;
    options
}

/// The files in a folder and their content, without the corpus.
fn files_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.is_file()
                || path
                    .extension()
                    .is_some_and(|extension| extension == "partial")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}

/// The files of a run without interruptions.
fn uninterrupted(change: impl Fn(&mut PackOptions)) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = resumable(folder.path());
    change(&mut options);
    run(&options).unwrap();
    files_in(folder.path())
}

/// Not a test: runs in a child process, which is killed.
#[test]
#[ignore = "is run by other tests"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut options = resumable(Path::new(&folder));
    if let Ok(pattern) = std::env::var(FIELD) {
        options.fields = Field::compile(&pattern).unwrap().into();
    }
    run(&options).unwrap();
}

/// Runs [`child`] in a process of its own.
fn run_child(folder: &Path, variables: &[(&str, &str)]) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["resumed::child", "--exact", "--ignored", "--quiet"])
        .env(FOLDER, folder)
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

/// Packs in a child process that aborts when it passes a crash point for the n-th time; returns
/// whether it aborted.
fn killed_at(place: &str, times: u32, folder: &Path) -> bool {
    let crash_point = format!("{place}:{times}");
    !run_child(folder, &[(crash::VARIABLE, &crash_point)]).success()
}

/// Leaves the files of a process that was killed after it recorded three spans without any packed
/// document.
fn leave_nothing_packed(folder: &Path) {
    let variables = [(FIELD, ".none"), (crash::VARIABLE, "span noted:3")];
    assert!(!run_child(folder, &variables).success());
    let journal = fs::read_to_string(folder.join("out.pbin.partial/journal")).unwrap();
    assert!(journal.lines().count() > 1);
}

#[test]
fn a_leftover_without_documents_is_discarded_by_a_run_with_other_options() {
    let expected = uninterrupted(|_| ());
    let folder = tempfile::TempDir::new().unwrap();
    leave_nothing_packed(folder.path());
    run(&resumable(folder.path())).unwrap();
    assert!(files_in(folder.path()) == expected);
    // A run that has only started does not interfere either.
    let folder = tempfile::TempDir::new().unwrap();
    assert!(killed_at("journal begun", 0, folder.path()));
    let mut other = resumable(folder.path());
    other.spec.recorded.max_documents = Some(3);
    assert_eq!(run(&other).unwrap().documents, 3);
}

#[test]
fn a_leftover_without_documents_is_discarded_by_a_join() {
    let folder = tempfile::TempDir::new().unwrap();
    leave_nothing_packed(folder.path());
    let shards = folder.path().join("shards");
    let mut options = resumable(folder.path());
    options.spec.output.clone_from(&shards);
    let choice = Choice {
        index: 0,
        count: Some(1),
        default_count: None,
    };
    let tokenizer = byte_tokenizer();
    let packed = pack_shard(&options, &tokenizer, choice, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let join_options = JoinOptions {
        folder: shards,
        output: folder.path().join("out.pbin"),
        existing: Existing::Error,
        max_rejects: None,
    };
    let joined = join(&join_options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(joined.documents, packed.documents);
    assert!(!folder.path().join("out.pbin.partial").exists());
}

#[test]
fn a_run_killed_anywhere_resumes_to_the_same_files() {
    let expected = uninterrupted(|_| ());
    for place in [
        "journal opened",
        "journal begun",
        "span flushed",
        "span noted",
        "index written",
        "file synced",
        "file renamed",
        "rejects published",
        "tokenizer published",
        "pbin published",
        "journal removed",
    ] {
        let mut num_kills = 0;
        loop {
            let folder = tempfile::TempDir::new().unwrap();
            if !killed_at(place, num_kills, folder.path()) {
                break;
            }
            num_kills += 1;
            let mut options = resumable(folder.path());
            if place == "journal removed" {
                // Such a run cannot be distinguished from a finished one.
                options.spec.existing = Existing::Skip;
            }
            let report = run(&options).unwrap();
            assert_eq!(files_in(folder.path()), expected, "killed at {place}");
            let is_far = !matches!(place, "journal opened" | "journal begun") && num_kills > 1
                || place == "index written";
            assert!(
                !is_far || report.resumed_bytes > 0 || report.skipped_existing,
                "killed at {place} for the {num_kills}. time, nothing was resumed"
            );
        }
        assert!(num_kills > 0, "no run passed {place}");
    }
}

/// Packs until this many documents are written, then cancels the run.
fn interrupted(options: &PackOptions, num_documents: u64) -> Error {
    pack(options, &byte_tokenizer(), &mut |progress| {
        if progress.documents < num_documents {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })
    .unwrap_err()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_interrupted_after_any_document_resumes_to_the_same_files(
        lines in prop::collection::vec(line(), 1..80),
        num_documents in prop::collection::vec(1u64..60, 1..4),
        chunk_bytes in 1usize..100,
        span_bytes in 1u64..400,
    ) {
        let folder = tempfile::TempDir::new().unwrap();
        let input = folder.path().join("part.jsonl");
        fs::write(&input, lines.join(&b'\n')).unwrap();
        let uninterrupted = options(std::slice::from_ref(&input), &folder.path().join("at-once.pbin"), 1, 1 << 20);
        run(&uninterrupted).unwrap();
        let mut options = options(&[input], &folder.path().join("out.pbin"), 2, chunk_bytes);
        options.spec.span_bytes = span_bytes;
        for num_documents in num_documents {
            let _ = pack(&options, &byte_tokenizer(), &mut |progress| {
                if progress.documents < num_documents { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            fs::remove_file(&options.spec.output).ok();
        }
        run(&options).unwrap();
        prop_assert_eq!(fs::read(&options.spec.output).unwrap(), fs::read(&uninterrupted.spec.output).unwrap());
        let rejects = |options: &PackOptions| fs::read(options.rejects_path()).ok();
        prop_assert_eq!(rejects(&options), rejects(&uninterrupted));
    }
}

#[test]
fn an_interrupted_run_says_that_its_work_is_kept() {
    let folder = tempfile::TempDir::new().unwrap();
    let options = resumable(folder.path());
    let error = interrupted(&options, 100);
    assert_eq!(
        error.to_string(),
        "interrupted; finished work is kept next to the output; run the same command again to resume"
    );
    assert!(!options.spec.output.exists());
    let report = run(&options).unwrap();
    assert!(report.resumed_bytes > 0);
    assert_eq!(files_in(folder.path()), uninterrupted(|_| ()));
}

#[test]
fn damaged_unfinished_files_are_written_again() {
    let expected = uninterrupted(|_| ());
    proptest!(ProptestConfig::with_cases(64), |(
        file in prop::sample::select(vec!["journal", "data", "lengths", "rejects"]),
        at in any::<prop::sample::Index>(),
        change in prop::option::of(1u8..),
    )| {
        let folder = tempfile::TempDir::new().unwrap();
        let options = resumable(folder.path());
        interrupted(&options, 150);
        let path = folder.path().join("out.pbin.partial").join(file);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        match change {
            Some(change) => bytes[at] ^= change,
            None => bytes.truncate(at),
        }
        fs::write(&path, bytes).unwrap();
        run(&options).unwrap();
        prop_assert_eq!(&files_in(folder.path()), &expected);
    });
}

#[test]
fn a_repaired_source_is_packed_again_from_the_change_on() {
    let folder = tempfile::TempDir::new().unwrap();
    let fail = |options: &mut PackOptions| options.spec.on_bad_document = OnBadDocument::Fail;
    let mut options = resumable(folder.path());
    fail(&mut options);
    let good = |i: usize| format!("{{\"text\": \"{i} {}\"}}\n", "a".repeat(i % 90));
    let mut lines: Vec<String> = (0..3 * NUM_LINES).map(good).collect();
    lines[700] = "{broken\n".to_owned();
    let source = folder.path().join("corpus/part0.jsonl");
    options.spec.input = vec![source.display().to_string()];
    fs::write(&source, lines.concat()).unwrap();
    let error = run(&options).unwrap_err();
    assert!(error.to_string().contains("part0.jsonl:701:"), "{error}");
    lines[700] = "{\"text\": \"mended\"}\n".to_owned();
    fs::write(&source, lines.concat()).unwrap();
    let report = run(&options).unwrap();
    let before: usize = lines[..700].iter().map(String::len).sum();
    assert!(report.resumed_bytes <= before as u64);
    assert!(report.resumed_bytes + 3 * options.spec.span_bytes > before as u64);
    let resumed = fs::read(&options.spec.output).unwrap();
    options.spec.existing = Existing::Replace;
    assert_eq!(run(&options).unwrap().resumed_bytes, 0);
    assert_eq!(fs::read(&options.spec.output).unwrap(), resumed);
}

#[test]
fn skip_resumes_a_failed_run_and_fail_checks_skipped_lines_again() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = resumable(folder.path());
    let good = "{\"text\": \"a\"}\n".repeat(1000);
    fs::write(folder.path().join("corpus/part0.jsonl"), good + "{broken\n").unwrap();
    options.spec.on_bad_document = OnBadDocument::Fail;
    run(&options).unwrap_err();
    options.spec.on_bad_document = OnBadDocument::Skip;
    interrupted(&options, 100);
    options.spec.on_bad_document = OnBadDocument::Fail;
    let error = run(&options).unwrap_err();
    assert!(error.to_string().contains("part0.jsonl:1001:"), "{error}");
    options.spec.on_bad_document = OnBadDocument::Skip;
    assert!(run(&options).unwrap().resumed_bytes > 0);
}

#[test]
fn limits_hold_across_interruptions() {
    let limited = |options: &mut PackOptions| {
        (
            options.spec.recorded.max_documents,
            options.spec.recorded.max_tokens,
        ) = (Some(333), Some(9000));
    };
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = resumable(folder.path());
    limited(&mut options);
    interrupted(&options, 160);
    let report = run(&options).unwrap();
    assert!(report.resumed_bytes > 0);
    assert!(report.stopped_early);
    assert_eq!(files_in(folder.path()), uninterrupted(limited));
}

#[test]
fn a_run_by_index_resumes_too() {
    let index = |folder: &Path, options: &mut PackOptions| {
        let source = folder.join("corpus/part0.jsonl");
        let text = fs::read(&source).unwrap();
        let mut start = 0;
        let mut pairs = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            pairs.push((start, line.len() as u64));
            start += line.len() as u64 + 1;
        }
        pairs.rotate_left(7);
        let path = folder.join("corpus/part0.idx");
        write_pairs(&mut fs::File::create(&path).unwrap(), pairs.into_iter()).unwrap();
        options.spec.input = vec![source.display().to_string()];
        options.spec.index_path = Some(path);
    };
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = resumable(folder.path());
    index(folder.path(), &mut options);
    interrupted(&options, 160);
    assert!(run(&options).unwrap().resumed_bytes > 0);
    let other = tempfile::TempDir::new().unwrap();
    let mut uninterrupted = resumable(other.path());
    index(other.path(), &mut uninterrupted);
    run(&uninterrupted).unwrap();
    assert_eq!(files_in(folder.path()), files_in(other.path()));
}

#[test]
fn another_config_is_rejected_by_name_and_restart_starts_over() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut options = resumable(folder.path());
    interrupted(&options, 100);
    options.spec.recorded.max_document_bytes = 100;
    let partial = folder.path().join("out.pbin.partial");
    assert_eq!(
        run(&options).unwrap_err().to_string(),
        format!(
            "{}: the unfinished run differs from this one: its option max_document_bytes is 200, expected 100; finish it with its own options and inputs, or start over with --restart (restart: true)",
            partial.display()
        )
    );
    options.spec.recorded.max_document_bytes = 200;
    let inputs = options.spec.input.clone();
    options.spec.input.remove(0);
    let error = run(&options).unwrap_err().to_string();
    assert!(
        error.contains("its source 0 is part0.jsonl, expected part1.jsonl.gz"),
        "{error}"
    );
    options.spec.restart = true;
    options.spec.input = inputs;
    assert_eq!(run(&options).unwrap().resumed_bytes, 0);
    assert_eq!(files_in(folder.path()), uninterrupted(|_| ()));
}

#[test]
fn the_second_of_two_runs_fails_with_the_owner_of_the_output() {
    let folder = tempfile::TempDir::new().unwrap();
    let options = resumable(folder.path());
    let mut message = None;
    pack(&options, &byte_tokenizer(), &mut |_| {
        message.get_or_insert_with(|| run(&options).unwrap_err().to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    let message = message.unwrap();
    let me = format!(
        "{}: process {} on ",
        options.spec.output.display(),
        std::process::id()
    );
    assert!(message.starts_with(&me), "{message}");
    assert!(
        message.ends_with(
            " is writing this output; wait for it to finish, or stop it and run this command again"
        ),
        "{message}"
    );
    assert_eq!(files_in(folder.path()), uninterrupted(|_| ()));
}
