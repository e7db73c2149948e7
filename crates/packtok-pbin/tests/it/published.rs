//! Publication: complete files under final names, and no other files.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use packtok_pbin::{Error, Replace, TempFile, remove_abandoned};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn filled(dst: &Path) -> TempFile {
    let mut file = TempFile::create(dst).unwrap();
    file.write_all(b"new").unwrap();
    file
}

#[test]
fn a_published_file_has_its_final_name_and_default_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("new folder/a.pbin");
    let file = filled(&dst);
    let temp = file
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        temp.starts_with(".a.pbin.") && temp.ends_with(".tmp"),
        "{temp}"
    );
    assert_eq!(file.dst(), dst);
    file.publish(Replace::Never).unwrap();
    assert_eq!(fs::read(&dst).unwrap(), b"new");
    assert_eq!(names(dst.parent().unwrap()), ["a.pbin"]);
    let plain = folder.path().join("plain");
    File::create(&plain).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&dst), mode(&plain));
}

#[test]
fn an_existing_file_is_replaced_only_if_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("a.pbin");
    let file = filled(&dst);
    fs::write(&dst, b"old").unwrap();
    let error = file.publish(Replace::Never).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: file already exists; choose another path, or allow it to be replaced",
            dst.display()
        )
    );
    assert_eq!(fs::read(&dst).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.pbin"]);
    filled(&dst).publish(Replace::Existing).unwrap();
    assert_eq!(fs::read(&dst).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a.pbin"]);
}

#[test]
fn a_dropped_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(&folder.path().join("a.pbin")));
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn only_files_whose_owner_has_ended_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("a.pbin");
    let alive = filled(&dst);
    for name in [
        ".a.pbin.deadDEAD0123.tmp",
        ".a.pbin.x.deadDEAD0123.tmp",
        ".a.pbin.short.tmp",
        ".b.pbin.deadDEAD0123.tmp",
    ] {
        fs::write(folder.path().join(name), b"half").unwrap();
    }
    std::os::unix::fs::symlink("a.pbin", folder.path().join(".a.pbin.linkLINK0123.tmp")).unwrap();
    let removed = remove_abandoned(&[&dst]).unwrap();
    assert_eq!(removed, [folder.path().join(".a.pbin.deadDEAD0123.tmp")]);
    assert!(alive.path().exists());
    assert_eq!(names(folder.path()).len(), 5);
    alive.publish(Replace::Never).unwrap();
    assert!(remove_abandoned(&[&dst]).unwrap().is_empty());
}

#[test]
fn cleaners_and_owners_do_not_lose_files() {
    let folder = tempfile::tempdir().unwrap();
    let dst = folder.path().join("a.pbin");
    std::thread::scope(|threads| {
        let owner = threads
            .spawn(|| (0..300).for_each(|_| filled(&dst).publish(Replace::Existing).unwrap()));
        while !owner.is_finished() {
            // Temporary files appear and disappear during the listing, but an owner's file is never
            // removed.
            remove_abandoned(&[&dst]).unwrap();
        }
    });
    assert_eq!(names(folder.path()), ["a.pbin"]);
}

#[test]
fn a_missing_folder_has_nothing_to_remove() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        remove_abandoned(&[&folder.path().join("none/a.pbin")])
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_path_without_a_file_name_is_rejected() {
    let error = TempFile::create(Path::new("/")).unwrap_err();
    assert!(matches!(error, Error::NoFileName { .. }));
    assert_eq!(error.to_string(), "/: path has no file name");
}
