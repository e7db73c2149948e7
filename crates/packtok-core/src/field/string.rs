//! Decodes one JSON string: finds its end, checks it and unescapes it, all in one pass.
//!
//! Texts are nearly all of a corpus, and they are passed over here once instead of once for each of
//! these. What is unusual is for others to judge: the answer is then `None`.

use wide::u8x32;

use super::json::unit;

/// A decoded string and where it ends.
pub(super) struct Decoded {
    /// Length of the text in the room for it; `None` if it stands in the JSON as it is.
    pub(super) unescaped: Option<usize>,
    /// Position of the closing quote.
    pub(super) close: usize,
}

/// Bytes looked at together. Escapes in texts with many, such as code, stand about this far apart.
const BLOCK: usize = 32;

/// Decodes the string whose inside starts at `start` of `json`, into `room` if it has escapes.
pub(super) fn decode(json: &[u8], start: usize, room: &mut Vec<u8>) -> Option<Decoded> {
    let mut at = start;
    while let Some(block) = block_at(json, at) {
        let num_plain = num_plain(block);
        at += num_plain;
        if num_plain < BLOCK {
            break;
        }
    }
    while !is_special(*json.get(at)?) {
        at += 1;
    }
    if json[at] == b'"' {
        return Some(Decoded {
            unescaped: None,
            close: at,
        });
    }
    unescape(json, start, at, room)
}

/// Unescapes from `start` on; the first escape is at `first`.
fn unescape(json: &[u8], start: usize, first: usize, room: &mut Vec<u8>) -> Option<Decoded> {
    // An escape is longer than what it stands for, and whole blocks are written.
    let most = json.len() - start + BLOCK;
    if room.len() < most {
        room.resize(most, 0);
    }
    let (mut at, mut used) = (first, first - start);
    room[..used].copy_from_slice(&json[start..first]);
    loop {
        let byte = *json.get(at)?;
        if byte == b'\\' {
            let (written, read) = escape(json, at, &mut room[used..])?;
            used += written;
            at += read;
        } else if byte == b'"' {
            return Some(Decoded {
                unescaped: Some(used),
                close: at,
            });
        } else if byte < b' ' {
            return None;
        }
        while let Some(block) = block_at(json, at) {
            room[used..used + BLOCK].copy_from_slice(block);
            let num_plain = num_plain(block);
            at += num_plain;
            used += num_plain;
            if num_plain < BLOCK {
                break;
            }
        }
        // Near the end of the line there is no whole block.
        while let Some(&byte) = json.get(at)
            && !is_special(byte)
        {
            room[used] = byte;
            at += 1;
            used += 1;
        }
    }
}

fn block_at(json: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    json.get(at..at + BLOCK)?.try_into().ok()
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// How many bytes at the start are plain parts of a string.
fn num_plain(block: &[u8; BLOCK]) -> usize {
    let bytes = u8x32::new(*block);
    let is_control = bytes.min(u8x32::splat(b' ' - 1)).simd_eq(bytes);
    let is_quote = bytes.simd_eq(u8x32::splat(b'"'));
    let is_backslash = bytes.simd_eq(u8x32::splat(b'\\'));
    let specials = (is_control | is_quote | is_backslash).to_bitmask();
    specials.trailing_zeros() as usize
}

/// What the letter behind a backslash stands for; 0 if it is none of these. Which letter comes next
/// is hard to foresee for a processor, so that a look-up beats a branch for each.
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

/// Writes the character that the escape at `at` stands for; returns the bytes written and read.
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

    use super::{BLOCK, is_special, num_plain};

    proptest! {
        #[test]
        fn blocks_end_at_their_first_special_byte(
            letters in proptest::collection::vec(any::<u8>(), BLOCK),
            plain in 0..=BLOCK,
            flip in any::<bool>(),
        ) {
            let mut block: [u8; BLOCK] = letters.try_into().unwrap();
            if flip {
                for byte in &mut block[..plain] {
                    *byte |= 0x80;
                }
            }
            let expected = block.iter().take_while(|&&byte| !is_special(byte)).count();
            prop_assert_eq!(num_plain(&block), expected);
        }
    }
}
