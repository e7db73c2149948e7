//! Bytes without a token. Texts that contain one fall back: the reference engine leaves the byte out, or writes the
//! unknown token.

/// Bytes that are compared with each missing byte at a time.
const BLOCK: usize = 4096;

/// Whether a byte occurs in some text in UTF-8.
pub(super) fn occurs_in_utf8(byte: u8) -> bool {
    !matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}

/// The bytes that occur in texts and have no token.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MissingBytes(Vec<u8>);

impl MissingBytes {
    /// Adds a byte that has no token.
    pub(super) fn push(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Whether a text contains one of them.
    #[inline]
    pub(super) fn are_in(&self, text: &[u8]) -> bool {
        !self.0.is_empty() && self.are_in_blocks(text)
    }

    /// Each byte is searched for in all of a block without a branch, which compiles to vector instructions.
    fn are_in_blocks(&self, text: &[u8]) -> bool {
        text.chunks(BLOCK).any(|block| {
            let bits = self.0.iter().fold(0, |bits, &missing| {
                let or_equal = |bits: u8, &byte: &u8| bits | u8::from(byte == missing);
                bits | block.iter().fold(0, or_equal)
            });
            bits != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_wherever_they_are() {
        let missing = MissingBytes(vec![0x07, 0xf1]);
        for len in [0, 1, 31, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let mut text = vec![b'a'; len];
            assert!(!missing.are_in(&text));
            assert!(!MissingBytes::default().are_in(&text));
            for at in [0, len / 2, len.saturating_sub(1)] {
                for &byte in missing.as_slice() {
                    if at < len {
                        text[at] = byte;
                        assert!(missing.are_in(&text), "{byte} at {at} of {len}");
                        text[at] = b'a';
                    }
                }
            }
        }
    }

    #[test]
    fn the_bytes_of_all_characters_occur() {
        let mut occurs = [false; 256];
        for char in '\0'..=char::MAX {
            for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                occurs[usize::from(byte)] = true;
            }
        }
        for byte in 0..=255 {
            assert_eq!(occurs[usize::from(byte)], occurs_in_utf8(byte), "{byte}");
        }
    }
}
