//! Damage to header, trailer and lengths is detected when a file is opened or a document is
//! accessed.

use std::fs;
use std::process::Command;

use packtok_pbin::{Error, Reader, read_raw_index};

use super::{CHECKSUM, SOURCES, TABLE, TAIL, edited, fault, open_fault, verify_fault, with};
use crate::fixture::{documents_of, example};

#[test]
fn a_header_with_wrong_lengths_is_rejected() {
    assert_eq!(
        open_fault(b""),
        "file is 0 bytes, shorter than the 12-byte header"
    );
    assert_eq!(
        open_fault(b"\x10\0\0\0\0\0\0\0\x02\0\0\0abcd"),
        "header specifies 16 data bytes, file has 16 bytes in total; the file is truncated or the header is wrong"
    );
    assert_eq!(
        open_fault(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0abcd"),
        "header specifies 18446744073709551614 data bytes, file has 16 bytes in total; the file is truncated or the header is wrong"
    );
}

#[test]
fn a_file_truncated_anywhere_is_rejected_or_plain() {
    let whole = example();
    let stop = 0x3c;
    for len in 0..whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.pbin");
        fs::write(&path, &whole[..len]).unwrap();
        let opened = Reader::open(&path);
        if len == stop {
            assert_eq!(
                documents_of(&opened.unwrap()),
                crate::fixture::EXAMPLE_DOCUMENTS
            );
        } else {
            opened.unwrap_err();
        }
    }
}

#[test]
fn a_damaged_tail_or_table_is_rejected() {
    let mut bytes = example();
    bytes[TAIL] ^= 1;
    let (found, expected) = (
        crc32c::crc32c(&bytes[TAIL..TAIL + 36]),
        crc32c::crc32c(&example()[TAIL..TAIL + 36]),
    );
    let text =
        format!("CRC32C of the tail is {found:08x}, expected {expected:08x}; the file is damaged");
    assert_eq!(open_fault(&bytes), format!("trailer at byte 768: {text}"));
    let mut bytes = example();
    bytes[TABLE] ^= 2;
    let (found, expected) = (
        crc32c::crc32c(&bytes[TABLE..TAIL]),
        crc32c::crc32c(&example()[TABLE..TAIL]),
    );
    let text = format!(
        "CRC32C of the section table is {found:08x}, expected {expected:08x}; the file is damaged"
    );
    assert_eq!(open_fault(&bytes), format!("trailer at byte 640: {text}"));
    let short = [&example()[..26], b"packtok\x89"].concat();
    assert_eq!(
        open_fault(&short),
        "trailer at byte 0: trailer of 34 bytes does not fit in this file"
    );
}

#[test]
fn an_inconsistent_tail_is_rejected() {
    for (at, value, text) in [
        (
            TAIL + 28,
            2,
            "trailer at byte 768: format version is 2, this packtok reads 1; use a newer packtok",
        ),
        (
            TAIL + 24,
            4,
            "trailer at byte 768: copy of the header differs from the header; one of them is damaged",
        ),
        (
            TAIL + 8,
            1,
            "trailer at byte 768: trailer of 513 bytes does not fit in this file",
        ),
        (
            TAIL,
            0x81,
            "trailer at byte 768: section table is misplaced or does not have 1 to 1024 entries of 32 bytes",
        ),
        (0x40, 0, "trailer at byte 64: start magic is missing"),
        (
            0x3b,
            b'x',
            "trailer at byte 64: index before it does not end with STOP and at most 7 zero bytes",
        ),
        (
            0x3f,
            1,
            "trailer at byte 64: index before it does not end with STOP and at most 7 zero bytes",
        ),
    ] {
        let bytes = edited(|bytes| {
            bytes[at] = value;
            if at == TAIL + 8 {
                bytes[at + 1] = 2;
            }
        });
        assert_eq!(open_fault(&bytes), text);
    }
}

