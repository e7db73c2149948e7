//! Expansion of inputs into sources: folders, globs, and their order.

use super::*;

fn tree(folder: &TempDir, names: &[&str]) {
    for name in names {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

fn inputs(folder: &TempDir, names: &[&str]) -> Vec<String> {
    let path = |name: &&str| folder.path().join(name).to_str().unwrap().to_owned();
    names.iter().map(path).collect()
}

fn labels(folder: &TempDir, names: &[&str]) -> Vec<String> {
    let expansion = expand(&inputs(folder, names), &Selection::default()).unwrap();
    expansion
        .sources
        .into_iter()
        .map(|source| source.label)
        .collect()
}

fn complaint(folder: &TempDir, names: &[&str]) -> String {
    let error = expand(&inputs(folder, names), &Selection::default()).unwrap_err();
    // A message that starts with the folder has only its `: ` left.
    message(&error, folder).trim_start_matches(": ").to_owned()
}

const TREE: [&str; 9] = [
    "part10.jsonl",
    "part2.jsonl",
    "part1.jsonl.gz",
    "sub/b.jsonl.zst",
    "sub/deep/a.jsonl",
    "readme.txt",
    ".hidden.jsonl",
    "sub/.h/x.jsonl",
    "notes.jsonl.bak",
];

#[test]
fn folders_are_searched_in_natural_order() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &TREE);
    assert_eq!(
        labels(&folder, &[""]),
        [
            "part1.jsonl.gz",
            "part2.jsonl",
            "part10.jsonl",
            "sub/b.jsonl.zst",
            "sub/deep/a.jsonl"
        ]
    );
}

#[test]
fn globs_match_in_natural_order() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &TREE);
    assert_eq!(
        labels(&folder, &["part*.jsonl*"]),
        ["part1.jsonl.gz", "part2.jsonl", "part10.jsonl"]
    );
    assert_eq!(
        labels(&folder, &["**/*.jsonl"]),
        ["part2.jsonl", "part10.jsonl", "sub/deep/a.jsonl"]
    );
    assert_eq!(
        labels(&folder, &["**/sub*"]),
        ["b.jsonl.zst", "deep/a.jsonl"]
    );
    assert_eq!(labels(&folder, &["part?0.jsonl"]), ["part10.jsonl"]);
    assert_eq!(labels(&folder, &["**"]), labels(&folder, &[""]));
    assert_eq!(labels(&folder, &["su*/**"]), labels(&folder, &["sub"]));
}

#[test]
fn the_order_of_the_inputs_is_kept() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &TREE);
    assert_eq!(
        labels(&folder, &["sub", "part10.jsonl", "part[12].jsonl*"]),
        [
            "sub/b.jsonl.zst",
            "sub/deep/a.jsonl",
            "part10.jsonl",
            "part1.jsonl.gz",
            "part2.jsonl"
        ]
    );
    assert_eq!(labels(&folder, &["readme.txt"]), ["readme.txt"]);
}

#[test]
fn existing_paths_are_not_globs() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a[1].jsonl", "a1.jsonl", "b*.jsonl", "bb.jsonl"]);
    assert_eq!(labels(&folder, &["a[1].jsonl"]), ["a[1].jsonl"]);
    assert_eq!(labels(&folder, &["b*.jsonl"]), ["b*.jsonl"]);
}

#[test]
fn unreadable_inputs_are_named() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "empty/readme.md"]);
    std::os::unix::fs::symlink(folder.path().join("a.jsonl"), folder.path().join("link")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    for (names, expected) in [
        (&["missing.jsonl"][..], "missing.jsonl"),
        (
            &["x*"],
            "no file matches; globs skip hidden files, give those by name",
        ),
        (
            &["empty"],
            "empty: the folder contains no *.jsonl, *.json, *.ndjson, *.jsonlines, *.parquet, *.arrow, *.feather, *.csv, *.tsv, *.txt or *.cbor file; give the files or a glob",
        ),
        (
            &["a.jsonl", "link"],
            "link: same file as the earlier input a.jsonl; give each file once",
        ),
        (
            &["a.jsonl", "*.jsonl"],
            "a.jsonl: same file as the earlier input a.jsonl; give each file once",
        ),
        (
            &["socket"],
            "socket: is a socket, not a file; give a regular file, a folder or a glob",
        ),
        (
            &["a**b"],
            "not a valid glob; write [[] for a literal bracket",
        ),
    ] {
        let complaint = complaint(&folder, names);
        assert!(complaint.ends_with(expected), "{complaint}");
    }
    drop(socket);
    let error = expand(&[], &Selection::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no input given; give at least one file, folder or glob"
    );
    let error = expand(&["/dev/null".to_owned()], &Selection::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/dev/null: is a device, not a file; give a regular file, a folder or a glob"
    );
}

