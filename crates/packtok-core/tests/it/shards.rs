//! Shards packed one by one and joined are the file that one run writes; what does not fit is refused.

use packtok_core::pack::PackError;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::fixture::{byte_tokenizer, line, options, run};
use packtok_core::pack::{Existing, OnBadDocument, PackOptions, PackReport};
use packtok_core::shard::{
    Choice, JoinOptions, JoinReport, Marker, PlanReport, join, list, pack_shard, plan,
};
use packtok_core::{Error, Result, chain};
use proptest::prelude::*;
use tempfile::TempDir;

const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

/// How a file of the corpus lies on the disk.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Crlf,
    NoLastNewline,
    ByteOrderMark,
    Gzip,
    Zstd,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Plain),
        1 => Just(Kind::Crlf),
        2 => Just(Kind::NoLastNewline),
        1 => Just(Kind::ByteOrderMark),
        1 => Just(Kind::Gzip),
        1 => Just(Kind::Zstd),
    ]
}

fn bytes_of(lines: &[Vec<u8>], kind: Kind) -> Vec<u8> {
    let newline: &[u8] = if matches!(kind, Kind::Crlf) {
        b"\r\n"
    } else {
        b"\n"
    };
    let mut text = lines.join(newline);
    if !matches!(kind, Kind::NoLastNewline) && !lines.is_empty() {
        text.extend(newline);
    }
    match kind {
        Kind::Plain | Kind::Crlf | Kind::NoLastNewline => text,
        Kind::ByteOrderMark => [&b"\xef\xbb\xbf"[..], &text].concat(),
        Kind::Gzip => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap()
        }
        Kind::Zstd => zstd::encode_all(&text[..], 1).unwrap(),
    }
}

/// A folder with a corpus and what packs it in shards.
struct Setting {
    folder: TempDir,
    inputs: Vec<PathBuf>,
}

impl Setting {
    fn new(files: &[Vec<u8>]) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("corpus")).unwrap();
        let write = |(i, bytes): (usize, &Vec<u8>)| {
            let path = folder.path().join(format!("corpus/part{i}.jsonl"));
            fs::write(&path, bytes).unwrap();
            path
        };
        let inputs = files.iter().enumerate().map(write).collect();
        Self { folder, inputs }
    }

    /// Twenty documents in two files, of which the first five are in the first.
    fn small() -> Self {
        let line = |i: usize| format!("{{\"text\": \"document {i:02}\"}}\n");
        let text = |lines: std::ops::Range<usize>| lines.map(line).collect::<String>().into_bytes();
        Self::new(&[text(0..5), text(5..20)])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self, output: &str) -> PackOptions {
        options(&self.inputs, &self.path(output), 2, 64)
    }

    fn pack(&self, index: u64, count: Option<u64>) -> Result<PackReport> {
        pack_one(&self.options("out"), index, count)
    }

    fn pack_all(&self, count: u64) {
        for index in 0..count {
            self.pack(index, Some(count)).unwrap();
        }
    }

    fn join(&self) -> Result<JoinReport> {
        self.join_as("joined.pbin", Existing::Error)
    }

    fn join_as(&self, output: &str, existing: Existing) -> Result<JoinReport> {
        let options = JoinOptions {
            folder: self.path("out"),
            output: self.path(output),
            existing,
            // Some of these corpora have rejects and nothing else.
            max_rejects: Some("100%".parse().unwrap()),
        };
        join(&options, &mut |_| GO_ON)
    }

    fn shard_bytes(&self, index: u64, count: u64) -> u64 {
        let name = format!("out/shard-{index:05}-of-{count:05}.pbin");
        fs::metadata(self.path(&name)).unwrap().len()
    }

    /// The chain of an error with the folder's name left out.
    fn message<T>(&self, result: Result<T>) -> String {
        let error = match result.err().expect("this must fail") {
            // Said besides, where something is kept for a later run.
            Error::Kept { source } => *source,
            error => error,
        };
        let folder = self.folder.path().display().to_string();
        chain(&error)
            .replace(&format!("{folder}/"), "")
            .replace(&folder, "")
    }

    fn edit(&self, name: &str, edit: impl Fn(&mut serde_json::Value)) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).unwrap();
        let mut value = serde_json::from_str(&text).unwrap();
        edit(&mut value);
        fs::write(&path, serde_json::to_string(&value).unwrap()).unwrap();
    }
}

