//! Opens a pbin of five million documents: with its trailer, compared with parsing its pickled
//! index.
#![forbid(unsafe_code)]

use std::path::Path;

use criterion::{Criterion, Throughput};
use packtok_benches::pbin::publish;
use packtok_pbin::{Reader, TokenWidth, Writer};

const NUM_DOCUMENTS: u64 = 5_000_000;
const DOCUMENT_BYTES: u64 = 4;

/// Number of documents per write.
const BATCH: u64 = 1000;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let path = folder.path().join("documents.pbin");
    let plain_path = folder.path().join("plain.pbin");
    write(&path);
    write_without_trailer(&path, &plain_path);
    let open = |path: &Path| Reader::open(path).expect("the file can be read");

    let (reader, plain) = (open(&path), open(&plain_path));
    assert_eq!((reader.len(), plain.len()), (NUM_DOCUMENTS, NUM_DOCUMENTS));
    for i in (0..NUM_DOCUMENTS).step_by(997) {
        let span = reader.document_span(i).expect("the document exists");
        assert_eq!(span, plain.document_span(i).expect("the document exists"));
    }

    let mut group = criterion.benchmark_group("open");
    group.throughput(Throughput::Elements(NUM_DOCUMENTS));
    group.bench_function("packtok/trailer", |bencher| bencher.iter(|| open(&path)));
    group.bench_function("pickled-index", |bencher| {
        bencher.iter(|| open(&plain_path))
    });
    group.finish();
    criterion.final_summary();
}

fn write(path: &Path) {
    let mut writer = Writer::create(path, TokenWidth::U16, false).expect("the file can be made");
    let data = vec![7; (BATCH * DOCUMENT_BYTES) as usize];
    for _ in 0..NUM_DOCUMENTS / BATCH {
        writer
            .append(&data, &[DOCUMENT_BYTES; BATCH as usize])
            .expect("the documents can be written");
    }
    publish(writer, NUM_DOCUMENTS, NUM_DOCUMENTS * DOCUMENT_BYTES / 2);
}

/// Copies the file up to the end of its pickle, which gives the file that Modalities writes.
fn write_without_trailer(path: &Path, plain_path: &Path) {
    let mut bytes = std::fs::read(path).expect("the file can be read");
    let magic = memchr::memmem::rfind(&bytes, b"\x89packtok").expect("the file has a trailer");
    // There are only zeros between the pickle's STOP and the trailer.
    let stop = memchr::memrchr(b'.', &bytes[..magic]).expect("the file has a pickle");
    bytes.truncate(stop + 1);
    std::fs::write(plain_path, bytes).expect("the copy can be written");
}
