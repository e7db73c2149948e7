//! A plan fixes the corpus, the options and the number of shards; runs that differ are rejected.

use std::fs;

use packtok_pack::pack::PackOptions;
use packtok_pack::pbin::{Padding, Side};
use packtok_pack::shard::{Choice, pack_shard};

use super::{PROCEED, Setting, output_files, pack_one, plan_as};
use crate::fixture::{byte_tokenizer, run};

#[test]
fn the_plan_determines_the_number_of_shards() {
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
        &mut |_| PROCEED,
    );
    assert_eq!(report.unwrap().num_shards, Some(4));
}

#[test]
fn another_config_for_the_same_folder_is_rejected() {
    let setting = Setting::small();
    setting.pack(0, Some(2)).unwrap();
    type Change = fn(&mut PackOptions);
    let changes: [(Change, &str); 5] = [
        (
            |options| options.spec.recorded.truncate_to = Some(5),
            "options.truncate_to is none, expected 5",
        ),
        (
            |options| {
                options.spec.recorded.padding = Some(Padding {
                    length: 8,
                    id: 3,
                    side: Side::Right,
                })
            },
            "options.padding is none, expected {\"id\":3,\"length\":8,\"side\":\"right\"}",
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
fn planning_again_detects_a_changed_corpus() {
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
fn a_shard_accesses_only_its_own_files_and_checks_their_length() {
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
fn options_that_need_the_complete_corpus_are_rejected() {
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
fn sources_inside_the_output_folder_are_rejected() {
    let setting = Setting::small();
    let message = setting.message(pack_one(&setting.options("corpus"), 0, Some(1)));
    assert_eq!(
        message,
        "corpus/part0.jsonl: the source is inside the shards' output folder corpus; choose another folder"
    );
}

#[test]
fn a_path_with_parent_components_after_a_link_is_rejected() {
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
fn a_name_that_is_not_utf8_is_rejected() {
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
fn the_plan_contains_no_secrets_and_they_are_restored() {
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
fn a_damaged_plan_is_detected() {
    let setting = Setting::small();
    let path = setting.path("out/plan.jsonl");
    let planned = plan_as(&setting.options("out"), 2).unwrap();
    let original = fs::read_to_string(&path).unwrap();
    let remedy = "remove the plan and write it again";
    let after = |from: &str, to: &str| {
        assert!(original.contains(from));
        fs::write(&path, original.replace(from, to)).unwrap();
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
fn another_tokenizer_among_the_shards_is_rejected() {
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
    // The same tokenizer in another layout.
    fs::write(&path, format!("{json}\n")).unwrap();
    setting.pack(0, None).unwrap();
}
