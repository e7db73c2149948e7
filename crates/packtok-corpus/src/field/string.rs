//! Decodes one JSON string in a single pass: finds its end, validates it and unescapes it.
//!
//! Most of a corpus is text, so one pass instead of three matters. Anything unusual returns `None`
//! and is left to the general path.

use wide::u8x32;

use super::json::unit;

/// A decoded string and its end.
pub(super) struct Decoded {
    /// Length of the text in the buffer; `None` if the string has no escapes.
    pub(super) unescaped: Option<usize>,
    /// Position of the closing quote.
    pub(super) close: usize,
}

/// Bytes per block. Large enough that most blocks of source code contain escapes (one every 25
/// bytes), so that the branch on them is predictable.
const BLOCK: usize = 64;

/// Decodes the string whose content starts at `start` of `json`, into `room` if it has escapes.
pub(super) fn decode(json: &[u8], start: usize, room: &mut Vec<u8>) -> Option<Decoded> {
    let first = first_special(json, start)?;
    match json[first] {
        b'"' => Some(Decoded {
            unescaped: None,
            close: first,
        }),
        b'\\' => unescape(json, start, first, room),
        _ => None,
    }
}

/// Position of the first byte from `at` on that needs special handling.
fn first_special(json: &[u8], mut at: usize) -> Option<usize> {
    while let Some(block) = block_at(json, at) {
        let specials = specials(block);
        if specials != 0 {
            return Some(at + specials.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    let is_special = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
    Some(at + json.get(at..)?.iter().position(is_special)?)
}

/// Unescapes from `start` on; the first escape is at `first`.
fn unescape(json: &[u8], start: usize, first: usize, room: &mut Vec<u8>) -> Option<Decoded> {
    // An escape is longer than its character, and complete blocks are written.
    let most = json.len() - start + 2 * BLOCK;
    if room.len() < most {
        room.resize(most, 0);
    }
    let used = first - start;
    room[..used].copy_from_slice(&json[start..first]);
    let (at, used) = match unescape_blocks(json, first, used, room)? {
        Unescaped::Whole(decoded) => return Some(decoded),
        Unescaped::Until(at, used) => (at, used),
    };
    // The remaining bytes, padded with control characters. The padding ends the string with the
    // same failure as the end of the input.
    let mut rest = [0; 2 * BLOCK];
    rest[..json.len() - at].copy_from_slice(&json[at..]);
    match unescape_blocks(&rest, 0, used, room)? {
        Unescaped::Whole(decoded) => Some(Decoded {
            close: at + decoded.close,
            ..decoded
        }),
        Unescaped::Until(..) => None,
    }
}

/// The progress of unescaping.
enum Unescaped {
    /// Reached the end of the string.
    Whole(Decoded),
    /// Reached a position without another complete block; the second number is the used length of
    /// the buffer.
    Until(usize, usize),
}

/// Continues unescaping at `at` while there are complete blocks.
fn unescape_blocks(
    json: &[u8],
    mut at: usize,
    mut used: usize,
    room: &mut [u8],
) -> Option<Unescaped> {
    while let Some(block) = block_at(json, at) {
        *room[used..].first_chunk_mut()? = *block;
        let mut specials = specials(block);
        // Number of bytes of the block that were read, and the end of the text in the buffer.
        let mut read = 0;
        while specials != 0 {
            let special = specials.trailing_zeros() as usize;
            used += special - read;
            match json[at + special] {
                b'\\' => {}
                b'"' => {
                    return Some(Unescaped::Whole(Decoded {
                        unescaped: Some(used),
                        close: at + special,
                    }));
                }
                _ => return None,
            }
            let (num_written, num_read) = escape(json, at + special, &mut room[used..])?;
            used += num_written;
            read = special + num_read;
            if read >= BLOCK {
                break;
            }
            // The bytes after the escape are shifted to follow its character.
            let Some(behind) = block_at(json, at + read) else {
                return Some(Unescaped::Until(at + read, used));
            };
            *room[used..].first_chunk_mut()? = *behind;
            specials &= u64::MAX << read;
        }
        used += BLOCK.saturating_sub(read);
        at += read.max(BLOCK);
    }
    Some(Unescaped::Until(at, used))
}

fn block_at(json: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    json.get(at..)?.first_chunk()
}

/// A bit mask of the bytes that need special handling; the first byte is the lowest bit.
fn specials(block: &[u8; BLOCK]) -> u64 {
    let (halves, _) = block.as_chunks::<32>();
    let half = |bytes: [u8; 32]| {
        let bytes = u8x32::new(bytes);
        let is_control = bytes.min(u8x32::splat(b' ' - 1)).simd_eq(bytes);
        let is_quote = bytes.simd_eq(u8x32::splat(b'"'));
        let is_backslash = bytes.simd_eq(u8x32::splat(b'\\'));
        u64::from((is_control | is_quote | is_backslash).to_bitmask())
    };
    half(halves[0]) | half(halves[1]) << 32
}

/// The character for the letter after a backslash; 0 if it is not a simple escape. The letter is
/// hard to predict, so a table is faster than branches.
const STANDS_FOR: [u8; 256] = {
    let mut table = [0; 256];
    let letters = b"nrtbf\"\\/";
    let meanings = b"\n\r\t\x08\x0c\"\\/";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = meanings[i];
        i += 1;
    }
    table
};

/// Writes the character of the escape at `at`; returns the number of bytes written and read.
fn escape(json: &[u8], at: usize, room: &mut [u8]) -> Option<(usize, usize)> {
    let letter = *json.get(at + 1)?;
    room[0] = STANDS_FOR[usize::from(letter)];
    if room[0] != 0 {
        return Some((1, 2));
    }
    if letter != b'u' {
        return None;
    }
    let (c, read) = match unit(json, at)? {
        high @ 0xd800..=0xdbff => match unit(json, at + 6)? {
            low @ 0xdc00..=0xdfff => (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12),
            _ => return None,
        },
        unit => (unit, 6),
    };
    let c = char::from_u32(c)?;
    Some((c.encode_utf8(room).len(), read))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, specials};

    proptest! {
        #[test]
        fn special_bytes_are_those_that_a_string_cannot_contain_verbatim(
            letters in proptest::collection::vec(prop_oneof![any::<u8>(), 0..b'#', Just(b'\\')], BLOCK),
        ) {
            let block: [u8; BLOCK] = letters.try_into().unwrap();
            let special_bits = specials(&block);
            for (i, &byte) in block.iter().enumerate() {
                let expected = byte < b' ' || byte == b'"' || byte == b'\\';
                prop_assert_eq!(special_bits >> i & 1 == 1, expected, "byte {} is {}", i, byte);
            }
        }
    }
}
