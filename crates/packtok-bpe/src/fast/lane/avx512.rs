//! The lane of AVX-512: one vector, whose comparisons are masks at once. For less than 64 bytes it is AVX2's.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epi8_mask,
    _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_maskz_compress_epi32, _mm512_movepi8_mask,
    _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_storeu_si512,
    _mm512_sub_epi8, _mm512_test_epi8_mask,
};

use super::avx2::{spread, which};
use super::{BLOCK, Job, Lane, Masks};

/// There is none where the processor has no AVX-512 for bytes.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let has_it = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has_it.then_some(Self(()))
    }
}

impl Lane for Avx512 {
    #[inline(always)]
    fn run<J: Job>(self, job: J) -> J::Done {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline(never)]
        fn inner<J: Job>(lane: Avx512, job: J) -> J::Done {
            job.run(lane)
        }
        // SAFETY: there is a lane, so that the processor has what is enabled above.
        unsafe { inner(self, job) }
    }

    #[inline(always)]
    fn ascii(self, block: &[u8; BLOCK]) -> Masks {
        // SAFETY: an `Avx512` is only made where the processor has it.
        unsafe { ascii(block) }
    }

    #[inline(always)]
    fn having(self, classes: &[u8; BLOCK], class: u8) -> u64 {
        // SAFETY: as above.
        unsafe { having(classes, class) }
    }

    #[inline(always)]
    fn positions(self, bits: u64, base: u32, to: &mut [u32; BLOCK]) {
        // SAFETY: as above.
        unsafe { positions(bits, base, to) }
    }

    #[inline(always)]
    fn which(self, pairs: &[u64; 4], pair: [u64; 2]) -> usize {
        // SAFETY: as above.
        unsafe { which(pairs, pair) }
    }

    #[inline(always)]
    fn spread(self, packed: [u64; 2], numbers: &mut [u32; 8]) {
        // SAFETY: as above.
        unsafe { spread(packed, numbers) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(block: &[u8; BLOCK]) -> __m512i {
    // SAFETY: these are 64 bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8))
}

/// Bytes of `first..first + len`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn within(bytes: __m512i, first: u8, len: u8) -> u64 {
    let from_first = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
    _mm512_cmplt_epu8_mask(from_first, _mm512_set1_epi8(len as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn ascii(block: &[u8; BLOCK]) -> Masks {
    let bytes = load(block);
    let blank = equal(bytes, b' ');
    Masks {
        letter: within(_mm512_or_si512(bytes, _mm512_set1_epi8(0x20)), b'a', 26),
        number: within(bytes, b'0', 10),
        space: within(bytes, b'\t', 5) | blank,
        newline: equal(bytes, b'\n') | equal(bytes, b'\r'),
        blank,
        apostrophe: equal(bytes, b'\''),
        wide: _mm512_movepi8_mask(bytes),
        // Bytes that go on are the lowest of signed ones.
        inner: _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0xc0u8 as i8)),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn having(classes: &[u8; BLOCK], class: u8) -> u64 {
    _mm512_test_epi8_mask(load(classes), _mm512_set1_epi8(class as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn positions(bits: u64, base: u32, to: &mut [u32; BLOCK]) {
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut count = 0;
    for first in [0, 16, 32, 48] {
        let bits = (bits >> first) as u16;
        let here = _mm512_add_epi32(numbers, _mm512_set1_epi32((base + first) as i32));
        let here = _mm512_maskz_compress_epi32(bits, here);
        // SAFETY: these are 16 numbers, and at most `first` are before them.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(count).cast(), here) };
        count += bits.count_ones() as usize;
    }
}
