//! Small integers in Parquet's hybrid of runs and bit-packed groups of eight.
//!
//! The format is that of
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>.

/// Decodes integers of one width.
#[derive(Debug)]
pub(super) struct Hybrid {
    bytes: Vec<u8>,
    /// The next byte.
    at: usize,
    bit_width: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The value of a run, and how often it still occurs.
    Run(u32, u64),
    /// Bit-packed integers: the next bit, and how many integers are left.
    Packed(u64, u64),
}

impl Hybrid {
    /// The integers of `bit_width` bits in `bytes`; `None` if `bit_width` exceeds 32.
    pub(super) fn new(bytes: Vec<u8>, bit_width: u32) -> Option<Self> {
        (bit_width <= 32).then_some(Self {
            bytes,
            at: 0,
            bit_width,
            state: State::Run(0, 0),
        })
    }

    /// The next integer; `None` if the bytes end or are invalid.
    pub(super) fn next(&mut self) -> Option<u32> {
        loop {
            match &mut self.state {
                State::Run(value, left) if *left > 0 => {
                    *left -= 1;
                    return Some(*value);
                }
                State::Packed(bit, left) if *left > 0 => {
                    *left -= 1;
                    let start = *bit;
                    *bit += u64::from(self.bit_width);
                    return self.packed(start);
                }
                _ => self.next_run()?,
            }
        }
    }

    fn next_run(&mut self) -> Option<()> {
        let header = self.varint()?;
        let count = header >> 1;
        if header & 1 == 1 {
            let num_bytes = count.checked_mul(self.bit_width.into())?;
            self.state = State::Packed(self.at as u64 * 8, count.checked_mul(8)?);
            // The last group may be cut.
            let end = (self.at as u64).checked_add(num_bytes)?;
            self.at = end.min(self.bytes.len() as u64) as usize;
            return Some(());
        }
        let width = self.bit_width.div_ceil(8) as usize;
        let mut value = [0; 4];
        value[..width].copy_from_slice(self.bytes.get(self.at..self.at + width)?);
        self.at += width;
        self.state = State::Run(u32::from_le_bytes(value), count);
        Some(())
    }

    /// The bit-packed integer that starts at a bit.
    fn packed(&self, bit: u64) -> Option<u32> {
        let first = (bit / 8) as usize;
        let end = (bit + u64::from(self.bit_width)).div_ceil(8) as usize;
        let mut word = [0; 8];
        word[..end - first].copy_from_slice(self.bytes.get(first..end)?);
        let word = u64::from_le_bytes(word) >> (bit % 8);
        Some((word & ((1 << self.bit_width) - 1)) as u32)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_groups_alternate() {
        // A run of 4 times 5, then 8 packed integers of 3 bits (the example of the specification).
        let bytes = vec![8, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let mut hybrid = Hybrid::new(bytes, 3).unwrap();
        let integers: Vec<_> = std::iter::from_fn(|| hybrid.next()).collect();
        assert_eq!(integers, [5, 5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn integers_of_no_bits_are_zero() {
        let mut hybrid = Hybrid::new(vec![6], 0).unwrap();
        let integers: Vec<_> = std::iter::from_fn(|| hybrid.next()).collect();
        assert_eq!(integers, [0, 0, 0]);
    }

    #[test]
    fn wide_and_cut_integers_do_not_panic() {
        assert!(Hybrid::new(Vec::new(), 33).is_none());
        for bit_width in 0..=32 {
            for len in 0..9 {
                for byte in [0, 1, 3, 0x7f, 0x80, 0xff] {
                    let mut hybrid = Hybrid::new(vec![byte; len], bit_width).unwrap();
                    let mut num = 0;
                    while num < 1000 && hybrid.next().is_some() {
                        num += 1;
                    }
                }
            }
        }
        let mut hybrid = Hybrid::new(vec![3, 0xff, 0xff, 0xff, 0xff, 1], 32).unwrap();
        assert_eq!(hybrid.next(), Some(u32::MAX));
        assert_eq!(hybrid.next(), None);
    }
}
