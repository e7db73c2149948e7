//! Damage that only `verify` detects, and input that a writer rejects.

use std::fs;
use std::ops::ControlFlow;

use packtok_pbin::{Counts, Error, Metadata, Reader, TokenWidth, Writer};

use super::{METADATA, SOURCES, fault, verify_fault, with};
use crate::fixture::{example, example_metadata, golden, proceed};

#[test]
fn verify_detects_any_flipped_bit() {
    let whole = example();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.pbin");
    for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        let outcome = Reader::open(&path).and_then(|reader| reader.verify(&mut proceed));
        assert!(outcome.is_err(), "bit {bit} of byte {at}");
    }
}

#[test]
fn verify_compares_index_and_offsets() {
    let bytes = with(0x48, &[0u64, 6, 10, 14].map(u64::to_le_bytes).concat());
    assert_eq!(
        verify_fault(&bytes),
        "document 0 spans data bytes 0..8 in the index, but 0..6 in the trailer"
    );
    // The index `[(0, 14)]`, followed by zeros and the STOP byte.
    let mut bytes = example();
    bytes[0x1a..0x40].fill(0);
    bytes[0x1a..0x23].copy_from_slice(b"\x80\x04]K\0K\x0e\x86a");
    bytes[0x3f] = b'.';
    assert_eq!(
        verify_fault(&bytes),
        "document 0 spans data bytes 0..14 in the index, but 0..8 in the trailer"
    );
    let mut bytes = example();
    bytes[0x1a..0x40].fill(0);
    bytes[0x1a..0x1e].copy_from_slice(b"\x80\x04].");
    bytes[0x3f] = b'.';
    assert_eq!(
        verify_fault(&bytes),
        "number of documents in the index is 0, expected 3"
    );
}

#[test]
fn verify_detects_damage_that_opening_does_not() {
    let mut bytes = example();
    bytes[12] ^= 1;
    let (found, expected) = (
        crc32c::crc32c(&bytes[12..26]),
        crc32c::crc32c(&example()[12..26]),
    );
    let text = format!(
        "data at bytes 12..26: CRC32C is {found:08x}, expected {expected:08x}; the file is damaged"
    );
    assert_eq!(verify_fault(&bytes), text);
    let mut bytes = example();
    bytes[METADATA + 1] = b' ';
    let (found, expected) = (
        crc32c::crc32c(&bytes[METADATA..0x223]),
        crc32c::crc32c(&example()[METADATA..0x223]),
    );
    let text = format!(
        "trailer section of type 3 at bytes 112..547: CRC32C is {found:08x}, expected {expected:08x}; the file is damaged"
    );
    assert_eq!(verify_fault(&bytes), text);
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.metadata().map(drop)),
        text
    );
}

#[test]
fn invalid_json_is_rejected_when_it_is_read() {
    let bytes = with(METADATA, b"[");
    let text = "metadata at byte 112: not the expected JSON";
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.metadata().map(drop)),
        text
    );
    // The second line starts after the 49 bytes of the first.
    let bytes = with(SOURCES + 49, b"!");
    assert_eq!(bytes[SOURCES + 48], b'\n');
    let text = "sources at byte 601: not the expected JSON";
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.sources().map(drop)),
        text
    );
    assert_eq!(verify_fault(&bytes), text);
}

#[test]
fn verify_checks_the_counts() {
    for (from, to, text) in [
        (
            "\"documents\":3",
            "\"documents\":4",
            "number of documents in the metadata is 4, expected 3",
        ),
        (
            "\"tokens\":7",
            "\"tokens\":8",
            "number of tokens in the metadata is 8, expected 7",
        ),
        (
            "\"lines\":4",
            "\"lines\":5",
            "sum of packed, empty, blank and rejected lines in the metadata is 4, expected 5",
        ),
    ] {
        let bytes = example();
        let json = std::str::from_utf8(&bytes[METADATA..0x223])
            .unwrap()
            .replace(from, to);
        assert_eq!(verify_fault(&with(METADATA, json.as_bytes())), text);
    }
}

#[test]
fn verify_stops_on_break() {
    let reader = Reader::open(&golden("example.pbin")).unwrap();
    let error = reader.verify(&mut |_| ControlFlow::Break(())).unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
}

#[test]
fn a_writer_rejects_inconsistent_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pbin");
    let mut writer = Writer::create(&path, TokenWidth::U16, false).unwrap();
    let at = path.display();
    assert_eq!(
        writer.append(b"abcd", &[2]).unwrap_err().to_string(),
        format!("{at}: documents have 2 bytes in total, but 4 bytes of data were given")
    );
    assert_eq!(
        writer.append(b"abcd", &[2, 1, 1]).unwrap_err().to_string(),
        format!("{at}: document 1 of 1 bytes is not a whole number of 2-byte tokens")
    );
    writer.append(b"abcd", &[4]).unwrap();
    let metadata = Metadata {
        counts: Counts {
            documents: 1,
            ..Counts::default()
        },
        ..Metadata::default()
    };
    assert_eq!(
        writer.finish(&metadata, &[]).unwrap_err().to_string(),
        format!("{at}: number of tokens in the metadata is 0, expected 2")
    );
    let mut metadata = example_metadata();
    metadata.counts = Counts::default();
    metadata.options.field = "x".repeat(16 << 20);
    let error = Writer::create(&path, TokenWidth::U8, false)
        .unwrap()
        .finish(&metadata, &[])
        .unwrap_err();
    let Error::MetadataTooLarge { bytes, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        error.to_string(),
        format!("{at}: metadata is {bytes} bytes, at most 16777216 are allowed")
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
