//! Converts groups of code points with AVX2.
//!
//! UTF-8 of a code point is computed in the bytes of its lane, the first byte lowest. Lanes with fewer bytes than the
//! lane has leave gaps, which a shuffle removes; a table has the shuffle for each combination of lengths.
//!
//! ```text
//! code points    U+0061   U+044F   U+8A9E   U+0020
//! lanes          61 .. .. 8f d1 .. 9e aa e8 20 ..     (written in the order of memory: 61, d1 8f, e8 aa 9e, 20)
//! shuffled       61 d1 8f e8 aa 9e 20
//! ```
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_blendv_epi8, _mm_cmpeq_epi16, _mm_cvtepu8_epi16,
    _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi16, _mm_packs_epi32,
    _mm_packus_epi16, _mm_set1_epi16, _mm_setzero_si128, _mm_shuffle_epi8, _mm_slli_epi16,
    _mm_srli_epi16, _mm_srli_si128, _mm_storel_epi64, _mm_storeu_si128, _mm_testz_si128,
    _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_ps, _mm256_castsi256_si128,
    _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_cvtepu16_epi32, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_or_si256,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_slli_epi32, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_testz_si256,
};

use super::SLACK;

/// `SHUFFLES_OF_TWO[one]` moves the bytes of eight lanes of two bytes together; lanes in the mask have one byte.
static SHUFFLES_OF_TWO: [[u8; 16]; 256] = shuffles(8);

/// `SHUFFLES_OF_FOUR[one | up_to_two << 4]` moves the bytes of four lanes of four bytes together. Lanes have three bytes,
/// one less for each of the two masks that contains them.
static SHUFFLES_OF_FOUR: [[u8; 16]; 256] = shuffles(4);

/// The shuffle of each number, which is the masks of all lanes. A lane has one byte more than there are masks, one less for
/// each mask that contains it.
const fn shuffles(num_lanes: usize) -> [[u8; 16]; 256] {
    let (lane_bytes, num_masks) = (16 / num_lanes, 8 / num_lanes);
    let mut shuffles = [[0x80; 16]; 256];
    let mut masks = 0;
    while masks < 256 {
        let (mut lane, mut len) = (0, 0);
        while lane < num_lanes {
            let mut num_bytes = num_masks + 1;
            let mut bit = lane;
            while bit < 8 {
                num_bytes -= masks >> bit & 1;
                bit += num_lanes;
            }
            let mut byte = 0;
            while byte < num_bytes {
                shuffles[masks][len] = (lane_bytes * lane + byte) as u8;
                byte += 1;
                len += 1;
            }
            lane += 1;
        }
        masks += 1;
    }
    shuffles
}

/// The spare memory of a string, written from its end on.
struct Writer<'a> {
    text: &'a mut Vec<u8>,
    len: usize,
}

impl<'a> Writer<'a> {
    /// A writer of at most `max_bytes` bytes, after each of which it may write up to [`SLACK`] more.
    ///
    /// # Safety
    /// All that is written must be UTF-8.
    unsafe fn new(text: &'a mut String, max_bytes: usize) -> Self {
        // SAFETY: the caller guarantees UTF-8.
        let text = unsafe { text.as_mut_vec() };
        assert!(text.capacity() - text.len() >= max_bytes + SLACK);
        let len = text.len();
        Self { text, len }
    }

    fn end(&mut self) -> *mut u8 {
        debug_assert!(self.len + SLACK <= self.text.capacity());
        // SAFETY: `len` is at most the capacity.
        unsafe { self.text.as_mut_ptr().add(self.len) }
    }

    /// Writes the bytes of all lanes, of `max_bytes` less one for each bit of `masks`, which selects the shuffle.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    fn push(&mut self, lanes: __m128i, shuffles: &[[u8; 16]; 256], masks: usize, max_bytes: usize) {
        // SAFETY: the rows have 16 bytes, and so has the slack.
        unsafe {
            let shuffle = _mm_loadu_si128(shuffles[masks & 0xff].as_ptr().cast());
            _mm_storeu_si128(self.end().cast(), _mm_shuffle_epi8(lanes, shuffle));
        }
        self.len += max_bytes - masks.count_ones() as usize;
    }

    /// Makes the written bytes part of the string.
    fn finish(self) {
        // SAFETY: all bytes up to `len` were written.
        unsafe { self.text.set_len(self.len) };
    }
}

/// Appends the UTF-8 of code points up to U+00FF; returns their number, which is a multiple of 16.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn append_one(units: &[u8], text: &mut String) -> usize {
    // SAFETY: ASCII, and what `push_up_to_7ff` writes, are UTF-8.
    let mut writer = unsafe { Writer::new(text, 2 * units.len()) };
    let mut at = 0;
    while at + 32 <= units.len() {
        // SAFETY: 32 code points follow.
        let all = unsafe { _mm256_loadu_si256(units.as_ptr().add(at).cast()) };
        if _mm256_movemask_epi8(all) == 0 {
            // SAFETY: the slack has 32 bytes.
            unsafe { _mm256_storeu_si256(writer.end().cast(), all) };
            writer.len += 32;
            at += 32;
        } else {
            let half = _mm256_castsi256_si128(all);
            push_up_to_7ff(_mm_cvtepu8_epi16(half), &mut writer);
            push_up_to_7ff(_mm_cvtepu8_epi16(_mm_srli_si128::<8>(half)), &mut writer);
            at += 16;
        }
    }
    writer.finish();
    at
}