#[test]
fn two_hard_links_are_two_files() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl"]);
    fs::hard_link(folder.path().join("a.jsonl"), folder.path().join("b.jsonl")).unwrap();
    assert_eq!(
        labels(&folder, &["a.jsonl", "b.jsonl"]),
        ["a.jsonl", "b.jsonl"]
    );
    assert!(
        complaint(&folder, &["a.jsonl", "b.jsonl", "./b.jsonl"])
            .ends_with("b.jsonl: same file as the earlier input b.jsonl; give each file once")
    );
}

#[test]
fn an_unreadable_file_is_named_without_opening_files() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "sub/b.jsonl"]);
    let path = folder.path().join("sub/b.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        // Root can read every file, so the error cannot be provoked.
        return;
    }
    let error = expand(&inputs(&folder, &[""]), &Selection::default()).unwrap_err();
    assert_eq!(
        packtok_pbin::chain(&error),
        format!("{}: Permission denied (os error 13)", path.display())
    );
}

#[cfg(not(feature = "remote"))]
#[test]
fn urls_are_rejected_in_builds_without_stores() {
    let error = expand(
        &["s3://key:secret@bucket/a.jsonl".to_owned()],
        &Selection::default(),
    )
    .unwrap_err();
    assert!(matches!(error, crate::Error::NoStores));
}

#[test]
fn a_link_to_a_parent_folder_is_not_followed_forever() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["sub/a.jsonl"]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("sub/up")).unwrap();
    assert_eq!(labels(&folder, &[""]), ["a.jsonl"]);
}

/// The labels of the files that are read, and the files that are not, with the reasons.
fn selected(folder: &TempDir, selection: &Selection) -> (Vec<String>, Vec<String>) {
    let expansion = expand(&inputs(folder, &[""]), selection).unwrap();
    let labels = expansion.sources.into_iter().map(|source| source.label);
    let ignored = expansion.ignored.into_iter().map(|file| {
        let path = file.path.strip_prefix(folder.path()).unwrap().to_owned();
        format!("{} ({})", path.display(), file.reason)
    });
    (labels.collect(), ignored.collect())
}

fn ignoring(globs: &[&str]) -> Selection {
    let globs: Vec<_> = globs.iter().map(|&glob| glob.to_owned()).collect();
    Selection::new(None, &globs, None).unwrap()
}

#[test]
fn a_folder_stands_for_all_names_of_its_format() {
    let folder = TempDir::new().unwrap();
    let names = [
        "a.jsonl",
        "b.json.gz",
        "c.json",
        "d.ndjson",
        "e.JSONL",
        "f.jsonl.GZ",
        "g.jsonl.zstd",
        "h.jsonlines",
    ];
    tree(&folder, &names);
    tree(&folder, &["README.md", "a.jsonl.md5", "run.sh", "x.pbin"]);
    assert_eq!(labels(&folder, &[""]), names);
}

#[test]
fn files_that_look_like_data_and_cannot_be_read_are_an_error() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "b.jsonl.xz"]);
    assert_eq!(
        complaint(&folder, &[""]),
        "a file looks like data but cannot be read: b.jsonl.xz (unsupported compression); finish, convert or extract it, or leave it out with --ignore (ignore), such as --ignore \"*.xz\""
    );
    tree(&folder, &["c.tar", "sub/d.jsonl.part", "e.jsonl.aria2"]);
    assert_eq!(
        complaint(&folder, &[""]),
        "files look like data but cannot be read: b.jsonl.xz (unsupported compression), c.tar (archive), e.jsonl.aria2 (unfinished), sub/d.jsonl.part (unfinished); finish, convert or extract them, or leave them out with --ignore (ignore), such as --ignore \"*.xz\""
    );
    let selection = selected(&folder, &ignoring(&["*.xz", "c.*", "sub", "e.jsonl.*"]));
    assert_eq!(selection.0, ["a.jsonl"]);
    assert_eq!(
        selection.1,
        [
            "b.jsonl.xz (ignore)",
            "c.tar (ignore)",
            "e.jsonl.aria2 (ignore)",
            "sub (ignore)"
        ]
    );
}

