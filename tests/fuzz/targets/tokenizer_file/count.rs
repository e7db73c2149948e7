//! Counts the pairs of a file and a text that were compared.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::compare::Compared;

/// Pairs between two progress lines.
const SHOWN: u64 = 10_000;

#[derive(Default)]
struct Counts {
    pairs: u64,
    refused: u64,
    files: BTreeMap<&'static str, u64>,
}

static COUNTS: Mutex<Option<Counts>> = Mutex::new(None);

/// Adds a case, and prints a progress line from time to time.
pub(crate) fn add(compared: &Compared) {
    let mut counts = COUNTS.lock().expect("no panic while it is locked");
    let counts = counts.get_or_insert_default();
    match compared.engine {
        Some(engine) => *counts.files.entry(engine).or_default() += 1,
        None => counts.refused += 1,
    }
    let before = counts.pairs;
    counts.pairs += compared.pairs;
    if before / SHOWN < counts.pairs / SHOWN {
        counts.print();
    }
}

pub(crate) fn print() {
    let mut counts = COUNTS.lock().expect("no panic while it is locked");
    counts.get_or_insert_default().print();
}

impl Counts {
    fn print(&self) {
        let files = self
            .files
            .iter()
            .map(|(engine, files)| format!("{files} by {engine}"));
        let files = files.collect::<Vec<_>>().join(", ");
        eprintln!(
            "{} pairs of a file and a text; files: {files}; {} refused by both or as documented",
            self.pairs, self.refused
        );
    }
}
