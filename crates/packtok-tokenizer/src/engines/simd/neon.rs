//! The NEON back end: four vectors of 16 bytes.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcgeq_u8, vcleq_u8, vcltq_s8, vdupq_n_s8, vdupq_n_u8,
    vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8, vqtbl1q_u8, vreinterpretq_s8_u8,
    vreinterpretq_u32_u8, vreinterpretq_u64_u8, vst1q_u32, vsubq_u8,
};
use std::arch::is_aarch64_feature_detected;

use super::back_end::back_end;
use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use super::portable::Portable;

back_end! {
    /// Exists only if the processor has NEON.
    Neon, is_aarch64_feature_detected ["neon"]
    fn ascii(block: &SimdBlock) -> Masks = ascii(block);
    fn within(block: &SimdBlock, first: u8, len: u8) -> u64 = bits(within(quarters(block), first, len));
    fn having(classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 = having(classes, class);
    fn unpack_ids(packed: [u64; 2], numbers: &mut [u32; 8]) = unpack_ids(packed, numbers);
    {
        #[inline(always)]
        fn match_pair(self, pairs: &[u64; 4], pair: [u64; 2]) -> usize {
            // The numbers are in general registers. Moving them into a vector takes as long as
            // comparing them there.
            Portable.match_pair(pairs, pair)
        }
    }
}

/// A SIMD block.
type Bytes = [uint8x16_t; SIMD_BLOCK_BYTES / 16];

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: these are 16 bytes, and the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn quarters(block: &SimdBlock) -> Bytes {
    let [a, b, c, d] = block.as_chunks::<16>().0 else {
        unreachable!("a block has four quarters")
    };
    [load(a), load(b), load(c), load(d)]
}

/// The bits of a mask whose bytes are each all ones or all zeros.
#[inline]
#[target_feature(enable = "neon")]
fn bits([a, b, c, d]: Bytes) -> u64 {
    // Each byte keeps the bit of its position within its group of eight. Pairwise additions then
    // collect eight bytes into one.
    let place = load(&[1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128]);
    let first = vpaddq_u8(vandq_u8(a, place), vandq_u8(b, place));
    let second = vpaddq_u8(vandq_u8(c, place), vandq_u8(d, place));
    let all = vpaddq_u8(first, second);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
}

#[inline]
#[target_feature(enable = "neon")]
fn equal([a, b, c, d]: Bytes, byte: u8) -> Bytes {
    let byte = vdupq_n_u8(byte);
    [
        vceqq_u8(a, byte),
        vceqq_u8(b, byte),
        vceqq_u8(c, byte),
        vceqq_u8(d, byte),
    ]
}

/// Bytes in `first..first + len`.
#[inline]
#[target_feature(enable = "neon")]
fn within([a, b, c, d]: Bytes, first: u8, len: u8) -> Bytes {
    let (first, most) = (vdupq_n_u8(first), vdupq_n_u8(len - 1));
    [
        vcleq_u8(vsubq_u8(a, first), most),
        vcleq_u8(vsubq_u8(b, first), most),
        vcleq_u8(vsubq_u8(c, first), most),
        vcleq_u8(vsubq_u8(d, first), most),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn either([a, b, c, d]: Bytes, [e, f, g, h]: Bytes) -> Bytes {
    [
        vorrq_u8(a, e),
        vorrq_u8(b, f),
        vorrq_u8(c, g),
        vorrq_u8(d, h),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn from([a, b, c, d]: Bytes, least: u8) -> Bytes {
    let least = vdupq_n_u8(least);
    [
        vcgeq_u8(a, least),
        vcgeq_u8(b, least),
        vcgeq_u8(c, least),
        vcgeq_u8(d, least),
    ]
}

/// Continuation bytes: as signed numbers, they are the lowest.
#[inline]
#[target_feature(enable = "neon")]
fn going_on([a, b, c, d]: Bytes) -> Bytes {
    let first_lead = vdupq_n_s8(0xc0u8 as i8);
    [
        vcltq_s8(vreinterpretq_s8_u8(a), first_lead),
        vcltq_s8(vreinterpretq_s8_u8(b), first_lead),
        vcltq_s8(vreinterpretq_s8_u8(c), first_lead),
        vcltq_s8(vreinterpretq_s8_u8(d), first_lead),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn ascii(block: &SimdBlock) -> Masks {
    let bytes = quarters(block);
    let lower_case = either(bytes, [vdupq_n_u8(0x20); 4]);
    let space = equal(bytes, b' ');
    let newline = either(equal(bytes, b'\n'), equal(bytes, b'\r'));
    Masks {
        letter: bits(within(lower_case, b'a', 26)),
        number: bits(within(bytes, b'0', 10)),
        whitespace: bits(either(within(bytes, b'\t', 5), space)),
        newline: bits(newline),
        space: bits(space),
        apostrophe: bits(equal(bytes, b'\'')),
        wide: bits(from(bytes, 0x80)),
        inner: bits(going_on(bytes)),
        ..Masks::default()
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn having(classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 {
    let [a, b, c, d] = quarters(classes);
    let class_of_all = vdupq_n_u8(class);
    let classes = [
        vandq_u8(a, class_of_all),
        vandq_u8(b, class_of_all),
        vandq_u8(c, class_of_all),
        vandq_u8(d, class_of_all),
    ];
    bits(equal(classes, class))
}

#[inline]
#[target_feature(enable = "neon")]
fn unpack_ids([low, high]: [u64; 2], numbers: &mut [u32; 8]) {
    let packed = u128::from(high) << 64 | u128::from(low);
    let packed = load(&packed.to_le_bytes());
    // The three bytes of each id, and a zero byte.
    const NONE: u8 = 0xff;
    let of_first = load(&[0, 1, 2, NONE, 3, 4, 5, NONE, 6, 7, 8, NONE, 9, 10, 11, NONE]);
    let of_fifth = load(&[
        12, 13, 14, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    ]);
    let (first, second) = numbers.split_at_mut(4);
    // SAFETY: both are four numbers, and the stores need no more alignment than these have.
    unsafe {
        vst1q_u32(
            first.as_mut_ptr(),
            vreinterpretq_u32_u8(vqtbl1q_u8(packed, of_first)),
        );
        vst1q_u32(
            second.as_mut_ptr(),
            vreinterpretq_u32_u8(vqtbl1q_u8(packed, of_fifth)),
        );
    }
}
