//! The AVX-512 back end: one vector, whose comparisons return masks. For less than 64 bytes, it
//! uses the functions of the AVX2 back end.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_set_epi64x, _mm_setr_epi8, _mm_slli_si128,
    _mm256_loadu_si256, _mm256_min_epu32, _mm256_set1_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
    _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_broadcast_i32x4,
    _mm512_castsi128_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cmpeq_epi8_mask,
    _mm512_cmpgt_epu32_mask, _mm512_cmplt_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_cvtepu8_epi32,
    _mm512_inserti32x4, _mm512_loadu_si512, _mm512_mask_i32gather_epi32, _mm512_mask_mov_epi8,
    _mm512_mask_set1_epi32, _mm512_mask_shuffle_epi8, _mm512_maskz_compress_epi32,
    _mm512_maskz_mov_epi8, _mm512_movepi8_mask, _mm512_mullo_epi64, _mm512_or_si512,
    _mm512_permutex2var_epi32, _mm512_permutexvar_epi32, _mm512_reduce_min_epu32, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set4_epi64, _mm512_setr_epi32, _mm512_setzero_si512,
    _mm512_shuffle_epi8, _mm512_shuffle_epi32, _mm512_shuffle_i32x4, _mm512_slli_epi32,
    _mm512_srl_epi64, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_sub_epi32,
    _mm512_test_epi8_mask,
};

use super::avx2::{are_within, match_pair, unpack_ids};
use super::back_end::back_end;
use super::first_two::{FirstTwo, MATCHES};
use super::masks::{Masks, SIMD_BLOCK_BYTES, SimdBlock};
use super::traits::{KEY_BATCH, LEN_BATCH, Lanes, NUM_LANES};
use crate::engines::huge_table::Slots;
use crate::engines::word_key::{HASH_FACTORS, LONG, SHORT, WordKey};

