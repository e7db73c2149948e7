//! Broken files: each is refused by a message that says what and where.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use packtok_pbin::{Counts, Error, Metadata, Reader, TokenWidth, Writer, read_raw_index};

use crate::fixture::{documents_of, example, example_metadata, go_on, golden, seal};

// Places in the worked example.
const CHECKSUM: usize = 0x68;
const METADATA: usize = 0x70;
const SOURCES: usize = 0x228;
const TABLE: usize = 0x280;
const TAIL: usize = 0x300;

/// The message, without the path, of what is wrong with a file of these bytes.
fn fault(bytes: &[u8], check: impl Fn(&Path) -> Result<(), Error>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pbin");
    fs::write(&path, bytes).unwrap();
    let text = check(&path).unwrap_err().to_string();
    text.strip_prefix(&format!("{}: ", path.display()))
        .unwrap_or_else(|| panic!("no path: {text}"))
        .to_owned()
}

fn open_fault(bytes: &[u8]) -> String {
    fault(bytes, |path| Reader::open(path).map(drop))
}

fn verify_fault(bytes: &[u8]) -> String {
    fault(bytes, |path| Reader::open(path)?.verify(&mut go_on))
}

/// The worked example after `edit`, with its checksums made right again.
fn edited(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = example();
    edit(&mut bytes);
    seal(&mut bytes).unwrap();
    bytes
}

/// The worked example with `content` written at `at`, and its checksums made right again.
fn with(at: usize, content: &[u8]) -> Vec<u8> {
    edited(|bytes| bytes[at..at + content.len()].copy_from_slice(content))
}

/// A file of one 2-byte token with this index.
fn with_index(index: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x02\0\0\0\0\0\0\0\x02\0\0\0\x07\0".to_vec();
    bytes.extend(index);
    bytes
}

