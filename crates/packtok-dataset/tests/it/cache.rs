//! Plan files are found or built once, across processes and after one was killed.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use packtok_dataset::plans::cache::{file_name, find_or_build};
use packtok_dataset::plans::plan::{BlockPlan, PlanWriter, TokenSpan};
use packtok_dataset::plans::plan_file::{Key, Kind};
use packtok_dataset::{Error, Result};
use packtok_jobs::{Monitor, Progress};

const DATA: [u8; 32] = [7; 32];
const KEY: Key = Key {
    kind: Kind::WholeDocuments,
    options: [5, 0],
    data: DATA,
};
const FOLDER_VARIABLE: &str = "PACKTOK_TEST_FOLDER";
const AWAITED_VARIABLE: &str = "PACKTOK_TEST_AWAITED";

fn write(path: &Path, _: &mut Monitor<'_>) -> Result<()> {
    let mut writer = PlanWriter::create(path, KEY)?;
    writer.push(&[TokenSpan {
        start: 2,
        len_tokens: 5,
    }])?;
    writer.publish(7, 2)
}

fn refuse(_: &Path, _: &mut Monitor<'_>) -> Result<()> {
    panic!("nothing is to be built")
}

fn proceed(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn find(
    folders: &[PathBuf],
    mut build: impl FnMut(&Path, &mut Monitor<'_>) -> Result<()>,
) -> Result<PathBuf> {
    find_or_build(folders, &KEY, &mut proceed, &mut build)
}

fn assert_right(path: &Path) {
    let plan = BlockPlan::open(path, &DATA).expect("the plan is valid");
    plan.verify().expect("the plan is complete");
    assert_eq!(
        plan.pieces(0)
            .expect("there is one file")
            .collect::<Vec<_>>(),
        [2..7]
    );
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    names
        .map(|name| name.into_string().expect("names are ASCII"))
        .collect()
}

/// Whether permissions restrict this user: root may write everywhere.
fn is_bound_by_permissions(folder: &Path) -> bool {
    let probe = folder.join("probe");
    fs::create_dir(&probe).expect("a temporary file can be written");
    fs::set_permissions(&probe, Permissions::from_mode(0o555))
        .expect("the folder belongs to this user");
    fs::write(probe.join("file"), "").is_err()
}

#[test]
fn a_built_file_is_found_again() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let folders = [folder.path().join("a/b"), folder.path().join("c")];
    let path = find(&folders, write).expect("a temporary file can be written");
    assert_eq!(path, folders[0].join(file_name(&KEY)));
    assert_right(&path);
    assert_eq!(names(&folders[0]), [file_name(&KEY)]);
    assert_eq!(find(&folders, refuse).expect("it exists"), path);
    let turned = [folders[1].clone(), folders[0].clone()];
    assert_eq!(find(&turned, refuse).expect("it exists"), path);
}

#[test]
fn different_keys_have_different_names() {
    let name = file_name(&KEY);
    assert!(
        name.starts_with("megatron-") && name.ends_with(".plan"),
        "{name}"
    );
    let others = [
        Key {
            kind: Kind::BestFit,
            ..KEY
        },
        Key {
            options: [6, 0],
            ..KEY
        },
        Key {
            options: [5, 1],
            ..KEY
        },
        Key {
            data: [8; 32],
            ..KEY
        },
    ];
    for other in others {
        assert_ne!(file_name(&other), name);
    }
}

#[test]
fn a_damaged_or_truncated_file_is_rebuilt() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let folders = [folder.path().to_path_buf()];
    let path = find(&folders, write).expect("a temporary file can be written");
    let whole = fs::read(&path).expect("it was written");
    let mut flipped = whole.clone();
    flipped[whole.len() - 1] ^= 1;
    for damaged in [&flipped, &whole[..whole.len() - 1], &[], b"something else"] {
        fs::write(&path, damaged).expect("a temporary file can be written");
        let mut num_builds = 0;
        let outcome = find(&folders, |path, monitor| {
            assert!(!path.exists());
            num_builds += 1;
            write(path, monitor)
        });
        assert_eq!(
            (
                outcome.expect("a temporary file can be written"),
                num_builds
            ),
            (path.clone(), 1)
        );
        assert_eq!(fs::read(&path).expect("it was written"), whole);
    }
}

#[test]
fn temporary_files_of_a_killed_builder_are_removed() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let name = file_name(&KEY);
    for left in [format!(".{name}.lock"), format!(".{name}.abcdefghijkl.tmp")] {
        fs::write(folder.path().join(left), "").expect("a temporary file can be written");
    }
    let path = find(&[folder.path().into()], write).expect("a temporary file can be written");
    assert_right(&path);
    assert_eq!(names(folder.path()), [name]);
}

