//! Each back end agrees with the portable back end, which agrees with the standard library.

use super::portable::Portable;
use super::{
    AnySimd, FirstTwo, Job, KEY_BATCH, LEN_BATCH, Lanes, NUM_LANES, SIMD_BLOCK_BYTES, Simd,
    SimdBlock,
};
use crate::engines::huge_table::HugeTable;
use crate::engines::word_key::WordKey;

struct Agree;

impl Job for Agree {
    type Output = ();

    fn run(self, simd: impl Simd) {
        agree(simd);
    }
}

fn agree(simd: impl Simd) {
    let pair = [0x0123_4567_89ab_cdef, 0x05aa_bbcc_ddee_ff00];
    for (other, bit) in [(0, 0), (1, 1 << 63), (2, 1), (3, 1 << 40)] {
        let mut pairs = [pair[0], pair[1], pair[0], pair[1]];
        pairs[other] ^= bit;
        let expected = if bit == 0 { 5 } else { 4 >> (other & 2) };
        assert_eq!(simd.match_pair(&pairs, pair), expected, "{other} {bit:x}");
        assert_eq!(simd.match_pair(&pairs.map(|number| !number), pair), 0);
    }
    let any = (0..1000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) << (i % 7));
    let few = [
        0,
        1,
        1 << 63,
        0x8000_0001_0001_0101,
        0x5555_5555_5555_5555,
        u64::MAX,
    ];
    for bits in few.into_iter().chain(any) {
        let mut positions = [0; SIMD_BLOCK_BYTES];
        simd.positions(bits, 1000, &mut positions);
        let expected: Vec<u32> = (0..64).filter(|bit| bits >> bit & 1 == 1).collect();
        let bit_numbers = positions[..expected.len()].iter().map(|at| at - 1000);
        assert!(bit_numbers.eq(expected), "{bits:x}");
    }
    agree_on_first_two(simd);
    agree_on_word_keys(simd);
    agree_on_lanes(simd);
    let (mut numbers, mut expected) = ([0; 8], [0; 8]);
    simd.unpack_ids(pair, &mut numbers);
    Portable.unpack_ids(pair, &mut expected);
    assert_eq!(numbers[..5], expected[..5]);
    assert_eq!(
        numbers[..5],
        [0xab_cdef, 0x45_6789, 0x00_0123, 0xdd_eeff, 0xaa_bbcc]
    );
    for first in (0..=255u8).step_by(64) {
        for turn in [1, 3, 7, 63] {
            let block: SimdBlock = std::array::from_fn(|i| first.wrapping_add((i * turn) as u8));
            assert_eq!(simd.ascii(&block), Portable.ascii(&block), "{block:?}");
            for (first, len) in [(b'A', 26), (b'/', 1), (0, 255), (200, 56)] {
                let expected = Portable.within(&block, first, len);
                assert_eq!(simd.within(&block, first, len), expected);
            }
            for bit in 0..8 {
                assert_eq!(
                    simd.having(&block, 1 << bit),
                    Portable.having(&block, 1 << bit)
                );
            }
        }
    }
}

/// All pairs of bytes beyond ASCII, some of which always begin letters.
fn agree_on_first_two(simd: impl Simd) {
    let are_letters = |first: usize, second: usize| match first % 3 {
        0 => true,
        1 => !second.is_multiple_of(first + 2),
        _ => false,
    };
    let first_two = FirstTwo::new(are_letters, |_| 1);
    let (mut tells_some, mut tells_all) = (false, true);
    for first in 0xc0..=0xff_usize {
        for turn in 0..64 {
            let bytes: [u8; SIMD_BLOCK_BYTES + 1] = std::array::from_fn(|i| match (i + turn) % 2 {
                0 => first as u8,
                _ => 0x80 | (i + turn / 2) as u8 & 0x3f,
            });
            let (block, after) = (bytes.first_chunk().unwrap(), bytes.last_chunk().unwrap());
            let decided = simd.match_first_two(block, after, &first_two);
            let begins = bytes.windows(2).enumerate();
            for (i, two) in begins.filter(|(_, two)| two[0] >= 0xc0) {
                let (is_decided, is_letter) =
                    (decided >> i & 1 == 1, first_two.matches(two[0], two[1]));
                assert!(is_letter || !is_decided, "{two:x?}");
                tells_some |= is_decided;
                tells_all &= is_decided == is_letter;
            }
        }
    }
    assert!(tells_all || !tells_some, "a simd tells of all, or of none");
}