/// Appends the UTF-8 of code points up to U+FFFF before the first group with a surrogate; returns their number.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn append_two(units: &[u16], text: &mut String) -> usize {
    // SAFETY: ASCII, and what the functions below write, are UTF-8.
    let mut writer = unsafe { Writer::new(text, 3 * units.len()) };
    let mut at = 0;
    while at + 16 <= units.len() {
        // SAFETY: 16 code points follow.
        let all = unsafe { _mm256_loadu_si256(units.as_ptr().add(at).cast()) };
        let half = _mm256_castsi256_si128(all);
        if _mm256_testz_si256(all, _mm256_set1_epi16(0xff80u16 as i16)) == 1 {
            let ascii = _mm_packus_epi16(half, _mm256_extracti128_si256::<1>(all));
            // SAFETY: the slack has 16 bytes.
            unsafe { _mm_storeu_si128(writer.end().cast(), ascii) };
            writer.len += 16;
            at += 16;
        } else if _mm_testz_si128(half, _mm_set1_epi16(0xf800u16 as i16)) == 1 {
            push_up_to_7ff(half, &mut writer);
            at += 8;
        } else if push_up_to_ffff(_mm256_cvtepu16_epi32(half), &mut writer) {
            at += 8;
        } else {
            break;
        }
    }
    writer.finish();
    at
}

/// Appends the UTF-8 of code points before the first group with a surrogate or a code point above U+FFFF; returns their
/// number.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn append_four(units: &[u32], text: &mut String) -> usize {
    // SAFETY: ASCII, and what the functions below write, are UTF-8.
    let mut writer = unsafe { Writer::new(text, 4 * units.len()) };
    let mut at = 0;
    while at + 8 <= units.len() {
        // SAFETY: 8 code points follow.
        let all = unsafe { _mm256_loadu_si256(units.as_ptr().add(at).cast()) };
        if _mm256_testz_si256(all, _mm256_set1_epi32(!0x7f)) == 1 {
            let (low, high) = (
                _mm256_castsi256_si128(all),
                _mm256_extracti128_si256::<1>(all),
            );
            // Numbers below 128 are the same for signed and unsigned packing.
            let words = _mm_packs_epi32(low, high);
            // SAFETY: the slack has 8 bytes.
            unsafe {
                _mm_storel_epi64(writer.end().cast(), _mm_packus_epi16(words, words));
            }
            writer.len += 8;
        } else if _mm256_testz_si256(all, _mm256_set1_epi32(!0xffff)) == 0
            || !push_up_to_ffff(all, &mut writer)
        {
            break;
        }
        at += 8;
    }
    writer.finish();
    at
}

/// Writes the UTF-8 of eight code points up to U+07FF.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn push_up_to_7ff(units: __m128i, writer: &mut Writer<'_>) {
    let is_one = _mm_cmpeq_epi16(
        _mm_and_si128(units, _mm_set1_epi16(0xff80u16 as i16)),
        _mm_setzero_si128(),
    );
    let first = _mm_or_si128(_mm_srli_epi16::<6>(units), _mm_set1_epi16(0xc0));
    let second = _mm_or_si128(
        _mm_and_si128(units, _mm_set1_epi16(0x3f)),
        _mm_set1_epi16(0x80),
    );
    let two = _mm_or_si128(first, _mm_slli_epi16::<8>(second));
    let lanes = _mm_blendv_epi8(two, units, is_one);
    let mask = _mm_movemask_epi8(_mm_packs_epi16(is_one, _mm_setzero_si128())) as usize;
    writer.push(lanes, &SHUFFLES_OF_TWO, mask, 16);
}

/// Writes the UTF-8 of eight code points up to U+FFFF, unless one is a surrogate. Returns whether it did.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn push_up_to_ffff(units: __m256i, writer: &mut Writer<'_>) -> bool {
    let splat = |number: i32| _mm256_set1_epi32(number);
    let is_surrogate = _mm256_cmpeq_epi32(_mm256_and_si256(units, splat(0xf800)), splat(0xd800));
    if _mm256_movemask_epi8(is_surrogate) != 0 {
        return false;
    }
    let is_one = _mm256_cmpgt_epi32(splat(0x80), units);
    let is_up_to_two = _mm256_cmpgt_epi32(splat(0x800), units);
    let continuation =
        |bits: __m256i| _mm256_or_si256(_mm256_and_si256(bits, splat(0x3f)), splat(0x80));
    let last = continuation(units);
    let middle = continuation(_mm256_srli_epi32::<6>(units));
    let two = _mm256_or_si256(
        _mm256_or_si256(_mm256_srli_epi32::<6>(units), splat(0xc0)),
        _mm256_slli_epi32::<8>(last),
    );
    let three = _mm256_or_si256(
        _mm256_or_si256(_mm256_srli_epi32::<12>(units), splat(0xe0)),
        _mm256_or_si256(
            _mm256_slli_epi32::<8>(middle),
            _mm256_slli_epi32::<16>(last),
        ),
    );
    let lanes = _mm256_blendv_epi8(_mm256_blendv_epi8(three, two, is_up_to_two), units, is_one);
    let one = _mm256_movemask_ps(_mm256_castsi256_ps(is_one)) as usize;
    let up_to_two = _mm256_movemask_ps(_mm256_castsi256_ps(is_up_to_two)) as usize;
    for (lanes, masks) in [
        (
            _mm256_castsi256_si128(lanes),
            one & 0xf | (up_to_two & 0xf) << 4,
        ),
        (
            _mm256_extracti128_si256::<1>(lanes),
            one >> 4 | up_to_two >> 4 << 4,
        ),
    ] {
        writer.push(lanes, &SHUFFLES_OF_FOUR, masks, 12);
    }
    true
}
