//! The largest ids in bytes of raw tokens, to determine the width of the tokens.
//!
//! A file of raw tokens does not record its width. If it is read with a wrong width, half of the
//! ids are zero, or ids exceed the vocabulary.

/// The largest id in some bytes, for each width that tokens may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LargestIds {
    /// The largest id, assuming tokens of one byte.
    pub of_1_byte: u32,
    /// The largest id, assuming tokens of two bytes.
    pub of_2_bytes: u32,
    /// The largest id, assuming tokens of four bytes.
    pub of_4_bytes: u32,
}

impl LargestIds {
    /// Adds `bytes`, the next bytes of a file. All but the last must be a multiple of four.
    ///
    /// Missing bytes at the end count as zeros.
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        for &word in words {
            self.add_word(u32::from_le_bytes(word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.add_word(u32::from_le_bytes(last));
    }

    fn add_word(&mut self, word: u32) {
        // The maximum of four bytes is computed from pairwise maxima, without branches, so that
        // the loop is vectorized.
        let of_2_bytes = (word >> 16).max(word & 0xffff);
        let high = (word >> 24).max((word >> 8) & 0xff);
        let low = ((word >> 16) & 0xff).max(word & 0xff);
        self.of_1_byte = self.of_1_byte.max(high.max(low));
        self.of_2_bytes = self.of_2_bytes.max(of_2_bytes);
        self.of_4_bytes = self.of_4_bytes.max(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_width_has_its_largest_id() {
        let bytes = [1, 2, 3, 4, 250, 0, 7, 0, 9, 1];
        for split in [4, 8] {
            let mut largest = LargestIds::default();
            largest.add(&bytes[..split]);
            largest.add(&bytes[split..]);
            let expected = LargestIds {
                of_1_byte: 250,
                of_2_bytes: 0x0403,
                of_4_bytes: 0x0403_0201,
            };
            assert_eq!(largest, expected);
        }
    }

    #[test]
    fn ids_of_four_bytes_read_as_two_are_their_halves() {
        let ids = [50_256u32, 3, 40_000];
        let mut largest = LargestIds::default();
        ids.iter().for_each(|id| largest.add(&id.to_le_bytes()));
        assert_eq!((largest.of_2_bytes, largest.of_4_bytes), (50_256, 50_256));
    }
}