/// Words of all lengths, also near the end of a text.
fn agree_on_word_keys(simd: impl Simd) {
    for longest in [0, 1, 15, 16, 17, 1 << 20] {
        for turn in 0..LEN_BATCH as u32 {
            let bounds: [u32; LEN_BATCH + 1] =
                std::array::from_fn(|i| 7 + (i as u32 + turn) / LEN_BATCH as u32 * longest);
            let expected = if longest > 15 {
                1 << (LEN_BATCH as u32 - 1 - turn)
            } else {
                0
            };
            assert_eq!(simd.long_words(&bounds), expected);
        }
    }
    let text: Vec<u8> = (0..200).map(|i: u32| (i * i) as u8 | 1).collect();
    for text_len in 0..=text.len() {
        for step in [0, 1, 7, 13] {
            let bounds: [u32; KEY_BATCH + 1] = std::array::from_fn(|i| {
                let i = i as u32;
                (3 + i * i * step / 3).min(text_len as u32)
            });
            let (mut words, mut hashes) = ([WordKey::default(); KEY_BATCH], [0; KEY_BATCH]);
            simd.word_keys(&text[..text_len], &bounds, 40, &mut words, &mut hashes);
            for (i, word) in words.iter().enumerate() {
                let bytes = &text[bounds[i] as usize..bounds[i + 1] as usize];
                let mut expected = [0; 16];
                let num_bytes = bytes.len().min(15);
                expected[..num_bytes].copy_from_slice(&bytes[..num_bytes]);
                expected[15] = bytes.len().min(16) as u8;
                let expected = u128::from_le_bytes(expected);
                assert_eq!(
                    [word.low, word.high],
                    [expected as u64, (expected >> 64) as u64]
                );
                assert_eq!(word.is_short(), bytes.len() < 16);
                assert_eq!(u64::from(hashes[i]), word.hash() >> 40);
            }
        }
    }
}

/// Operations on each lane, and words of all lengths.
fn agree_on_lanes(simd: impl Simd) {
    let lanes = Lanes(std::array::from_fn(|lane| {
        1000 + 7 * (lane as u32 + 9) % 40
    }));
    assert_eq!(simd.least(&Lanes([5; NUM_LANES])), (5, 0));
    let mut table = HugeTable::new(64);
    for (number, slot) in (0..).zip(table.all_mut()) {
        *slot = 3 * number;
    }
    for lane in 0..NUM_LANES {
        let mut replaced = lanes;
        simd.replace(&mut replaced, lane, 3);
        let expected = std::array::from_fn(|i| if i == lane { 3 } else { lanes.0[i] });
        assert_eq!(replaced.0, expected);
        assert_eq!(simd.least(&replaced), (3, lane));
        if lane > 0 {
            simd.remove(&mut replaced, lane);
            let mut others = lanes.0.to_vec();
            others.remove(lane);
            others.push(lanes.0[0]);
            assert_eq!(replaced.0[..], others);
        }
        let numbers = simd.look_up(table.slots(), &lanes, 1 << lane, 9);
        let expected = std::array::from_fn(|i| if i == lane { lanes.0[i] % 64 * 3 } else { 9 });
        assert_eq!(numbers.0, expected);
        let text: Vec<u8> = (0..lane as u8).map(|i| i.wrapping_mul(77) | 1).collect();
        let [bytes, pairs] = simd.bytes_and_pairs(WordKey::at(&text, 0, lane));
        for (at, &byte) in text.iter().enumerate() {
            assert_eq!(bytes.0[at + 1], u32::from(byte));
            if let Some(&next) = text.get(at + 1) {
                assert_eq!(pairs.0[at + 1], u32::from(byte) << 8 | u32::from(next));
            }
        }
    }
}

#[test]
fn the_portable_back_end_is_what_the_standard_library_says() {
    for first in (0..=255u8).step_by(64) {
        let block: SimdBlock = std::array::from_fn(|i| first + i as u8);
        let masks = Portable.ascii(&block);
        for (i, &byte) in block.iter().enumerate() {
            let has = |mask: u64| mask >> i & 1 == 1;
            assert_eq!(has(masks.letter), byte.is_ascii_alphabetic());
            assert_eq!(has(masks.number), byte.is_ascii_digit());
            assert_eq!(has(masks.whitespace), matches!(byte, 9..=13 | b' '));
            assert_eq!(has(masks.newline), matches!(byte, b'\r' | b'\n'));
            assert_eq!(has(masks.space), byte == b' ');
            assert_eq!(has(masks.apostrophe), byte == b'\'');
            assert_eq!(has(masks.wide), !byte.is_ascii());
            assert_eq!(has(masks.inner), byte & 0xc0 == 0x80);
            assert_eq!(
                has(Portable.within(&block, b'A', 26)),
                byte.is_ascii_uppercase()
            );
            for bit in 0..8 {
                assert_eq!(has(Portable.having(&block, 1 << bit)), byte >> bit & 1 == 1);
            }
        }
    }
}

#[test]
fn the_back_ends_agree() {
    for simd in AnySimd::all() {
        simd.run(Agree);
    }
}