back_end! {
    /// Exists only if the processor has AVX-512 with instructions for bytes.
    Avx512, is_x86_feature_detected [
        "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"
    ]
    fn ascii(block: &SimdBlock) -> Masks = ascii(block);
    fn within(block: &SimdBlock, first: u8, len: u8) -> u64 = within(load(block), first, len);
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
    fn least(lanes: &Lanes) -> (u32, usize) = least(lanes);
    fn remove(lanes: &mut Lanes, lane: usize) = remove(lanes, lane);
    fn replace(lanes: &mut Lanes, lane: usize, number: u32) = replace(lanes, lane, number);
    fn bytes_and_pairs(word: WordKey) -> [Lanes; 2] = bytes_and_pairs(word);
    fn look_up(table: Slots<'_, u32>, places: &Lanes, bits: u16, otherwise: u32) -> Lanes =
        look_up(table, places, bits, otherwise);
    {
        const HAS_LANES: bool = true;
    }
}

/// For each lane, the lanes whose numbers remain if it is removed, and the first lane.
static OTHER_LANES: [Lanes; NUM_LANES] = other_lanes();

const fn other_lanes() -> [Lanes; NUM_LANES] {
    let mut all = [Lanes([0; NUM_LANES]); NUM_LANES];
    let mut removed = 0;
    while removed < NUM_LANES {
        let mut lane = 0;
        while lane < NUM_LANES {
            let other = if lane < removed { lane } else { lane + 1 };
            all[removed].0[lane] = (other % NUM_LANES) as u32;
            lane += 1;
        }
        removed += 1;
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_lanes(lanes: &Lanes) -> __m512i {
    // SAFETY: these are 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(lanes.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_of(numbers: __m512i) -> Lanes {
    let mut lanes = Lanes([0; NUM_LANES]);
    // SAFETY: these are 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(lanes.0.as_mut_ptr().cast(), numbers) };
    lanes
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bytes_and_pairs(word: WordKey) -> [Lanes; 2] {
    let bytes = _mm_set_epi64x(word.high as i64, word.low as i64);
    let here = _mm512_cvtepu8_epi32(_mm_slli_si128::<1>(bytes));
    let pairs = _mm512_or_si512(_mm512_slli_epi32::<8>(here), _mm512_cvtepu8_epi32(bytes));
    [lanes_of(here), lanes_of(pairs)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn look_up(table: Slots<'_, u32>, places: &Lanes, bits: u16, otherwise: u32) -> Lanes {
    let table = table.all();
    let last = _mm512_set1_epi32((table.len() - 1) as i32);
    let places = _mm512_and_si512(load_lanes(places), last);
    let otherwise = _mm512_set1_epi32(otherwise as i32);
    let first = table.as_ptr().cast();
    // SAFETY: the number of slots is a power of two, which `HugeTable::slots` checks, so the masked places are below it.
    lanes_of(unsafe { _mm512_mask_i32gather_epi32::<4>(otherwise, bits, places, first) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn least(lanes: &Lanes) -> (u32, usize) {
    let lane_numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let with_lanes = _mm512_or_si512(_mm512_slli_epi32::<4>(load_lanes(lanes)), lane_numbers);
    let least = _mm512_reduce_min_epu32(with_lanes);
    (least >> 4, (least & 15) as usize)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn remove(lanes: &mut Lanes, lane: usize) {
    let others = load_lanes(&OTHER_LANES[lane % NUM_LANES]);
    *lanes = lanes_of(_mm512_permutexvar_epi32(others, load_lanes(lanes)));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn replace(lanes: &mut Lanes, lane: usize, number: u32) {
    let bit = 1 << (lane % NUM_LANES);
    *lanes = lanes_of(_mm512_mask_set1_epi32(
        load_lanes(lanes),
        bit,
        number as i32,
    ));
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8; SIMD_BLOCK_BYTES]) -> __m512i {
    // SAFETY: these are 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8))
}

/// Bytes in `first..first + len`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn within(bytes: __m512i, first: u8, len: u8) -> u64 {
    let from_first = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
    _mm512_cmplt_epu8_mask(from_first, _mm512_set1_epi8(len as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn ascii(block: &SimdBlock) -> Masks {
    let bytes = load(block);
    let space = equal(bytes, b' ');
    Masks {
        letter: within(_mm512_or_si512(bytes, _mm512_set1_epi8(0x20)), b'a', 26),
        number: within(bytes, b'0', 10),
        whitespace: within(bytes, b'\t', 5) | space,
        newline: equal(bytes, b'\n') | equal(bytes, b'\r'),
        space,
        apostrophe: equal(bytes, b'\''),
        wide: _mm512_movepi8_mask(bytes),
        // In a signed comparison, continuation bytes are the lowest.
        inner: _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0xc0u8 as i8)),
        ..Masks::default()
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn having(classes: &[u8; SIMD_BLOCK_BYTES], class: u8) -> u64 {
    _mm512_test_epi8_mask(load(classes), _mm512_set1_epi8(class as i8))
}

/// Looks up the last six bits of each byte in a table, 16 entries at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn by_six_bits(bytes: __m512i, table: &[u8; 64]) -> __m512i {
    let numbers = load(table);
    let has_16 = _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(16));
    let has_32 = _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(32));
    let last_four = _mm512_and_si512(bytes, _mm512_set1_epi8(15));
    let looked_up = _mm512_shuffle_epi8(
        _mm512_shuffle_i32x4::<0b00_00_00_00>(numbers, numbers),
        last_four,
    );
    let of_16 = _mm512_shuffle_i32x4::<0b01_01_01_01>(numbers, numbers);
    let looked_up = _mm512_mask_shuffle_epi8(looked_up, has_16 & !has_32, of_16, last_four);
    let of_32 = _mm512_shuffle_i32x4::<0b10_10_10_10>(numbers, numbers);
    let looked_up = _mm512_mask_shuffle_epi8(looked_up, has_32 & !has_16, of_32, last_four);
    let of_48 = _mm512_shuffle_i32x4::<0b11_11_11_11>(numbers, numbers);
    _mm512_mask_shuffle_epi8(looked_up, has_16 & has_32, of_48, last_four)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn match_first_two(block: &SimdBlock, after: &SimdBlock, first_two: &FirstTwo) -> u64 {
    let of_first = by_six_bits(load(block), &first_two.of_first);
    let of_second = by_six_bits(load(after), &first_two.of_second);
    let is_first = _mm512_test_epi8_mask(of_first, _mm512_set1_epi8(MATCHES as i8));
    is_first & !_mm512_test_epi8_mask(of_first, of_second)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn positions(bits: u64, base: u32, to: &mut [u32; SIMD_BLOCK_BYTES]) {
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut count = 0;
    for first in [0, 16, 32, 48] {
        let bits = (bits >> first) as u16;
        let here = _mm512_add_epi32(numbers, _mm512_set1_epi32((base + first) as i32));
        let here = _mm512_maskz_compress_epi32(bits, here);
        // SAFETY: 16 numbers are stored after at most `first` others, and there is room for 64.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().add(count).cast(), here) };
        count += bits.count_ones() as usize;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn long_words(bounds: &[u32; LEN_BATCH + 1]) -> u32 {
    // SAFETY: these are 16 numbers each, and the loads need no alignment.
    let (starts, ends) = unsafe {
        (
            _mm512_loadu_si512(bounds.as_ptr().cast()),
            _mm512_loadu_si512(bounds.as_ptr().add(1).cast()),
        )
    };
    let lens = _mm512_sub_epi32(ends, starts);
    u32::from(_mm512_cmpgt_epu32_mask(
        lens,
        _mm512_set1_epi32(SHORT as i32),
    ))
}

/// `Simd::word_keys_within`.
///
/// A vector holds four words of 16 bytes. The bytes after the end of a word are masked out, and
/// the last byte is replaced by the length.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
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
    // SAFETY: these are eight numbers each, and the loads need no alignment.
    let (starts, ends) = unsafe {
        (
            _mm256_loadu_si256(bounds.as_ptr().cast()),
            _mm256_loadu_si256(bounds.as_ptr().add(1).cast()),
        )
    };
    let lens = _mm256_min_epu32(
        _mm256_sub_epi32(ends, starts),
        _mm256_set1_epi32(LONG as i32),
    );
    let lens = _mm512_castsi256_si512(lens);
    let words = words.as_mut_ptr().cast::<__m512i>();
    let factors = HASH_FACTORS.map(|factor| factor as i64);
    let factors = _mm512_set4_epi64(factors[1], factors[0], factors[1], factors[0]);
    let mut hashed = [_mm512_setzero_si512(); 2];
    for (half, hashed) in hashed.iter_mut().enumerate() {
        let first = 4 * half;
        // SAFETY: 16 bytes of text follow each start. The read is volatile because LLVM would
        // otherwise extract the positions from the vector that they were loaded as, which takes longer than loading
        // them again.
        let bytes = |i: usize| unsafe {
            let start = std::ptr::from_ref(&bounds[first + i]).read_volatile();
            _mm_loadu_si128(text.as_ptr().add(start as usize).cast())
        };
        let four = _mm512_castsi128_si512(bytes(0));
        let four = _mm512_inserti32x4::<1>(four, bytes(1));
        let four = _mm512_inserti32x4::<2>(four, bytes(2));
        let four = _mm512_inserti32x4::<3>(four, bytes(3));
        // The length of each word in all of its bytes.
        let which = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        let which = _mm512_add_epi32(which, _mm512_set1_epi32(first as i32));
        let lens = _mm512_permutexvar_epi32(which, lens);
        let lens = _mm512_shuffle_epi8(lens, _mm512_setzero_si512());
        let number = _mm512_broadcast_i32x4(_mm_setr_epi8(
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        ));
        let four = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(number, lens), four);
        let four = _mm512_mask_mov_epi8(four, 0x8000_8000_8000_8000, lens);
        // SAFETY: eight words have room for two vectors, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(words.add(half).cast(), four) };
        // The sum of both products, in both halves.
        let products = _mm512_mullo_epi64(four, factors);
        let sums = _mm512_add_epi64(products, _mm512_shuffle_epi32::<0b01_00_11_10>(products));
        *hashed = _mm512_srl_epi64(sums, _mm_cvtsi32_si128(shift as i32));
    }
    let firsts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
    let firsts = _mm512_permutex2var_epi32(hashed[0], firsts, hashed[1]);
    // SAFETY: these are eight numbers, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(hashes.as_mut_ptr().cast(), _mm512_castsi512_si256(firsts)) };
    // The caller reads them from memory. Without this, LLVM would extract them from the vector one by one, which takes
    // longer.
    std::hint::black_box(hashes);
    true
}
