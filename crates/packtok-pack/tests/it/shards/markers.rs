//! The marker of a finished shard: when it counts, and what it is compared with.

use std::fs;
use std::path::Path;

use packtok_corpus::OnBadDocument;
use packtok_pack::pack::Existing;
use packtok_pack::shard::{Marker, list};

use super::{Setting, pack_one};

#[test]
fn a_complete_shard_is_not_packed_again() {
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
fn a_marker_without_its_shard_is_ignored() {
    let setting = Setting::small();
    setting.pack_all(2);
    let path = setting.path("out/shard-00001-of-00002.pbin");
    let original = fs::read(&path).unwrap();
    for damage in [None, Some(&original[..original.len() - 1])] {
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
        assert_eq!(fs::read(&path).unwrap(), original);
    }
}

#[test]
fn missing_shards_are_listed() {
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
fn shards_of_another_run_are_rejected() {
    let setting = Setting::small();
    setting.pack_all(2);
    let marker = "out/shard-00001-of-00002.done.json";
    let original = fs::read(setting.path(marker)).unwrap();
    let again = "pack the shard again with --existing replace (existing: replace)";
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
        fs::write(setting.path(marker), &original).unwrap();
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
fn a_marker_is_compared_with_its_shard() {
    let setting = Setting::small();
    setting.pack_all(3);
    let marker = "out/shard-00001-of-00003.done.json";
    let original = fs::read(setting.path(marker)).unwrap();
    let shard = "out/shard-00001-of-00003.pbin";
    let original_marker: Marker = serde_json::from_slice(&original).unwrap();
    type Edit = fn(&mut serde_json::Value);
    let edits: [(Edit, String); 5] = [
        (
            |marker| marker["trailer_crc32c"] = 1.into(),
            format!(
                "{shard}: its trailer's checksum is {:08x}, expected 00000001",
                original_marker.trailer_crc32c
            ),
        ),
        (
            |marker| marker["data_crc32c"] = 1.into(),
            format!(
                "{shard}: the checksum of its tokens is {:08x}, expected 00000001",
                original_marker.data_crc32c
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
        let again = "pack the shard again with --existing replace (existing: replace)";
        assert_eq!(setting.message(setting.join()), format!("{what}; {again}"));
        fs::write(setting.path(marker), &original).unwrap();
    }
    setting.join().unwrap();
}

#[test]
fn missing_rejects_are_an_error() {
    let line = b"{\"text\": 1}\n";
    let setting = Setting::new(&[line.repeat(20)]);
    setting.pack_all(3);
    let path = setting.path("out/shard-00001-of-00003.pbin.rejects.jsonl");
    let original = fs::read_to_string(&path).unwrap();
    assert!(
        original.starts_with("{\"source\":\"part0.jsonl\",\"line_in_shard\":1,"),
        "{original}"
    );
    fs::write(
        &path,
        original
            .lines()
            .skip(1)
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let name = "out/shard-00001-of-00003.pbin.rejects.jsonl";
    let again = "pack the shard again with --existing replace (existing: replace)";
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
