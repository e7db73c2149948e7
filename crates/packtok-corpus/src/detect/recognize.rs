//! Recognizes binary formats by their first bytes, so that the error names the format and a remedy.
//!
//! The check runs when a file is opened and on the first decompressed bytes. No JSON document can
//! start with these bytes.

use std::io;

use crate::Source;
use crate::detect::other_format::OtherFormat;
use crate::error::{Error, Result};
use crate::inputs::file_name::TOKENS;

/// Number of bytes that [`binary`] needs; the magic of a tar archive is in its first block.
pub(crate) const HEAD_BYTES: usize = 512;

/// The binary format or encoding of a file that starts with `head`; JSON lines cannot start with
/// it.
///
/// gzip and zstd are not included, because packtok reads them. `is_within` is set for the content
/// of a compressed file.
pub(crate) fn binary(head: &[u8], is_within: bool) -> Option<OtherFormat> {
    Some(match head {
        [b'P', b'A', b'R', b'1', ..] => OtherFormat::Parquet,
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [b'F', b'E', b'A', b'1', ..] => {
            OtherFormat::Arrow
        }
        [b'O', b'b', b'j', 1, ..] => OtherFormat::Avro,
        [b'O', b'R', b'C', ..] if head.get(3).is_some_and(|byte| *byte < b' ') => OtherFormat::Orc,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => OtherFormat::Numpy,
        [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => OtherFormat::Hdf5,
        _ if head.starts_with(b"SQLite format 3\0") => OtherFormat::Sqlite,
        [b'%', b'P', b'D', b'F', b'-', ..] => OtherFormat::Pdf,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => OtherFormat::Zip,
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => OtherFormat::SevenZip,
        _ if head.get(257..262) == Some(b"ustar") => OtherFormat::Tar,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => OtherFormat::Xz,
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x31,
            0x41,
            0x59,
            0x26,
            0x53,
            0x59,
            ..,
        ] => OtherFormat::Bzip2,
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x17,
            0x72,
            0x45,
            0x38,
            0x50,
            0x90,
            ..,
        ] => OtherFormat::Bzip2,
        [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => OtherFormat::Lz4,
        _ if head.starts_with(b"\xff\x06\x00\x00sNaPpY") => OtherFormat::Snappy,
        [0x1f, 0x8b, 8, ..] if is_within => OtherFormat::TwiceGzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] if is_within => OtherFormat::TwiceZstd,
        _ if head.starts_with(b"MMIDIDX\0") => OtherFormat::TokenIndex,
        _ if is_pbin(head) => OtherFormat::Pbin,
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => OtherFormat::Utf32,
        [0xff, 0xfe, ..] => OtherFormat::Utf16Le,
        [0xfe, 0xff, ..] => OtherFormat::Utf16Be,
        [a, 0, b, 0, ..] if is_text(*a) && is_text(*b) => OtherFormat::Utf16Le,
        [0, a, 0, b, ..] if is_text(*a) && is_text(*b) => OtherFormat::Utf16Be,
        _ => return None,
    })
}

/// Whether a file starts with the header of a pbin: the length of the tokens, below 2^56 bytes, and the
/// bytes of one token. Its zeros cannot be in a text, whatever its encoding.
fn is_pbin(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, _, _, _, 0, 1 | 2 | 4, 0, 0, 0, ..])
}

/// Whether a file has an extension of token files and contains zeros, which no text contains.
fn is_of_tokens(source: &Source, head: &[u8]) -> bool {
    let extension = source.path.extension().unwrap_or_default();
    let is_named = |ending: &&str| extension.eq_ignore_ascii_case(&ending[1..]);
    TOKENS.iter().any(is_named) && head.contains(&0)
}

/// Whether a byte is an ASCII character of text.
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// The first bytes of a file, enough for [`binary`].
pub(crate) fn first_bytes(file: &mut impl io::Read) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let len = fill(&mut head, |buffer| file.read(buffer))?;
    head.truncate(len);
    Ok(head)
}

/// Checks that the start of a file is not the start of another binary format.
pub(crate) fn check(source: &Source, head: &[u8], is_within: bool) -> Result<()> {
    let of_tokens = || (is_of_tokens(source, head)).then_some(OtherFormat::Tokens);
    match binary(head, is_within).or_else(of_tokens) {
        None => Ok(()),
        Some(format) => Err(Error::OtherFormat {
            path: source.path.clone(),
            found: format,
            expected: source.format,
        }),
    }
}

/// Fills `buffer` from `read` as far as possible, and returns the number of bytes.
pub(crate) fn fill(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(len)
}
