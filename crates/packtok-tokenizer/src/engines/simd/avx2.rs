//! The AVX2 back end: two vectors of 32 bytes.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_and_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadl_epi64, _mm_loadu_si128,
    _mm_or_si128, _mm_set_epi64x, _mm256_add_epi8, _mm256_add_epi32, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi8,
    _mm256_cmpeq_epi32, _mm256_cmpeq_epi64, _mm256_cmpgt_epi8, _mm256_cmpgt_epi32,
    _mm256_cvtepu8_epi32, _mm256_loadu_si256, _mm256_max_epu32, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_set1_epi32, _mm256_setr_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_storeu_si256, _mm256_sub_epi32,
};

use super::back_end::back_end;
use super::first_two::{FirstTwo, MATCHES};
use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use super::traits::{KEY_BATCH, LEN_BATCH};
use crate::engines::word_key::{LONG, OF_LEN, SHORT, WordKey};

back_end! {
    /// Exists only if the processor has AVX2.
    Avx2, is_x86_feature_detected ["avx2", "bmi1", "bmi2", "lzcnt", "popcnt"]
    fn ascii(block: &SimdBlock) -> Masks = ascii(block);
    fn within(block: &SimdBlock, first: u8, len: u8) -> u64 = highest(within(halves(block), first, len));
    fn having(classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 = having(classes, class);
    fn match_first_two(block: &SimdBlock, after: &SimdBlock, first_two: &FirstTwo) -> u64 =
        match_first_two(block, after, first_two);
    fn positions(bits: u64, base: u32, to: &mut [u32; SIMD_BLOCK_BYTES]) = positions(bits, base, to);
    fn word_keys_within(
        text: &[u8],
        bounds: &[u32; KEY_BATCH + 1],
        shift: u32,
        words: &mut [WordKey; KEY_BATCH],
        hashes: &mut [u32; KEY_BATCH],
    ) -> bool = word_keys_within(text, bounds, shift, words, hashes);
    fn long_words(bounds: &[u32; LEN_BATCH + 1]) -> u32 = long_words(bounds);
    fn match_pair(pairs: &[u64; 4], pair: [u64; 2]) -> usize = match_pair(pairs, pair);
    fn unpack_ids(packed: [u64; 2], numbers: &mut [u32; 8]) = unpack_ids(packed, numbers);
    {}
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(block: &SimdBlock) -> [__m256i; 2] {
    let [low, high] = block.as_chunks::<32>().0 else {
        unreachable!("a block has two halves")
    };
    // SAFETY: both are 32 bytes, and the load needs no alignment.
    unsafe {
        [
            _mm256_loadu_si256(low.as_ptr().cast()),
            _mm256_loadu_si256(high.as_ptr().cast()),
        ]
    }
}

/// The highest bit of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn highest([low, high]: [__m256i; 2]) -> u64 {
    let low = _mm256_movemask_epi8(low) as u32;
    let high = _mm256_movemask_epi8(high) as u32;
    u64::from(low) | u64::from(high) << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal([low, high]: [__m256i; 2], byte: u8) -> [__m256i; 2] {
    let byte = _mm256_set1_epi8(byte as i8);
    [_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte)]
}

/// Bytes in `first..first + len`.
#[inline]
#[target_feature(enable = "avx2")]
fn within([low, high]: [__m256i; 2], first: u8, len: u8) -> [__m256i; 2] {
    let most = _mm256_set1_epi8(len as i8 - 1);
    let first = _mm256_set1_epi8(first.wrapping_neg() as i8);
    let (low, high) = (_mm256_add_epi8(low, first), _mm256_add_epi8(high, first));
    [
        _mm256_cmpeq_epi8(_mm256_min_epu8(low, most), low),
        _mm256_cmpeq_epi8(_mm256_min_epu8(high, most), high),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn either([a, b]: [__m256i; 2], [c, d]: [__m256i; 2]) -> [__m256i; 2] {
    [_mm256_or_si256(a, c), _mm256_or_si256(b, d)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn ascii(block: &SimdBlock) -> Masks {
    let bytes @ [low, high] = halves(block);
    let case = _mm256_set1_epi8(0x20);
    let lower_case = [_mm256_or_si256(low, case), _mm256_or_si256(high, case)];
    let space = equal(bytes, b' ');
    let newline = either(equal(bytes, b'\n'), equal(bytes, b'\r'));
    // In a signed comparison, continuation bytes are the lowest.
    let first_lead = _mm256_set1_epi8(0xc0u8 as i8);
    let inner = [
        _mm256_cmpgt_epi8(first_lead, low),
        _mm256_cmpgt_epi8(first_lead, high),
    ];
    Masks {
        letter: highest(within(lower_case, b'a', 26)),
        number: highest(within(bytes, b'0', 10)),
        whitespace: highest(either(within(bytes, b'\t', 5), space)),
        newline: highest(newline),
        space: highest(space),
        apostrophe: highest(equal(bytes, b'\'')),
        wide: highest(bytes),
        inner: highest(inner),
        ..Masks::default()
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn having(classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 {
    let [low, high] = halves(classes);
    let class = _mm256_set1_epi8(class as i8);
    highest([
        _mm256_cmpeq_epi8(_mm256_and_si256(low, class), class),
        _mm256_cmpeq_epi8(_mm256_and_si256(high, class), class),
    ])
}

/// Looks up the last six bits of each byte in a table, 16 entries at a time.
#[inline]
#[target_feature(enable = "avx2")]
fn by_six_bits(bytes: __m256i, table: &[u8; 64]) -> __m256i {
    let last_four = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    let which = _mm256_and_si256(bytes, _mm256_set1_epi8(48));
    let mut looked_up = _mm256_setzero_si256();
    for (first, numbers) in (0..).step_by(16).zip(table.as_chunks::<16>().0) {
        // SAFETY: these are 16 bytes, and the load needs no alignment.
        let numbers = unsafe { _mm_loadu_si128(numbers.as_ptr().cast()) };
        let here = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(numbers), last_four);
        let is_here = _mm256_cmpeq_epi8(which, _mm256_set1_epi8(first));
        looked_up = _mm256_or_si256(looked_up, _mm256_and_si256(here, is_here));
    }
    looked_up
}

#[inline]
#[target_feature(enable = "avx2")]
fn match_first_two(block: &SimdBlock, after: &SimdBlock, first_two: &FirstTwo) -> u64 {
    let ([low, high], after) = (halves(block), halves(after));
    let of_first = [
        by_six_bits(low, &first_two.of_first),
        by_six_bits(high, &first_two.of_first),
    ];
    let decided = _mm256_set1_epi8(MATCHES as i8);
    let is_decided = [
        _mm256_cmpeq_epi8(_mm256_and_si256(of_first[0], decided), decided),
        _mm256_cmpeq_epi8(_mm256_and_si256(of_first[1], decided), decided),
    ];
    let in_common = [
        _mm256_and_si256(of_first[0], by_six_bits(after[0], &first_two.of_second)),
        _mm256_and_si256(of_first[1], by_six_bits(after[1], &first_two.of_second)),
    ];
    highest(is_decided) & highest(equal(in_common, 0))
}

/// For each byte, the positions of its set bits.
static SET_BITS: [[u8; 8]; 256] = set_bits();

const fn set_bits() -> [[u8; 8]; 256] {
    let mut all = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                all[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    all
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn positions(bits: u64, base: u32, to: &mut [u32; SIMD_BLOCK_BYTES]) {
    let (mut count, mut base) = (0, _mm256_set1_epi32(base as i32));
    for byte in bits.to_le_bytes() {
        // SAFETY: these are eight bytes, and the load needs no alignment.
        let set = unsafe { _mm_loadl_epi64(SET_BITS[usize::from(byte)].as_ptr().cast()) };
        let here = _mm256_add_epi32(_mm256_cvtepu8_epi32(set), base);
        // SAFETY: eight numbers are stored after at most eight for each byte before, and there is room for 64.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().add(count).cast(), here) };
        count += byte.count_ones() as usize;
        base = _mm256_add_epi32(base, _mm256_set1_epi32(8));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn long_words(bounds: &[u32; LEN_BATCH + 1]) -> u32 {
    let of_eight = |first: usize| {
        // SAFETY: these are eight numbers each, and the loads need no alignment.
        let (starts, ends) = unsafe {
            let starts = bounds.as_ptr().add(first);
            (
                _mm256_loadu_si256(starts.cast()),
                _mm256_loadu_si256(starts.add(1).cast()),
            )
        };
        // Lengths are below 2^31.
        let are_long = _mm256_cmpgt_epi32(
            _mm256_sub_epi32(ends, starts),
            _mm256_set1_epi32(SHORT as i32),
        );
        _mm256_movemask_ps(_mm256_castsi256_ps(are_long)) as u32
    };
    of_eight(0) | of_eight(8) << 8
}

/// Whether at least 16 bytes of text follow the start of each word.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn are_within(text: &[u8], bounds: &[u32; KEY_BATCH + 1]) -> bool {
    let Some(last) = text.len().checked_sub(16) else {
        return false;
    };
    let last = _mm256_set1_epi32(u32::try_from(last).unwrap_or(u32::MAX) as i32);
    // SAFETY: these are eight numbers, and the load needs no alignment.
    let starts = unsafe { _mm256_loadu_si256(bounds.as_ptr().cast()) };
    // There is no comparison of unsigned numbers.
    let not_after_last = _mm256_cmpeq_epi32(_mm256_max_epu32(starts, last), last);
    _mm256_movemask_epi8(not_after_last) == -1
}

/// `Simd::word_keys_within`. A vector holds one word.
#[inline]
#[target_feature(enable = "avx2")]
fn word_keys_within(
    text: &[u8],
    bounds: &[u32; KEY_BATCH + 1],
    shift: u32,
    words: &mut [WordKey; KEY_BATCH],
    hashes: &mut [u32; KEY_BATCH],
) -> bool {
    if !are_within(text, bounds) {
        return false;
    }
    for i in 0..KEY_BATCH {
        let start = bounds[i];
        let len = (bounds[i + 1].wrapping_sub(start) as usize).min(LONG);
        let [bits, len] = &OF_LEN[len];
        // SAFETY: 16 bytes of text follow each start, and the others are 16 bytes, too. The loads need no alignment.
        let (bytes, bits, len) = unsafe {
            (
                _mm_loadu_si128(text.as_ptr().add(start as usize).cast()),
                _mm_loadu_si128(bits.as_ptr().cast()),
                _mm_loadu_si128(len.as_ptr().cast()),
            )
        };
        let word = _mm_or_si128(_mm_and_si128(bytes, bits), len);
        let (low, high) = (_mm_cvtsi128_si64(word), _mm_extract_epi64::<1>(word));
        words[i] = WordKey {
            low: low as u64,
            high: high as u64,
        };
        hashes[i] = (words[i].hash() >> shift) as u32;
    }
    true
}

/// The bits of `0b101` that stand for pairs equal to `[low, high]`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn match_pair(pairs: &[u64; 4], [low, high]: [u64; 2]) -> usize {
    // SAFETY: these are 32 bytes, and the load needs no alignment.
    let pairs = unsafe { _mm256_loadu_si256(pairs.as_ptr().cast()) };
    let pair = _mm256_broadcastsi128_si256(_mm_set_epi64x(high as i64, low as i64));
    let alike = _mm256_castsi256_pd(_mm256_cmpeq_epi64(pairs, pair));
    let alike = _mm256_movemask_pd(alike) as usize;
    alike & alike >> 1 & 0b101
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn unpack_ids([low, high]: [u64; 2], numbers: &mut [u32; 8]) {
    let packed = _mm256_broadcastsi128_si256(_mm_set_epi64x(high as i64, low as i64));
    // The three bytes of each id, and a zero byte.
    let bytes = _mm256_setr_epi8(
        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, 12, 13, 14, -1, -1, -1, -1, -1, -1,
        -1, -1, -1, -1, -1, -1, -1,
    );
    let spread = _mm256_shuffle_epi8(packed, bytes);
    // SAFETY: these are 32 bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), spread) }
}
