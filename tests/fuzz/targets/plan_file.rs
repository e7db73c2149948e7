//! Any bytes as a plan or a split: an error, or results within the data, never a panic.
//!
//! Seeds: the `*.plan` files of `tests/golden`. Most edits fail at the header, so each input is
//! tried unchanged and again with the header's checksum, length and fingerprint corrected.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use packtok_dataset::plans::plan::BlockPlan;
use packtok_dataset::plans::split::{Side, SplitRuns};
use tempfile::NamedTempFile;

const HEADER_BYTES: usize = 128;
const DATA: [u8; 32] = [7; 32];

static FILE: LazyLock<NamedTempFile> =
    LazyLock::new(|| NamedTempFile::new().expect("a temporary file"));

fuzz_target!(|bytes: &[u8]| {
    open(bytes);
    let mut sealed = bytes.to_vec();
    if seal(&mut sealed) {
        open(&sealed);
    }
});

fn open(bytes: &[u8]) {
    let path = FILE.path();
    fs::write(path, bytes).expect("the temporary file takes the input");
    use_plan(path);
    use_split(path, Side::Train);
    use_split(path, Side::Validation);
}

fn use_plan(path: &Path) {
    let Ok(plan) = BlockPlan::open(path, &DATA) else {
        return;
    };
    let _ = plan.verify();
    let num_blocks = plan.num_blocks();
    for block in (0..num_blocks.min(1000)).chain([num_blocks, u64::MAX]) {
        let Ok(pieces) = plan.pieces(block) else {
            continue;
        };
        let mut len_tokens = 0;
        for piece in pieces {
            assert!(piece.start < piece.end && piece.end <= plan.num_tokens());
            len_tokens += piece.end - piece.start;
        }
        assert!((1..=plan.block_len_tokens()).contains(&len_tokens));
    }
}

fn use_split(path: &Path, side: Side) {
    let Ok(runs) = SplitRuns::open(path, &DATA, side) else {
        return;
    };
    let _ = (runs.verify(), runs.fingerprint());
    let (documents, tokens) = runs.totals();
    for i in places(runs.num_documents()) {
        if let Ok(document) = runs.document(i) {
            assert!(document < documents);
        }
    }
    for i in places(runs.num_tokens()) {
        if let Ok((token, rest)) = runs.token(i) {
            assert!(rest > 0 && token < tokens && rest <= tokens - token);
        }
    }
}

/// The first positions, and the last one.
fn places(number: u64) -> impl Iterator<Item = u64> {
    (0..number.min(1000)).chain(number.checked_sub(1))
}

/// Corrects the header fields that are checked; returns whether the file has a header.
fn seal(file: &mut [u8]) -> bool {
    if file.len() < HEADER_BYTES {
        return false;
    }
    let body_bytes = (file.len() - HEADER_BYTES) as u64;
    file[..8].copy_from_slice(b"\x89pktplan");
    file[8..12].copy_from_slice(&1u32.to_le_bytes());
    file[32..64].copy_from_slice(&DATA);
    file[104..112].copy_from_slice(&body_bytes.to_le_bytes());
    let crc = crc32c::crc32c(&file[..124]);
    file[124..128].copy_from_slice(&crc.to_le_bytes());
    true
}
