//! Index segments that are not a list of pairs, or not the one of the file's documents.

use std::fs;

use packtok_pbin::{Reader, read_raw_index};

use super::{fault, open_fault};
use crate::fixture::{example, proceed};

/// A file of one 2-byte token with this index.
fn with_index(index: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x02\0\0\0\0\0\0\0\x02\0\0\0\x07\0".to_vec();
    bytes.extend(index);
    bytes
}

#[test]
fn an_index_that_is_not_a_list_of_pairs_is_rejected() {
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
            // Opcodes after the last frame are valid; this list only has too few documents.
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
fn documents_that_are_not_contiguous_are_rejected() {
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
fn verify_detects_a_differently_encoded_index() {
    let mut bytes = example();
    // The protocol number, which does not affect the list.
    bytes[0x1b] = 5;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.pbin");
    fs::write(&path, &bytes).unwrap();
    let outcome = Reader::open(&path).and_then(|reader| reader.verify(&mut proceed));
    assert_eq!(
        outcome.unwrap_err().to_string(),
        format!(
            "{}: index differs at byte 27 from the encoding of its documents; the file was modified",
            path.display()
        )
    );
}

#[test]
fn an_invalid_raw_index_is_rejected() {
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
