//! Any bytes as a pickled list of pairs: pairs or a fault, and writing the pairs again preserves
//! them.
//!
//! Seeds: the `*.pickle` files of `tests/golden`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtok_pbin::{parse_pairs, write_pairs};

fuzz_target!(|bytes: &[u8]| {
    let Some(pairs) = parse(bytes) else { return };
    let written = write_pairs(Vec::new(), pairs.iter().copied()).expect("memory takes any write");
    assert_eq!(parse(&written), Some(pairs));
});

fn parse(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut pairs = Vec::new();
    let stop = parse_pairs(
        bytes,
        |_, fault| fault,
        |a, b| {
            pairs.push((a, b));
            Ok(())
        },
    );
    let stop = stop.ok()?;
    assert!(stop <= bytes.len() as u64);
    Some(pairs)
}
