//! The portable back end, for any processor. Processes eight bytes in a 64-bit number and collects
//! their bits by a multiplication.

use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use super::traits::{Job, Simd};

#[derive(Clone, Copy)]
pub(crate) struct Portable;

const LETTER: u8 = 1;
const NUMBER: u8 = 1 << 1;
const WHITESPACE: u8 = 1 << 2;
const NEWLINE: u8 = 1 << 3;
const SPACE: u8 = 1 << 4;
const APOSTROPHE: u8 = 1 << 5;
const WIDE: u8 = 1 << 6;
const INNER: u8 = 1 << 7;

const OF_BYTE: [u8; 256] = of_byte();

const fn of_byte() -> [u8; 256] {
    let mut of_byte = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        of_byte[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'0'..=b'9' => NUMBER,
            b'\r' | b'\n' => WHITESPACE | NEWLINE,
            b' ' => WHITESPACE | SPACE,
            9..=13 => WHITESPACE,
            b'\'' => APOSTROPHE,
            0x80..=0xbf => WIDE | INNER,
            0xc0.. => WIDE,
            _ => 0,
        };
        byte += 1;
    }
    of_byte
}

impl Simd for Portable {
    // A function call, as in the other back ends: LLVM takes ten times as long for all jobs in one function.
    #[inline(never)]
    fn run<J: Job>(self, job: J) -> J::Output {
        job.run(self)
    }

    #[inline(always)]
    fn ascii(self, block: &SimdBlock) -> Masks {
        let mut classes = [0; SIMD_BLOCK_BYTES];
        for (class, &byte) in classes.iter_mut().zip(block) {
            *class = OF_BYTE[usize::from(byte)];
        }
        Masks {
            letter: self.having(&classes, LETTER),
            number: self.having(&classes, NUMBER),
            whitespace: self.having(&classes, WHITESPACE),
            newline: self.having(&classes, NEWLINE),
            space: self.having(&classes, SPACE),
            apostrophe: self.having(&classes, APOSTROPHE),
            wide: self.having(&classes, WIDE),
            inner: self.having(&classes, INNER),
            ..Masks::default()
        }
    }

    #[inline(always)]
    fn having(self, classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 {
        const LOWEST: u64 = 0x0101_0101_0101_0101;
        // Moves bit 0 of byte i to bit 56 + i; no two bits meet on the way.
        const TOGETHER: u64 = 0x0102_0408_1020_4080;
        let (eights, _) = classes.as_chunks::<8>();
        let mut mask = 0;
        for (i, &eight) in eights.iter().enumerate() {
            let bits = u64::from_le_bytes(eight) >> class.trailing_zeros() & LOWEST;
            mask |= (bits.wrapping_mul(TOGETHER) >> 56) << (8 * i);
        }
        mask
    }
    #[inline(always)]
    fn match_pair(self, &[a, b, c, d]: &[u64; 4], [low, high]: [u64; 2]) -> usize {
        let is_first = (a ^ low) | (b ^ high) == 0;
        let is_second = (c ^ low) | (d ^ high) == 0;
        usize::from(is_first) | usize::from(is_second) << 2
    }

    #[inline(always)]
    fn unpack_ids(self, [low, high]: [u64; 2], numbers: &mut [u32; 8]) {
        const ONE: u64 = (1 << 24) - 1;
        let packed = [
            low,
            low >> 24,
            low >> 48 | high << 16,
            high >> 8,
            high >> 32,
        ];
        for (number, packed) in numbers.iter_mut().zip(packed) {
            *number = (packed & ONE) as u32;
        }
    }
}
