//! The header of a `.bin` file.

use std::path::Path;

use packtok_pbin::TokenWidth;

use crate::error::{Error, Fault, Result};

/// Bytes of the header; the tokens start here.
pub const HEADER_BYTES: u64 = 1024;
/// The most tokens that a header can count.
pub const MAX_TOKENS: u64 = i32::MAX as u64;

/// llm.c's files of uint16, which all readers take.
const MAGIC_U16: i32 = 20_240_520;
/// llm.c's files of uint32.
const MAGIC_U32: i32 = 20_240_801;
/// NeMo AutoModel's files, whose header has the bytes of a token.
const MAGIC_OF_ANY_WIDTH: i32 = 278_895_051;

/// The version of files with this magic; `None` for an unknown magic.
pub(super) fn version_of(magic: i32) -> Option<i32> {
    match magic {
        MAGIC_U16 | MAGIC_OF_ANY_WIDTH => Some(1),
        MAGIC_U32 => Some(7),
        _ => None,
    }
}

/// What a header records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) width: TokenWidth,
    pub(super) num_tokens: u64,
}

impl Header {
    /// Parses the header of the file with content `file`, which starts with a known magic. `path` is
    /// for messages.
    pub(super) fn parse(file: &[u8], path: &Path) -> Result<Self> {
        let fault = |offset, what, found: String, expected: String| {
            Error::fault(Fault {
                path: path.into(),
                offset,
                what,
                found,
                expected,
                remedy: "the file is truncated or damaged, write it again",
            })
        };
        let num_bytes = file.len() as u64;
        if num_bytes < HEADER_BYTES {
            let expected = format!("at least {HEADER_BYTES}");
            let what = "the number of bytes";
            return Err(fault(num_bytes, what, num_bytes.to_string(), expected));
        }
        let number = |i: usize| {
            let bytes = file.get(4 * i..4 * i + 4);
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, i32::from_le_bytes)
        };
        let (magic, version) = (number(0), number(1));
        let expected = version_of(magic).unwrap_or(1);
        if version != expected {
            let expected = expected.to_string();
            return Err(fault(4, "the version", version.to_string(), expected));
        }
        let width = match (magic, number(3)) {
            (MAGIC_U16, _) | (MAGIC_OF_ANY_WIDTH, 2) => TokenWidth::U16,
            (MAGIC_U32, _) | (MAGIC_OF_ANY_WIDTH, 4) => TokenWidth::U32,
            (_, other) => {
                let what = "the number of bytes of a token";
                return Err(fault(12, what, other.to_string(), "2 or 4".to_owned()));
            }
        };
        let data_bytes = num_bytes - HEADER_BYTES;
        let num_tokens = u64::try_from(number(2)).ok();
        match num_tokens {
            Some(num_tokens) if num_tokens * width.bytes() == data_bytes => {
                Ok(Self { width, num_tokens })
            }
            _ => {
                let expected = format!(
                    "{}, for the {data_bytes} bytes after the header",
                    data_bytes / width.bytes()
                );
                Err(fault(
                    8,
                    "the number of tokens",
                    number(2).to_string(),
                    expected,
                ))
            }
        }
    }
}

/// The header of a file with so many tokens. Files of uint16 have the magic of llm.c, which all
/// readers take; those of uint32 have NeMo AutoModel's.
///
/// # Errors
/// [`Error::LlmCTooLong`]. `path` is for the message.
pub(super) fn encode_header(width: TokenWidth, num_tokens: u64, path: &Path) -> Result<Vec<u8>> {
    let Ok(count) = i32::try_from(num_tokens) else {
        return Err(Error::LlmCTooLong {
            path: path.into(),
            tokens: num_tokens,
        });
    };
    let numbers = match width {
        TokenWidth::U8 | TokenWidth::U16 => [MAGIC_U16, 1, count, 0],
        TokenWidth::U32 => [MAGIC_OF_ANY_WIDTH, 1, count, 4],
    };
    let mut header = numbers.map(i32::to_le_bytes).concat();
    header.resize(HEADER_BYTES as usize, 0);
    Ok(header)
}
