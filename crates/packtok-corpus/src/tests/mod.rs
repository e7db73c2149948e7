mod expanding;
mod formats;
mod reading;
#[cfg(feature = "tables")]
mod tables;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::error::{Error, Result};
use crate::*;

fn source(path: &Path) -> Source {
    expand(&[path.to_str().unwrap().to_owned()], &Selection::default())
        .unwrap()
        .sources
        .remove(0)
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> Source {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    source(&path)
}

/// The message without the folder's name, which differs from run to run.
fn message(error: &Error, folder: &TempDir) -> String {
    error
        .to_string()
        .replace(&format!("{}/", folder.path().display()), "")
}
