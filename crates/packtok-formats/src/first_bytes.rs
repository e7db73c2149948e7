//! The bytes that files of a format start with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The first bytes of the regular file at `path`; `None` if there is none, or it is shorter.
pub(crate) fn first_bytes<const N: usize>(path: &Path) -> Option<[u8; N]> {
    let mut start = [0; N];
    // Opening a FIFO would wait for a writer.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = |mut file: File| file.read_exact(&mut start);
    (is_file && File::open(path).and_then(read).is_ok()).then_some(start)
}
