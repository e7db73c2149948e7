//! Strict JSON checks according to RFC 8259. The more lenient jq library parses every line that
//! passes them to the same value.

use memchr::{memchr, memmem};
use serde::de::IgnoredAny;

use super::bad::{BadDocument, MAX_NESTING};

/// Returns `line` as text if it is one JSON value in UTF-8 and not nested too deeply.
///
/// # Errors
/// The first fault of the line.
pub fn check(line: &[u8]) -> Result<&str, BadDocument> {
    let line = utf8(line)?;
    serde_json::from_str::<IgnoredAny>(line).map_err(|cause| malformed(line, &cause))?;
    check_nesting(line.as_bytes())?;
    Ok(line)
}

/// A byte order mark. Some tools write it at the start of every file, so concatenated files
/// contain it between lines.
const BYTE_ORDER_MARK: char = '\u{feff}';

fn utf8(line: &[u8]) -> Result<&str, BadDocument> {
    simdutf8::basic::from_utf8(line).or_else(|_| {
        // Only this slower function returns the position.
        std::str::from_utf8(line).map_err(|cause| BadDocument::NotUtf8 {
            at_byte: cause.valid_up_to() + 1,
        })
    })
}

fn malformed(line: &str, cause: &serde_json::Error) -> BadDocument {
    // A line from an index may contain line breaks, and the library counts columns from the last
    // one.
    let breaks = memchr::memchr_iter(b'\n', line.as_bytes());
    let line_start = cause
        .line()
        .checked_sub(2)
        .and_then(|n| breaks.map(|at| at + 1).nth(n));
    let at_byte = line_start.unwrap_or(0) + cause.column();
    let has_mark = line.get(at_byte.saturating_sub(1)..);
    if has_mark.is_some_and(|rest| rest.starts_with(BYTE_ORDER_MARK)) {
        return BadDocument::ByteOrderMark { at_byte };
    }
    let text = cause.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    BadDocument::MalformedJson {
        at_byte,
        reason: reason.to_owned(),
    }
}

/// Checks the nesting of a line, given as the bytes before and after a string. The string is most
/// of the line, so skipping it saves time.
pub(super) fn check_nesting_around(
    json: &[u8],
    before: &[u8],
    after: &[u8],
) -> Result<(), BadDocument> {
    if num_brackets(before) + num_brackets(after) <= MAX_NESTING {
        return Ok(());
    }
    check_nesting(json)
}

/// Number of opening brackets, including those in strings.
fn num_brackets(json: &[u8]) -> usize {
    json.iter().filter(|&byte| byte | 0x20 == b'{').count()
}

/// Checks the nesting of JSON whose strings are well-formed.
pub(super) fn check_nesting(json: &[u8]) -> Result<(), BadDocument> {
    // Fast path: nearly every line has fewer brackets, including strings, than the nesting limit.
    if num_brackets(json) <= MAX_NESTING {
        return Ok(());
    }
    let mut nesting = 0usize;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at),
            b'[' | b'{' if nesting == MAX_NESTING => {
                return Err(BadDocument::TooDeep { at_byte: at + 1 });
            }
            b'[' | b'{' => nesting += 1,
            b']' | b'}' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Position of the quote that closes the string opened at `open`, or the end of the bytes.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(step) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += step;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// Checks that every surrogate escape in well-formed JSON is part of a pair.
pub(super) fn check_surrogates(json: &str) -> Result<(), BadDocument> {
    let bytes = json.as_bytes();
    if memmem::find(bytes, b"\\u").is_none() {
        return Ok(());
    }
    let mut at = 0;
    while let Some(step) = memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        at += step;
        at += match unit(bytes, at) {
            Some(0xd800..=0xdbff) if matches!(unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => return Err(BadDocument::LoneSurrogate { at_byte: at + 1 }),
            _ => 2,
        };
    }
    Ok(())
}

/// The UTF-16 code unit of a `\u` escape at `at`.
pub(super) fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Maximum number of digits of an integer: parsing takes quadratic time.
pub(super) const MAX_DIGITS: usize = 100_000;

/// Checks the length of the integers in well-formed JSON.
pub(super) fn check_integers(json: &str) -> Result<(), BadDocument> {
    let bytes = json.as_bytes();
    if bytes.len() <= MAX_DIGITS {
        return Ok(());
    }
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' {
            at = string_end(bytes, at);
        } else if byte.is_ascii_digit() {
            let is_digit = |byte: &&u8| byte.is_ascii_digit();
            let num_digits = bytes[at..].iter().take_while(is_digit).count();
            if num_digits > MAX_DIGITS {
                return Err(BadDocument::LongInteger {
                    at_byte: at + 1,
                    max_digits: MAX_DIGITS,
                });
            }
            at += num_digits;
            continue;
        }
        at += 1;
    }
    Ok(())
}
