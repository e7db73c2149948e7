//! Files that the tools of other formats wrote, and the documents in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::TokenFile;

/// The folder of golden files of a format.
pub(crate) fn golden(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(format)
}

/// The documents of the golden files of a format, by the names of the files without endings.
pub(crate) fn golden_documents(format: &str) -> BTreeMap<String, Vec<Vec<u32>>> {
    let json = fs::read(golden(format).join("documents.json")).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// The ids of all documents of a file.
pub(crate) fn documents(file: &TokenFile) -> Vec<Vec<u32>> {
    let document = |i| {
        let bytes = file.tokens(file.document_tokens(i).unwrap()).unwrap();
        file.width().ids(bytes).collect()
    };
    (0..file.num_documents()).map(document).collect()
}
