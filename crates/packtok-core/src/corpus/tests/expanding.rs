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
    let sources = expand(&inputs(folder, names), None).unwrap();
    sources.into_iter().map(|source| source.label).collect()
}

fn complaint(folder: &TempDir, names: &[&str]) -> String {
    message(&expand(&inputs(folder, names), None).unwrap_err(), folder)
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
            "empty: the folder contains no *.jsonl, *.parquet, *.arrow, *.feather, *.csv, *.tsv, *.txt or *.cbor file; give the files or a glob",
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
    let error = expand(&[], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no input given; give at least one file, folder or glob"
    );
    let error = expand(&["/dev/null".to_owned()], None).unwrap_err();
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
        // Root can read every file.
        return;
    }
    let error = expand(&inputs(&folder, &[""]), None).unwrap_err();
    assert_eq!(
        packtok_pbin::chain(&error),
        format!("{}: Permission denied (os error 13)", path.display())
    );
}

#[cfg(not(feature = "remote"))]
#[test]
fn urls_are_rejected_in_builds_without_stores() {
    let error = expand(&["s3://key:secret@bucket/a.jsonl".to_owned()], None).unwrap_err();
    assert!(matches!(error, crate::Error::Corpus(CorpusError::NoStores)));
}

#[test]
fn a_link_to_a_parent_folder_is_not_followed_forever() {
    let folder = TempDir::new().unwrap();
    tree(&folder, &["sub/a.jsonl"]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("sub/up")).unwrap();
    assert_eq!(labels(&folder, &[""]), ["a.jsonl"]);
}
