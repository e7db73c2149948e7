//! Any bytes as a line: the fast path gives the same result as jq.
//!
//! A plain path uses the fast path; followed by `| .`, which changes nothing, it uses the general
//! path. Seeds: `tests/fuzz/seeds`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use packtok_corpus::field::Field;

const PATHS: [&str; 4] = [".t", ".a[0]", ".[-1].t", "."];

static WAYS: LazyLock<Vec<[Field; 2]>> = LazyLock::new(|| {
    let compiled = |pattern: &str| Field::compile(pattern).expect("the pattern is jq");
    let ways = PATHS.map(|path| [compiled(path), compiled(&format!("{path} | ."))]);
    ways.into()
});

fuzz_target!(|line: &[u8]| {
    for [short, general] in WAYS.iter() {
        assert!(short.is_plain_path() && !general.is_plain_path());
        let (mut by_path, mut by_filter) = (short.extractor(), general.extractor());
        assert_eq!(by_path.text(line).ok(), by_filter.text(line).ok());
    }
});