#[test]
fn a_read_only_folder_is_skipped() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a temporary file can be written");
    let mut folders = vec![file.join("below")];
    if is_bound_by_permissions(folder.path()) {
        folders.push(folder.path().join("probe"));
    }
    folders.push(folder.path().join("good"));
    let path = find(&folders, write).expect("the writable folder is used");
    assert_eq!(path.parent(), folders.last().map(PathBuf::as_path));
    assert_right(&path);
}

#[test]
fn the_error_names_all_read_only_folders() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a temporary file can be written");
    let folders = [file.join("a"), file.join("b")];
    let error = find(&folders, refuse).expect_err("there is no folder");
    assert_eq!(
        packtok_pbin::chain(&error),
        format!(
            "cannot write {} to any folder; set cache_dir to a writable folder: {}: Not a directory (os error 20); \
             {}: Not a directory (os error 20)",
            file_name(&KEY),
            folders[0].display(),
            folders[1].display()
        )
    );
    let error = find(&[], refuse).expect_err("there is no folder");
    let text = format!(
        "cannot write {} to any folder; set cache_dir to a writable folder",
        file_name(&KEY)
    );
    assert_eq!(packtok_pbin::chain(&error), text);
}

#[test]
fn a_full_disk_leads_to_the_next_folder() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let folders = [folder.path().join("full"), folder.path().join("good")];
    let path = find(&folders, |path, monitor| {
        if path.starts_with(&folders[0]) {
            return Err(Error::Io {
                path: path.into(),
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        write(path, monitor)
    });
    assert_eq!(
        path.expect("the writable folder is used").parent(),
        Some(&*folders[1])
    );
    assert!(names(&folders[0]).is_empty());
}

#[test]
fn an_error_in_the_data_is_returned() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let folders = [folder.path().to_path_buf(), folder.path().join("other")];
    let error = find(&folders, |_, _| {
        Err(Error::Io {
            path: folder.path().join("train.pbin"),
            source: std::io::ErrorKind::NotFound.into(),
        })
    });
    assert!(matches!(error, Err(Error::Io { path, .. }) if path.ends_with("train.pbin")));
    assert!(names(folder.path()).is_empty());
}

#[test]
#[ignore = "is run by the tests below as a process of its own"]
fn child() {
    let variable = |name| std::env::var(name).expect("the parent sets it");
    let folder = PathBuf::from(variable(FOLDER_VARIABLE));
    let num_awaited: u64 = variable(AWAITED_VARIABLE).parse().expect("it is a number");
    count(&folder.join("started"));
    let path = find(&[folder.join("plans")], |path, monitor| {
        count(&folder.join("builds"));
        // The first builder starts while the others are waiting.
        wait_for(&folder.join("started"), num_awaited);
        write(path, monitor)
    });
    assert_right(&path.expect("a temporary file can be written"));
}

/// Increments a number that processes share.
fn count(path: &Path) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    let mut file = file.expect("a temporary file can be written");
    file.write_all(b"x")
        .expect("a temporary file can be written");
}

fn counted(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn wait_for(path: &Path, number: u64) {
    while counted(path) < number {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a process that, if it builds, waits until this many processes have started.
fn start(folder: &Path, num_awaited: u64) -> Child {
    Command::new(std::env::current_exe().expect("the test is a program"))
        .args(["--exact", "cache::child", "--ignored"])
        .env(FOLDER_VARIABLE, folder)
        .env(AWAITED_VARIABLE, num_awaited.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("processes can be started")
}

fn assert_all_end_well(children: Vec<Child>) {
    for mut child in children {
        assert!(child.wait().expect("it was started").success());
    }
}

/// Starts a process that builds and never ends.
fn start_endless(folder: &Path) -> Child {
    let child = start(folder, u64::MAX);
    wait_for(&folder.join("builds"), 1);
    child
}

fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it was started");
}

#[test]
fn of_eight_processes_one_builds() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let children = (0..8).map(|_| start(folder.path(), 8)).collect();
    assert_all_end_well(children);
    assert_eq!(counted(&folder.path().join("builds")), 1);
    assert_eq!(names(&folder.path().join("plans")), [file_name(&KEY)]);
}

#[test]
fn a_waiting_process_replaces_a_killed_builder() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let first = start_endless(folder.path());
    let others = (0..3).map(|_| start(folder.path(), 4)).collect();
    wait_for(&folder.path().join("started"), 4);
    kill(first);
    assert_all_end_well(others);
    assert_eq!(counted(&folder.path().join("builds")), 2);
    assert_eq!(names(&folder.path().join("plans")), [file_name(&KEY)]);
}

#[test]
fn waiting_for_another_process_can_be_cancelled() {
    let folder = tempfile::tempdir().expect("a temporary file can be written");
    let first = start_endless(folder.path());
    let folders = [folder.path().join("plans")];
    let outcome = find_or_build(&folders, &KEY, &mut |_| ControlFlow::Break(()), &mut refuse);
    assert!(matches!(
        outcome,
        Err(Error::Jobs(packtok_jobs::Error::Cancelled))
    ));
    kill(first);
}
