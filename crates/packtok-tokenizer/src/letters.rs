//! The letters that represent bytes in byte-level vocabularies, as in GPT-2. Printable Latin-1
//! characters represent themselves; the remaining bytes, in order, are the letters from U+0100 on.

/// The letter of each byte, and the byte of each letter.
pub(crate) struct Letters {
    letter_of: [char; 256],
    byte_of: [Option<u8>; 0x200],
}

impl Letters {
    pub(crate) fn new() -> Self {
        let mut others = ('\u{100}'..).take(256);
        let letter_of = std::array::from_fn(|byte| match byte as u8 {
            byte @ (b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) => char::from(byte),
            _ => others.next().expect("there are as many letters as bytes"),
        });
        let mut byte_of = [None; 0x200];
        for (byte, letter) in (0..=255).zip(letter_of) {
            byte_of[letter as usize] = Some(byte);
        }
        Self { letter_of, byte_of }
    }

    /// The byte that a letter stands for.
    pub(crate) fn byte(&self, letter: char) -> Option<u8> {
        self.byte_of.get(letter as usize).copied().flatten()
    }

    /// The letter that stands for a byte.
    pub(crate) fn letter(&self, byte: u8) -> char {
        self.letter_of[usize::from(byte)]
    }

    /// The letters of these bytes.
    pub(crate) fn name(&self, bytes: &[u8]) -> String {
        bytes
            .iter()
            .map(|&byte| self.letter_of[usize::from(byte)])
            .collect()
    }

    /// All bytes and their letters.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u8, char)> {
        (0..=255).zip(self.letter_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spelled_as_gpt2_spells_them() {
        let letters = Letters::new();
        assert_eq!(letters.name(b" a\n"), "\u{120}a\u{10a}");
        assert_eq!(
            letters.name(&[0, 0x7f, 0xad, 0xff]),
            "\u{100}\u{121}\u{143}\u{ff}"
        );
    }

    #[test]
    fn every_byte_has_a_letter_of_its_own() {
        let letters = Letters::new();
        for (byte, letter) in letters.all() {
            assert_eq!(letters.byte(letter), Some(byte));
        }
        assert_eq!(letters.byte('\u{144}'), None);
        assert_eq!(letters.byte('語'), None);
    }
}