#[test]
fn header_that_lies_is_refused() {
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
fn index_that_is_no_list_of_pairs_is_refused() {
    for (index, text) in [
        (
            &b""[..],
            "index at byte 14: pickle ends without STOP; the file is truncated",
        ),
        (
            b"\x80\x04](K\0K",
            "index at byte 20: pickle ends without STOP; the file is truncated",
        ),
        (
            b"\x80\x04cos\nsystem\n.",
            "index at byte 16: opcode GLOBAL is not allowed; an index is a pickled list of pairs of integers",
        ),
        (
            b"\x80\x04]\x94\x8c\x05posix.",
            "index at byte 18: opcode SHORT_BINUNICODE is not allowed; an index is a pickled list of pairs of integers",
        ),
        (
            b"\x80\x04\xff",
            "index at byte 16: 0xff is not a pickle opcode; this is not an index",
        ),
        (
            b"\xff",
            "index at byte 14: 0xff is not a pickle opcode; this is not an index",
        ),
        (
            b"].",
            "index at byte 14: opcode EMPTY_LIST is not valid at this position in a list of pairs",
        ),
        (
            b"\x80\x04.",
            "index at byte 16: opcode STOP is not valid at this position in a list of pairs",
        ),
        (
            b"\x80\x04]K\0K\x02K\x02",
            "index at byte 21: opcode BININT1 is not valid at this position in a list of pairs",
        ),
        (
            b"\x80\x04](K\0K\x02\x86.",
            "index at byte 23: opcode STOP is not valid at this position in a list of pairs",
        ),
        (
            b"\x80\x06].",
            "index at byte 14: pickle protocol 6, expected 2 to 5",
        ),
        (
            // Opcodes behind the last frame are fine; this list only has too few documents.
            b"\x80\x04\x95\x02\0\0\0\0\0\0\0]\x94.",
            "documents end at data byte 0, data segment ends at 2",
        ),
        (
            b"\x80\x04\x95\x09\0\0\0\0\0\0\0]\x94.",
            "index at byte 16: pickle ends without STOP; the file is truncated",
        ),
        (
            b"\x80\x04\x95\x04\0\0\0\0\0\0\0].  ",
            "index at byte 26: frame of 4 bytes does not match the opcodes around it",
        ),
        (
            b"\x80\x04](J\xff\xff\xff\xffK\x02\x86e.",
            "index at byte 18: offset or length is negative",
        ),
        (
            b"\x80\x04](\x8a\x09\0\0\0\0\0\0\0\0\x01K\x02\x86e.",
            "index at byte 18: offset or length exceeds 64 bits",
        ),
    ] {
        assert_eq!(open_fault(&with_index(index)), text);
    }
}

#[test]
fn documents_that_are_not_back_to_back_are_refused() {
    for (index, text) in [
        (
            &b"\x80\x04](K\x02K\x02\x86e."[..],
            "document 0 starts at data byte 2, expected 0, the end of the previous document; the index is wrong",
        ),
        (
            b"\x80\x04](K\0K\x01\x86e.",
            "document 0 spans data bytes 0..1, expected whole 2-byte tokens within 0..2",
        ),
        (
            b"\x80\x04](K\0K\x04\x86e.",
            "document 0 spans data bytes 0..4, expected whole 2-byte tokens within 0..2",
        ),
        (
            b"\x80\x04](K\0\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0\x86e.",
            "document 0 spans data bytes 0..18446744073709551615, expected whole 2-byte tokens within 0..2",
        ),
        (
            b"\x80\x04](K\0K\0\x86e.",
            "documents end at data byte 0, data segment ends at 2",
        ),
        (
            b"\x80\x04](K\0K\x02\x86e.xyz",
            "index ends at byte 25, but the 3 bytes after it are not a trailer; the file is truncated or damaged",
        ),
    ] {
        assert_eq!(open_fault(&with_index(index)), text);
    }
}

#[test]
fn file_cut_anywhere_is_refused_or_plain() {
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
fn any_flipped_bit_is_found() {
    let whole = example();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.pbin");
    for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        let found = Reader::open(&path).and_then(|reader| reader.verify(&mut go_on));
        assert!(found.is_err(), "bit {bit} of byte {at}");
    }
}

#[test]
fn an_index_written_in_another_way_is_found() {
    let mut bytes = example();
    // The protocol's number, which says nothing about the list.
    bytes[0x1b] = 5;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.pbin");
    fs::write(&path, &bytes).unwrap();
    let found = Reader::open(&path).and_then(|reader| reader.verify(&mut go_on));
    assert_eq!(
        found.unwrap_err().to_string(),
        format!(
            "{}: index differs at byte 27 from the encoding of its documents; the file was modified",
            path.display()
        )
    );
}

#[test]
fn damaged_tail_and_table_are_refused() {
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
fn tail_that_lies_is_refused() {
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
fn section_table_that_lies_is_refused() {
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
fn damaged_span_is_refused_at_access() {
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
fn access_past_the_end_is_refused() {
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
fn verify_compares_index_and_offsets() {
    let bytes = with(0x48, &[0u64, 6, 10, 14].map(u64::to_le_bytes).concat());
    assert_eq!(
        verify_fault(&bytes),
        "document 0 spans data bytes 0..8 in the index, but 0..6 in the trailer"
    );
    // The index `[(0, 14)]`, padded with zeros that belong to nothing or not.
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
fn verify_finds_damage_that_opening_does_not() {
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
fn json_that_is_none_is_refused_when_it_is_read() {
    let bytes = with(METADATA, b"[");
    let text = "metadata at byte 112: not the expected JSON";
    assert_eq!(
        fault(&bytes, |path| Reader::open(path)?.metadata().map(drop)),
        text
    );
    // The second line starts behind the 49 bytes of the first.
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
fn verify_checks_the_accounting() {
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
fn verify_stops_when_asked() {
    let reader = Reader::open(&golden("example.pbin")).unwrap();
    let error = reader.verify(&mut |_| ControlFlow::Break(())).unwrap_err();
    assert_eq!(error.to_string(), "cancelled");
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
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
fn raw_index_that_is_none_is_refused() {
    let raw = |bytes: &[u8]| fault(bytes, |path| read_raw_index(path).map(drop));
    assert_eq!(
        raw(b""),
        "index at byte 0: pickle ends without STOP; the file is truncated"
    );
    assert_eq!(
        raw(b"\x80\x04].\n"),
        "index ends at byte 4, but the 1 bytes after it are not a trailer; the file is truncated or damaged"
    );
    assert_eq!(
        raw(b"\x80\x04]K\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0\x86a."),
        "index at byte 0: offset 2 plus length 18446744073709551615 exceeds 64 bits"
    );
}

#[test]
fn writer_refuses_what_is_inconsistent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pbin");
    let mut writer = Writer::create(&path, TokenWidth::U16).unwrap();
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
    let error = Writer::create(&path, TokenWidth::U8)
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