#[test]
fn files_that_are_no_data_are_left_out_and_reported() {
    let folder = TempDir::new().unwrap();
    tree(
        &folder,
        &[
            "a.parquet",
            "b.parquet",
            ".b.parquet",
            "b.parquet.bak",
            "dataset_info.json",
            "metadata.json",
            "notes.txt",
            "out.shards/plan.jsonl",
            "out.shards/tokenizer.json",
            "t/tokenizer.json",
        ],
    );
    let (read, ignored) = selected(&folder, &Selection::default());
    assert_eq!(read, ["a.parquet", "b.parquet"]);
    assert_eq!(
        ignored,
        [
            ".b.parquet (hidden)",
            "b.parquet.bak (backup)",
            "dataset_info.json (metadata)",
            "metadata.json (metadata)",
            "out.shards (metadata)",
            "t/tokenizer.json (metadata)",
            "notes.txt (note)",
        ]
    );
}

#[test]
fn what_the_chosen_format_excludes_is_reported_and_no_error() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "b.csv", "c.csv.xz", "d.avro"]);
    assert_eq!(
        complaint(&folder, &[""]),
        "files look like data but cannot be read: c.csv.xz (unsupported compression), d.avro (unsupported format); finish, convert or extract them, or leave them out with --ignore (ignore), such as --ignore \"*.xz\""
    );
    let selection = selected(&folder, &Selection::of_format(Some(Format::Jsonl)));
    assert_eq!(selection.0, ["a.jsonl"]);
    assert_eq!(
        selection.1,
        ["b.csv (format)", "c.csv.xz (format)", "d.avro (format)"]
    );
}

#[test]
fn patterns_leave_out_files_of_every_input() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "b.jsonl", "c/a.jsonl", "c/d.jsonl"]);
    let all_inputs = inputs(&folder, &["a.jsonl", "b*", "c"]);
    let expansion = expand(&all_inputs, &ignoring(&["a.jsonl"])).unwrap();
    let labels: Vec<_> = expansion
        .sources
        .into_iter()
        .map(|source| source.label)
        .collect();
    assert_eq!(labels, ["b.jsonl", "c/d.jsonl"]);
    assert_eq!(expansion.ignored.len(), 2);
    let error = expand(&all_inputs, &ignoring(&["*.jsonl", "c"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--ignore (ignore) leaves out all inputs; give files that it does not match"
    );
}

#[test]
fn a_folder_without_a_corpus_says_what_is_in_it() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["tokens/a.pbin", "described/metadata.jsonl"]);
    assert!(complaint(&folder, &["tokens"]).ends_with(
        "tokens: the folder contains token files such as a.pbin, not a corpus; give the texts that they were made from"
    ));
    assert!(complaint(&folder, &["described"]).ends_with(
        "*.cbor file, and these are not read: metadata.jsonl (metadata); give the files or a glob"
    ));
}

fn of_split(split: &str) -> Selection {
    Selection::new(None, &[], Some(split)).unwrap()
}

#[test]
fn a_split_is_taken_from_the_files_of_a_folder() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["test.jsonl", "train-1.jsonl", "valid.jsonl"]);
    let (read, ignored) = selected(&folder, &of_split("train"));
    assert_eq!(read, ["train-1.jsonl"]);
    assert_eq!(
        ignored,
        ["test.jsonl (split test)", "valid.jsonl (split validation)"]
    );
    assert_eq!(selected(&folder, &of_split("all")).0.len(), 3);
    assert_eq!(
        selected(&folder, &of_split("validation")).0,
        ["valid.jsonl"]
    );
    let error = expand(&inputs(&folder, &[""]), &of_split("dev")).unwrap_err();
    assert_eq!(
        message(&error, &folder).trim_start_matches(": "),
        "no split \"dev\"; the folder has train, validation, test; set --split (split) to one of them, or to all"
    );
    tree(&folder, &["extra.jsonl"]);
    let error = expand(&inputs(&folder, &[""]), &of_split("train")).unwrap_err();
    assert_eq!(
        message(&error, &folder).trim_start_matches(": "),
        "a file is of no split, beside the splits train, validation, test: extra.jsonl; read all files with --split all (split), or leave it out with --ignore (ignore)"
    );
}

#[test]
fn a_folder_without_splits_is_the_split_train() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["a.jsonl", "b.jsonl"]);
    assert_eq!(selected(&folder, &of_split("train")).0.len(), 2);
    let error = expand(&inputs(&folder, &[""]), &of_split("test")).unwrap_err();
    assert_eq!(
        message(&error, &folder).trim_start_matches(": "),
        "no split \"test\"; the folder has train; set --split (split) to one of them, or to all"
    );
}