#[test]
fn an_inconsistent_section_table_is_rejected() {
    let entry = |number: usize, field: usize| TABLE + number * 32 + field;
    for (at, value, text) in [
        (
            entry(0, 28),
            1,
            "trailer at byte 640: section of type 1: reserved bits are set",
        ),
        (
            entry(1, 4),
            2,
            "trailer at byte 672: section of type 2: reserved bits are set",
        ),
        (
            entry(1, 0),
            1,
            "trailer at byte 672: section of type 1 follows one of type 1, expected ascending types",
        ),
        (
            entry(1, 8),
            0x70,
            "trailer at byte 672: section of type 2: starts at byte 112, expected 104",
        ),
        (
            entry(3, 17),
            9,
            "trailer at byte 736: section of type 4: 2389 bytes do not fit before the section table",
        ),
        (
            entry(0, 0),
            0,
            "trailer at byte 640: section of type 0 is required but unknown; use a newer packtok",
        ),
        (entry(1, 16), 3, "trailer at byte 672: padding is not zero"),
        (
            entry(1, 16),
            5,
            "trailer at byte 104: section of type 2: 5 bytes, expected 4",
        ),
        (
            entry(0, 16),
            0x1f,
            "trailer at byte 72: section of type 1: 31 bytes, expected 32",
        ),
        (CHECKSUM + 4, 1, "trailer at byte 672: padding is not zero"),
        (
            0x48,
            2,
            "trailer at byte 72: document offsets run from 2 to 14, expected 0 to 14",
        ),
        (
            0x60,
            12,
            "trailer at byte 72: document offsets run from 0 to 12, expected 0 to 14",
        ),
    ] {
        let bytes = edited(|bytes| bytes[at] = value);
        assert_eq!(open_fault(&bytes), text);
    }
    // The sources end eight bytes early, so the table no longer follows them.
    let bytes = edited(|bytes| {
        bytes[entry(3, 16)] = 0x50;
        bytes[SOURCES + 0x50..TABLE].fill(0);
    });
    assert_eq!(
        open_fault(&bytes),
        "trailer at byte 768: section table is misplaced or does not have 1 to 1024 entries of 32 bytes"
    );
    let bytes = edited(|bytes| {
        bytes[entry(0, 0)] = 0;
        bytes[entry(0, 4)] = 0;
    });
    assert_eq!(
        open_fault(&bytes),
        "trailer at byte 64: section of document offsets is missing"
    );
}

#[test]
fn a_damaged_span_is_rejected_at_access() {
    let bytes = with(0x48, &[0u64, 9, 10, 14].map(u64::to_le_bytes).concat());
    let text = "document 0 spans data bytes 0..9, expected whole 2-byte tokens within 0..14";
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.document(0).map(drop)),
        text
    );
    assert_eq!(verify_fault(&bytes), text);
    let bytes = with(0x48, &[0u64, 12, 10, 14].map(u64::to_le_bytes).concat());
    let text = "document 1 spans data bytes 12..10, expected whole 2-byte tokens within 0..14";
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.document(1).map(drop)),
        text
    );
}

#[test]
fn access_past_the_end_is_rejected() {
    let bytes = example();
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.document(3).map(drop)),
        "no document 3, file has 3"
    );
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.tokens(6..8).map(drop)),
        "no tokens 6..8, file has 7"
    );
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "the claim is about such ranges"
    )]
    let backwards = fault(&bytes, |path| Reader::open(path)?.tokens(3..2).map(drop));
    assert_eq!(backwards, "no tokens 3..2, file has 7");
}

#[test]
fn paths_that_are_not_regular_files_are_rejected_without_blocking() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for path in [folder.path(), &fifo] {
        let text = format!("{}: not a regular file", path.display());
        assert_eq!(Reader::open(path).unwrap_err().to_string(), text);
        assert_eq!(read_raw_index(path).unwrap_err().to_string(), text);
    }
    let missing = folder.path().join("missing");
    let error = Reader::open(&missing).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: I/O error", missing.display())
    );
    assert!(
        matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
}

#[test]
fn a_cause_that_a_message_repeats_is_shown_once() {
    /// As errors of some libraries, which print their cause and also return it.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot start: {source}")]
    struct Repeating {
        source: std::io::Error,
    }
    let source = std::io::Error::from_raw_os_error(2);
    assert_eq!(
        packtok_pbin::chain(&Repeating { source }),
        "cannot start: No such file or directory (os error 2)"
    );
}
