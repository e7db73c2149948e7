//! Any bytes as a pbin: an error, or a reader whose methods return results or errors and never
//! panic.
//!
//! Seeds: the `*.pbin` files of `tests/golden`. Most edits fail at a checksum, so each input is
//! tried unchanged and again with the trailer's checksums recomputed.
#![no_main]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use packtok_pbin::Reader;
use tempfile::NamedTempFile;

const TAIL_BYTES: usize = 48;
const ENTRY_BYTES: usize = 32;

static FILE: LazyLock<NamedTempFile> =
    LazyLock::new(|| NamedTempFile::new().expect("a temporary file"));

fuzz_target!(|bytes: &[u8]| {
    open(bytes);
    let mut sealed = bytes.to_vec();
    if seal(&mut sealed).is_some() {
        open(&sealed);
    }
});

fn open(bytes: &[u8]) {
    let path = FILE.path();
    fs::write(path, bytes).expect("the temporary file takes the input");
    use_everything(path);
}

fn use_everything(path: &Path) {
    let Ok(reader) = Reader::open(path) else {
        return;
    };
    for i in (0..reader.len().min(1000)).chain([reader.len(), u64::MAX]) {
        if let Ok(span) = reader.document_span(i) {
            let document = reader.document(i).expect("a checked span has bytes");
            assert_eq!(document.len() as u64, span.end - span.start);
        }
        let _ = (reader.origin(i), reader.documents_of_source(i));
    }
    for stop in [0, reader.num_tokens(), u64::MAX] {
        let _ = (reader.tokens(0..stop), reader.tokens(1..stop));
    }
    if let Some(mask) = reader.loss_mask() {
        let num_tokens = mask.tokens(0..u64::MAX).count() as u64;
        assert_eq!(num_tokens, reader.num_tokens());
    }
    let _ = (reader.metadata(), reader.sources(), reader.data_crc32c());
    let _ = reader.verify(&mut |_| ControlFlow::Continue(()));
}

/// Recomputes the checksums of sections, table and tail, as far as they are within the file.
fn seal(file: &mut [u8]) -> Option<()> {
    let tail = file.len().checked_sub(TAIL_BYTES)?;
    let table = field(file, tail)?;
    let num_entries = tail.checked_sub(table)? / ENTRY_BYTES;
    for entry in (0..num_entries).map(|i| table + i * ENTRY_BYTES) {
        let (start, len) = (field(file, entry + 8)?, field(file, entry + 16)?);
        if let Some(section) = file.get(start..start.saturating_add(len)) {
            let crc = crc32c::crc32c(section);
            file[entry + 24..entry + 28].copy_from_slice(&crc.to_le_bytes());
        }
    }
    let crc = crc32c::crc32c(&file[table..tail]);
    file[tail + 32..tail + 36].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&file[tail..tail + 36]);
    file[tail + 36..tail + 40].copy_from_slice(&crc.to_le_bytes());
    Some(())
}

fn field(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..)?.first_chunk::<8>()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}
