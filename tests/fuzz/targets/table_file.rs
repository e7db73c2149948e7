//! Any bytes as a Parquet or Arrow file: records or an error, and the same records in chunks of any
//! size.
//!
//! Seeds: the `*.parquet` and `*.arrow` files of `tests/golden`.
#![no_main]

use std::panic;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use packtok_corpus::{Body, Columns, Format, ReadOptions, Reader, Shown, Source, first_rows};
use packtok_formats::table::is_panic_contained;

/// More rows than a file of this size can have is a file that says so without having them.
const MAX_ROWS: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_contained_panics_from_aborting);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table");
    std::fs::write(&path, bytes).expect("room for a small file");
    let format = if bytes.starts_with(b"PAR1") {
        Format::Parquet
    } else {
        Format::Arrow
    };
    let source = Source {
        path,
        label: "table".to_owned(),
        bytes: bytes.len() as u64,
        format,
        input: 0,
        range: None,
        files: None,
    };
    for column in [".text", ".meta.text"] {
        let records = |chunk_bytes| records(&source, column, chunk_bytes);
        assert_eq!(records(1), records(1 << 18));
    }
    let shown = Shown {
        columns: 100,
        bytes: 1000,
    };
    let options = ReadOptions::for_json_lines(1 << 20);
    let (excerpt, _) = first_rows(&source, &options, 3, 25, shown);
    assert!(excerpt.rows.len() <= 25);
});

/// The libraries that decode tables panic on some damaged files, which packtok turns into errors;
/// libFuzzer's own hook would end the process before that.
fn keep_contained_panics_from_aborting() {
    let aborting = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_panic_contained() {
            aborting(info);
        }
    }));
}

/// The rows and lengths of the texts, or the error.
fn records(source: &Source, column: &str, chunk_bytes: usize) -> (Vec<(u64, u64)>, Option<String>) {
    let options = ReadOptions {
        chunk_bytes,
        columns: Columns::of_pattern(column),
        ..ReadOptions::for_json_lines(1 << 20)
    };
    let mut reader = Reader::new(vec![source.clone()], options);
    let mut found = Vec::new();
    while found.len() < MAX_ROWS {
        match reader.next_chunk(Vec::new()) {
            Ok(Some(chunk)) => found.extend(chunk.records().map(|record| {
                if let Body::Text(text) = record.body {
                    assert_eq!(text.len() as u64, record.len_bytes);
                }
                (record.offset, record.len_bytes)
            })),
            Ok(None) => return (found, None),
            Err(error) => {
                // How many rows precede the error depends on the chunks.
                found.clear();
                return (found, Some(error.to_string()));
            }
        }
    }
    found.truncate(MAX_ROWS);
    (found, None)
}
