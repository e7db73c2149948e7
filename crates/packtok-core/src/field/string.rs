//! Decodes one JSON string: finds its end, checks it and unescapes it, all in one pass.
//!
//! Texts are nearly all of a corpus, and they are passed over here once instead of once for each of
//! these. What is unusual is for others to judge: the answer is then `None`.

use super::json::unit;

/// A decoded string and where it ends.
pub(super) struct Decoded {
    /// Length of the text in the room for it; `None` if it stands in the JSON as it is.
    pub(super) unescaped: Option<usize>,
    /// Position of the closing quote.
    pub(super) close: usize,
}

/// Bytes looked at together.
const WORD: usize = 8;

/// Decodes the string whose inside starts at `start` of `json`, into `room` if it has escapes.
pub(super) fn decode(json: &[u8], start: usize, room: &mut Vec<u8>) -> Option<Decoded> {
    let mut at = start;
    while let Some(word) = word_at(json, at) {
        let first = first_special(word);
        at += first;
        if first < WORD {
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
    // An escape is longer than what it stands for, and whole words are written.
    let most = json.len() - start + WORD;
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
        while let Some(word) = word_at(json, at) {
            room[used..used + WORD].copy_from_slice(&word);
            let num_plain = first_special(word);
            at += num_plain;
            used += num_plain;
            if num_plain < WORD {
                break;
            }
        }
        // Near the end of the line there is no whole word.
        while let Some(&byte) = json.get(at)
            && !is_special(byte)
        {
            room[used] = byte;
            at += 1;
            used += 1;
        }
    }
}

fn word_at(json: &[u8], at: usize) -> Option<[u8; WORD]> {
    json.get(at..at + WORD)?.try_into().ok()
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Position of the first byte that is no plain part of a string; 8 if all are.
fn first_special(word: [u8; WORD]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(word);
    // The top bit of each byte that is less than `limit`. A borrow can spoil the bytes above one
    // that is, never those below, and only the first counts.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES << 7);
    special.trailing_zeros() as usize / 8
}

/// Writes the character that the escape at `at` stands for; returns the bytes written and read.
fn escape(json: &[u8], at: usize, room: &mut [u8]) -> Option<(usize, usize)> {
    room[0] = match json.get(at + 1)? {
        b'n' => b'\n',
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => {
            let (c, read) = match unit(json, at)? {
                high @ 0xd800..=0xdbff => match unit(json, at + 6)? {
                    low @ 0xdc00..=0xdfff => {
                        (0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
                    }
                    _ => return None,
                },
                unit => (unit, 6),
            };
            let c = char::from_u32(c)?;
            return Some((c.encode_utf8(room).len(), read));
        }
        _ => return None,
    };
    Some((1, 2))
}