fn pack_one(options: &PackOptions, index: u64, count: Option<u64>) -> Result<PackReport> {
    let choice = Choice {
        index,
        count,
        default_count: None,
    };
    pack_shard(options, &byte_tokenizer(), choice, &mut |_| GO_ON)
}

fn plan_as(options: &PackOptions, num_shards: u64) -> Result<PlanReport> {
    plan(options, &byte_tokenizer(), num_shards, &mut |_| GO_ON)
}

/// What lies beside each other as an output, by the end of its name.
fn output_files(path: &Path) -> BTreeMap<&'static str, Option<Vec<u8>>> {
    let beside = |suffix| fs::read(format!("{}{suffix}", path.display())).ok();
    ["", ".rejects.jsonl", ".tokenizer.json"]
        .map(|suffix| (suffix, beside(suffix)))
        .into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

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
        // What is there already is proven, not made again; nothing but shards is left in the folder.
        let again = setting.join_as("joined.pbin", Existing::Skip).unwrap();
        prop_assert!(again.skipped_existing);
        let rejects = fs::read_dir(setting.path("out")).unwrap().count() as u64 - 2 * count - 2;
        prop_assert!(rejects <= count);
        prop_assert_eq!(list(&setting.path("out"), None).unwrap().len() as u64, count);
    }

    #[test]
    fn the_bad_document_is_named_by_its_line_in_the_whole_file(
        lines in prop::collection::vec("[a-z]{0,9}", 1..30),
        bad in any::<prop::sample::Index>(),
        count in 1u64..20,
    ) {
        let bad = bad.index(lines.len());
        let text = |(i, text): (usize, &String)| match i == bad {
            true => b"{\"text\": 1}".to_vec(),
            false => format!("{{\"text\": \"{text}\"}}").into_bytes(),
        };
        let lines: Vec<_> = lines.iter().enumerate().map(text).collect();
        let setting = Setting::new(&[bytes_of(&lines, Kind::Plain)]);
        let mut options = setting.options("out");
        options.spec.on_bad_document = OnBadDocument::Fail;
        let failed: Vec<_> = (0..count).filter_map(|index| pack_one(&options, index, Some(count)).err()).collect();
        let [Error::Pack(PackError::Document { line, .. })] = &failed[..] else {
            panic!("{failed:?}");
        };
        prop_assert_eq!(*line, bad as u64 + 1);
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
fn a_corpus_without_a_byte_has_a_source_all_the_same() {
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
fn a_shard_that_is_whole_is_left_alone() {
    let setting = Setting::small();
    let first = setting.pack(1, Some(3)).unwrap();
    let path = setting.path("out/shard-00001-of-00003.pbin");
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&path);
    let kept = setting.pack(1, None).unwrap();
    assert!(kept.skipped_existing && !first.skipped_existing);
    assert_eq!(inode(&path), before);
    assert_eq!(
        (
            kept.documents,
            kept.lines,
            kept.source_bytes,
            kept.num_sources
        ),
        (
            first.documents,
            first.lines,
            first.source_bytes,
            first.num_sources
        )
    );
    assert_eq!((kept.shard_index, kept.num_shards), (Some(1), Some(3)));
    assert_eq!(kept.tokenizer_path, setting.path("out/tokenizer.json"));
    let mut options = setting.options("out");
    options.spec.existing = Existing::Replace;
    assert!(!pack_one(&options, 1, None).unwrap().skipped_existing);
    assert_ne!(inode(&path), before);
}

#[test]
fn a_marker_without_its_shard_counts_for_nothing() {
    let setting = Setting::small();
    setting.pack_all(2);
    let path = setting.path("out/shard-00001-of-00002.pbin");
    let whole = fs::read(&path).unwrap();
    for damage in [None, Some(&whole[..whole.len() - 1])] {
        fs::remove_file(&path).unwrap();
        if let Some(bytes) = damage {
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(Marker::find(&path).unwrap(), None);
        assert_eq!(
            setting.message(setting.join()),
            "out: shards are missing: 1 of 2; pack them, then join again"
        );
        assert!(!setting.pack(1, None).unwrap().skipped_existing);
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn the_missing_shards_are_named() {
    let setting = Setting::small();
    for index in [0, 1, 2, 4, 5, 6] {
        setting.pack(index, Some(10)).unwrap();
    }
    assert_eq!(
        setting.message(setting.join()),
        "out: shards are missing: 3, 7-9 of 10; pack them, then join again"
    );
    assert_eq!(
        setting.message(list(&setting.path("out"), None)),
        "out: shards are missing: 3, 7-9 of 10; pack them, then join again"
    );
    assert_eq!(
        setting.message(list(&setting.path("corpus"), None)),
        "corpus: no plan found; give the folder that the shards were packed into"
    );
}

#[test]
fn the_number_of_shards_is_the_plan_s() {
    let setting = Setting::small();
    assert_eq!(
        setting.message(setting.pack(0, None)),
        "out: no plan found, so the number of shards is unknown; write a plan with packtok plan --shards N, or give the shard as k/N"
    );
    let planned = plan_as(&setting.options("out"), 4).unwrap();
    assert!(!planned.skipped_existing);
    assert_eq!((planned.num_shards, planned.num_sources), (4, 2));
    assert!(
        plan_as(&setting.options("out"), 4)
            .unwrap()
            .skipped_existing
    );
    let differs = "out/plan.jsonl: the existing plan does not match this run: num_shards is 4, expected 5; pack into another folder, or remove the plan and its shards";
    assert_eq!(setting.message(setting.pack(0, Some(5))), differs);
    assert_eq!(
        setting.message(plan_as(&setting.options("out"), 5)),
        differs
    );
    assert_eq!(
        setting.message(setting.pack(4, None)),
        "no shard 4 of 4; shards are numbered 0 to 3"
    );
    let choice = Choice {
        index: 3,
        count: None,
        default_count: Some(9),
    };
    let report = pack_shard(
        &setting.options("out"),
        &byte_tokenizer(),
        choice,
        &mut |_| GO_ON,
    );
    assert_eq!(report.unwrap().num_shards, Some(4));
}

#[test]
fn another_config_over_the_same_folder_is_refused() {
    let setting = Setting::small();
    setting.pack(0, Some(2)).unwrap();
    type Change = fn(&mut PackOptions);
    let changes: [(Change, &str); 4] = [
        (
            |options| options.spec.recorded.truncate_to = Some(5),
            "options.truncate_to is none, expected 5",
        ),
        (
            |options| options.spec.recorded.max_document_bytes = 9,
            "options.max_document_bytes is 200, expected 9",
        ),
        (|options| options.eod.id = 7, "eod.id is 256, expected 7"),
        (
            |options| drop(options.spec.input.pop()),
            "inputs[1] is \"corpus/part1.jsonl\", expected none",
        ),
    ];
    for (change, what) in changes {
        let mut options = setting.options("out");
        change(&mut options);
        let expected = format!(
            "out/plan.jsonl: the existing plan does not match this run: {what}; pack into another folder, or remove the plan and its shards"
        );
        assert_eq!(setting.message(pack_one(&options, 1, None)), expected);
        assert_eq!(setting.message(plan_as(&options, 2)), expected);
    }
}

#[test]
fn planning_again_notices_that_the_corpus_has_changed() {
    let setting = Setting::small();
    let folder = setting.path("corpus").display().to_string();
    let mut options = setting.options("out");
    options.spec.input = vec![folder];
    plan_as(&options, 2).unwrap();
    fs::write(setting.path("corpus/part0.jsonl"), b"{}\n").unwrap();
    let message = setting.message(plan_as(&options, 2));
    assert!(
        message.starts_with(
            "out/plan.jsonl: the existing plan does not match this run: total_bytes is "
        ),
        "{message}"
    );
    fs::write(setting.path("corpus/part2.jsonl"), b"{}\n").unwrap();
    let message = setting.message(plan_as(&options, 2));
    assert!(
        message.contains("num_sources is 2, expected 3"),
        "{message}"
    );
    for (name, bytes) in [("part0", 1), ("part1", 479)] {
        fs::write(
            setting.path(&format!("corpus/{name}.jsonl")),
            vec![b'\n'; bytes],
        )
        .unwrap();
    }
    fs::remove_file(setting.path("corpus/part2.jsonl")).unwrap();
    let message = setting.message(plan_as(&options, 2));
    assert_eq!(
        message,
        "out/plan.jsonl: the existing plan does not match this run: source 0 is part0.jsonl of 120 bytes, expected part0.jsonl of 1 bytes; pack into another folder, or remove the plan and its shards"
    );
}

#[test]
fn a_shard_looks_at_its_own_files_only_and_at_their_length() {
    let setting = Setting::small();
    plan_as(&setting.options("out"), 4).unwrap();
    fs::remove_file(&setting.inputs[0]).unwrap();
    setting.pack(3, None).unwrap();
    assert_eq!(
        setting.message(setting.pack(0, None)),
        "corpus/part0.jsonl: No such file or directory (os error 2)"
    );
    fs::write(&setting.inputs[0], b"\n").unwrap();
    assert_eq!(
        setting.message(setting.pack(0, None)),
        "corpus/part0.jsonl: file has 1 bytes, the plan expects 120; restore the file, or plan again in another folder"
    );
    fs::remove_file(&setting.inputs[0]).unwrap();
    fs::create_dir(&setting.inputs[0]).unwrap();
    assert_eq!(
        setting.message(setting.pack(0, None)),
        "corpus/part0.jsonl: is a folder, not a file; give a regular file, a folder or a glob"
    );
}

#[test]
fn what_shards_cannot_know_is_refused() {
    let setting = Setting::small();
    let message = |change: fn(&mut PackOptions)| {
        let mut options = setting.options("out");
        change(&mut options);
        let message = setting.message(pack_one(&options, 0, Some(1)));
        assert_eq!(setting.message(plan_as(&options, 1)), message);
        message
    };
    let limit = "cannot be used with shards: where it stops depends on the preceding shards, which a shard does not see; remove it, or pack without shards";
    assert_eq!(
        message(|options| options.spec.recorded.max_documents = Some(1)),
        format!("max_documents {limit}")
    );
    assert_eq!(
        message(|options| options.spec.recorded.max_tokens = Some(1)),
        format!("max_tokens {limit}")
    );
    assert_eq!(
        message(|options| options.spec.index_path = Some("a.idx".into())),
        "index_path cannot be used with shards: it selects lines in its own order, but shards are byte ranges of the files in order; remove it, or pack without shards"
    );
}

#[test]
fn sources_among_the_shards_are_refused() {
    let setting = Setting::small();
    let message = setting.message(pack_one(&setting.options("corpus"), 0, Some(1)));
    assert_eq!(
        message,
        "corpus/part0.jsonl: the source is inside the shards' output folder corpus; choose another folder"
    );
}

#[test]
fn a_path_that_leads_elsewhere_than_its_name_says_is_refused() {
    let setting = Setting::small();
    fs::create_dir_all(setting.path("far/away")).unwrap();
    fs::write(setting.path("far/x.jsonl"), b"far\n").unwrap();
    fs::write(setting.path("x.jsonl"), b"near\n").unwrap();
    std::os::unix::fs::symlink(setting.path("far/away"), setting.path("link")).unwrap();
    let mut options = setting.options("out");
    options.spec.input = vec![setting.path("link/../x.jsonl").display().to_string()];
    assert_eq!(
        setting.message(plan_as(&options, 1)),
        "link/../x.jsonl: the path follows a symbolic link and then .., so its location is ambiguous; give the path without .."
    );
    options.spec.input = vec![setting.path("far/../x.jsonl").display().to_string()];
    plan_as(&options, 1).unwrap();
}

#[test]
fn a_name_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let setting = Setting::small();
    let name = std::ffi::OsStr::from_bytes(b"corpus/\xff.jsonl");
    fs::write(setting.folder.path().join(name), b"\n").unwrap();
    let mut options = setting.options("out");
    options.spec.input = vec![setting.path("corpus").display().to_string()];
    assert_eq!(
        setting.message(plan_as(&options, 1)),
        "corpus/\u{fffd}.jsonl: the path is not UTF-8, so a plan cannot contain it; rename the file or its folders"
    );
}

#[test]
fn secrets_do_not_stand_in_the_plan_and_are_found_again() {
    let setting = Setting::small();
    let folder = setting.folder.path().display().to_string();
    let redacted = |output: &str| {
        let mut options = setting.options(output);
        options.spec.redactions = vec![
            (folder.clone(), "${oc.env:DATA}".to_owned()),
            ("part".to_owned(), "${oc.env:NAME}".to_owned()),
        ];
        options
    };
    run(&redacted("one.pbin")).unwrap();
    for index in 0..3 {
        pack_one(&redacted("out"), index, Some(3)).unwrap();
    }
    setting.join().unwrap();
    assert_eq!(
        output_files(&setting.path("joined.pbin")),
        output_files(&setting.path("one.pbin"))
    );
    let plan = fs::read_to_string(setting.path("out/plan.jsonl")).unwrap();
    assert!(!plan.contains(&folder) && !plan.contains("part"), "{plan}");
}

#[test]
fn a_damaged_plan_is_noticed() {
    let setting = Setting::small();
    let path = setting.path("out/plan.jsonl");
    let planned = plan_as(&setting.options("out"), 2).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let remedy = "remove the plan and write it again";
    let after = |from: &str, to: &str| {
        assert!(whole.contains(from));
        fs::write(&path, whole.replace(from, to)).unwrap();
        setting.message(setting.pack(0, None))
    };
    assert_eq!(
        after("{\"path\":\"part1.jsonl\"", "{\"path\":5"),
        format!(
            "out/plan.jsonl:3: not a valid plan line; {remedy}: invalid type: integer `5`, expected a string at line 1 column 9"
        )
    );
    assert_eq!(
        after("\"packtok_plan\":1", "\"packtok_plan\":2"),
        format!("out/plan.jsonl: the plan is damaged: version is 2, expected 1; {remedy}")
    );
    assert_eq!(
        after("{\"path\":\"part1.jsonl\",\"bytes\":360}\n", ""),
        format!(
            "out/plan.jsonl: the plan is damaged: number of sources is 1, expected 2; {remedy}"
        )
    );
    assert_eq!(
        after("\"bytes\":360", "\"bytes\":361"),
        format!(
            "out/plan.jsonl: the plan is damaged: bytes of all sources is 481, expected 480; {remedy}"
        )
    );
    let message = after("{\"path\":\"part0", "{\"path\":\"part2");
    let (prefix, suffix) = (
        "out/plan.jsonl: the plan is damaged: fingerprint is ",
        format!(", expected {}; {remedy}", planned.fingerprint),
    );
    assert!(
        message.starts_with(prefix) && message.ends_with(&suffix),
        "{message}"
    );
}

#[test]
fn shards_of_something_else_are_refused() {
    let setting = Setting::small();
    setting.pack_all(2);
    let marker = "out/shard-00001-of-00002.done.json";
    let whole = fs::read(setting.path(marker)).unwrap();
    let again = "pack the shard again with existing set to replace";
    for (field, value, what) in [
        ("packtok_shard", 2.into(), "its version is 2, expected 1"),
        ("index", 0.into(), "its shard is 0 of 2, expected 1 of 2"),
        (
            "writer",
            serde_json::json!({"name": "packtok", "version": "9.9"}),
            concat!(
                "its writer is packtok 9.9, expected packtok ",
                env!("CARGO_PKG_VERSION")
            ),
        ),
    ] {
        setting.edit(marker, |marker| marker[field] = value.clone());
        let expected = format!("{marker}: {what}; {again}");
        assert_eq!(setting.message(setting.join()), expected);
        assert_eq!(setting.message(setting.pack(1, None)), expected);
        fs::write(setting.path(marker), &whole).unwrap();
    }
    setting.edit(marker, |marker| marker["plan"] = "other".into());
    let message = setting.message(setting.join());
    assert!(
        message.starts_with(&format!("{marker}: its plan is other, expected ")),
        "{message}"
    );
    fs::write(setting.path(marker), b"{").unwrap();
    assert_eq!(
        setting.message(setting.join()),
        format!(
            "{marker}: not a valid shard marker; delete it and pack the shard again: EOF while parsing an object at line 1 column 1"
        )
    );
}

#[test]
fn what_a_marker_says_is_held_against_the_shard() {
    let setting = Setting::small();
    setting.pack_all(3);
    let marker = "out/shard-00001-of-00003.done.json";
    let whole = fs::read(setting.path(marker)).unwrap();
    let shard = "out/shard-00001-of-00003.pbin";
    let found: Marker = serde_json::from_slice(&whole).unwrap();
    type Edit = fn(&mut serde_json::Value);
    let edits: [(Edit, String); 5] = [
        (
            |marker| marker["trailer_crc32c"] = 1.into(),
            format!(
                "{shard}: its trailer's checksum is {:08x}, expected 00000001",
                found.trailer_crc32c
            ),
        ),
        (
            |marker| marker["data_crc32c"] = 1.into(),
            format!(
                "{shard}: the checksum of its tokens is {:08x}, expected 00000001",
                found.data_crc32c
            ),
        ),
        (
            |marker| marker["counts"]["blank"] = 7.into(),
            format!("{shard}: its counts.blank is 0, expected 7"),
        ),
        (
            |marker| marker["parts"][0]["start"] = 100.into(),
            format!(
                "{shard}: source \"part1.jsonl\" is covered up to byte 48, but the next part starts at byte 100"
            ),
        ),
        (
            |marker| marker["first"]["source"] = 0.into(),
            format!(
                "{shard}: source \"part1.jsonl\" is covered up to byte 48, but the next part starts at byte 360"
            ),
        ),
    ];
    for (edit, what) in edits {
        setting.edit(marker, edit);
        let again = "pack the shard again with existing set to replace";
        assert_eq!(setting.message(setting.join()), format!("{what}; {again}"));
        fs::write(setting.path(marker), &whole).unwrap();
    }
    setting.join().unwrap();
}

#[test]
fn every_byte_of_a_shard_is_checked_while_it_is_joined() {
    let setting = Setting::small();
    setting.pack_all(2);
    let path = setting.path("out/shard-00001-of-00002.pbin");
    let whole = fs::read(&path).unwrap();
    for place in (0..whole.len()).step_by(13) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        assert!(setting.join().is_err(), "byte {place}");
        assert!(!setting.path("joined.pbin").exists());
    }
}

#[test]
fn rejects_have_to_be_there() {
    let line = b"{\"text\": 1}\n";
    let setting = Setting::new(&[line.repeat(20)]);
    setting.pack_all(3);
    let path = setting.path("out/shard-00001-of-00003.pbin.rejects.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    assert!(
        whole.starts_with("{\"source\":\"part0.jsonl\",\"line_in_shard\":1,"),
        "{whole}"
    );
    fs::write(
        &path,
        whole
            .lines()
            .skip(1)
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let name = "out/shard-00001-of-00003.pbin.rejects.jsonl";
    let again = "pack the shard again with existing set to replace";
    assert_eq!(
        setting.message(setting.join()),
        format!("{name}: its number of lines is 6, expected 7; {again}")
    );
    fs::write(&path, "{}\n").unwrap();
    let message = setting.message(setting.join());
    assert!(
        message.starts_with(&format!("{name}:1: not a valid rejects line; {again}: ")),
        "{message}"
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(
        setting.message(setting.join()),
        format!("{name}: No such file or directory (os error 2)")
    );
    let mut options = setting.options("out");
    options.spec.on_bad_document = OnBadDocument::Fail;
    assert_eq!(
        setting.message(pack_one(&options, 0, None)),
        format!(
            "out/shard-00000-of-00003.done.json: its number of rejected documents is 7, expected 0; {again}"
        )
    );
}

#[test]
fn an_output_that_is_there_is_kept_proven_or_replaced() {
    let setting = Setting::small();
    setting.pack_all(2);
    let output = setting.path("joined.pbin");
    setting.join().unwrap();
    let whole = fs::read(&output).unwrap();
    let exists = "joined.pbin: the output already exists; choose another path, or set --existing (existing in a config) to skip or replace";
    assert_eq!(setting.message(setting.join()), exists);
    for place in (0..whole.len()).step_by(13) {
        let mut damaged = whole.clone();
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
        "other.pbin: the existing output differs from what this run would write: its counts.tokens is 80, expected 240; set existing to replace, or choose another output"
    );
    setting.join_as("joined.pbin", Existing::Replace).unwrap();
    assert_eq!(fs::read(&output).unwrap(), whole);
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
fn another_tokenizer_among_the_shards_is_refused() {
    let setting = Setting::small();
    setting.pack_all(2);
    let path = setting.path("out/tokenizer.json");
    let json = fs::read_to_string(&path).unwrap();
    fs::write(&path, json.replace("<eod>", "<end>")).unwrap();
    for message in [
        setting.message(setting.join()),
        setting.message(setting.pack(0, None)),
    ] {
        let prefix =
            "out/tokenizer.json: the tokenizer differs from the plan's: its fingerprint is sha256:";
        assert!(message.starts_with(prefix), "{message}");
        assert!(message.ends_with("; pack into another folder"), "{message}");
    }
    // Written otherwise, it is the same.
    fs::write(&path, format!("{json}\n")).unwrap();
    setting.pack(0, None).unwrap();
}

#[test]
fn a_join_that_was_stopped_goes_on_behind_the_shards_that_are_in_the_file() {
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
    for num_looks in 0.. {
        let mut looks = 0;
        let stopped = join(&options, &mut |_| {
            looks += 1;
            match looks > num_looks {
                true => ControlFlow::Break(()),
                false => GO_ON,
            }
        });
        let is_whole = stopped.is_ok();
        if !is_whole {
            assert!(!options.output.exists());
            // As if the power had gone while the next shard was written.
            if let Ok(mut data) = fs::File::options().append(true).open(partial.join("data")) {
                data.write_all(b"torn").unwrap();
            }
            let mut resumed = 0;
            join(&options, &mut |progress| {
                resumed = resumed.max(progress.resumed_bytes);
                GO_ON
            })
            .unwrap();
            most_resumed = most_resumed.max(resumed);
        }
        assert_eq!(fs::read(&options.output).unwrap(), expected);
        assert!(!partial.exists());
        fs::remove_file(&options.output).unwrap();
        if is_whole {
            break;
        }
    }
    let three_shards: u64 = (0..3).map(|i| setting.shard_bytes(i, 4)).sum();
    assert!(most_resumed >= three_shards, "{most_resumed}");
}

#[test]
fn joining_does_not_take_the_place_of_a_run_that_packs() {
    let setting = Setting::small();
    setting.pack_all(2);
    let mut looks = 0;
    let mut packing = setting.options("joined.pbin");
    packing.spec.span_bytes = 1;
    packing.spec.chunk_bytes = 16;
    let stopped = packtok_core::pack::pack(&packing, &byte_tokenizer(), &mut |_| {
        looks += 1;
        match looks > 6 {
            true => ControlFlow::Break(()),
            false => GO_ON,
        }
    });
    assert!(stopped.is_err());
    assert_eq!(
        setting.message(setting.join()),
        "joined.pbin.partial: an unfinished run of packtok pack has the same output; finish that run, or delete this folder, then join again"
    );
}

#[test]
fn a_thousand_shards_of_twenty_documents_are_one_file() {
    let setting = Setting::small();
    setting.pack_all(1000);
    setting.join().unwrap();
    run(&setting.options("expected.pbin")).unwrap();
    let read = |name| fs::read(setting.path(name)).unwrap();
    assert_eq!(read("joined.pbin"), read("expected.pbin"));
}
