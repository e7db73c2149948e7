//! Damaged files: each is rejected with a message that says what is wrong and where.

mod index;
mod opening;
mod verifying;

use std::fs;
use std::path::Path;

use packtok_pbin::{Error, Reader};

use crate::fixture::{example, proceed, seal};

// File offsets in the worked example.
const CHECKSUM: usize = 0x68;

const METADATA: usize = 0x70;

const SOURCES: usize = 0x228;

const TABLE: usize = 0x280;

const TAIL: usize = 0x300;

/// The message, without the path, of checking a file with these bytes.
fn fault(bytes: &[u8], check: impl Fn(&Path) -> Result<(), Error>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pbin");
    fs::write(&path, bytes).unwrap();
    let text = check(&path).unwrap_err().to_string();
    text.strip_prefix(&format!("{}: ", path.display()))
        .unwrap_or_else(|| panic!("no path: {text}"))
        .to_owned()
}

fn open_fault(bytes: &[u8]) -> String {
    fault(bytes, |path| Reader::open(path).map(drop))
}

fn verify_fault(bytes: &[u8]) -> String {
    fault(bytes, |path| Reader::open(path)?.verify(&mut proceed))
}

/// The worked example after `edit`, with its checksums recomputed.
fn edited(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = example();
    edit(&mut bytes);
    seal(&mut bytes).unwrap();
    bytes
}

/// The worked example with `content` written at `at`, and its checksums recomputed.
fn with(at: usize, content: &[u8]) -> Vec<u8> {
    edited(|bytes| bytes[at..at + content.len()].copy_from_slice(content))
}
