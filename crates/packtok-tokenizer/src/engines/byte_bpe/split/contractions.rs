//! English contractions, such as the `'s` and `'re` of many patterns.

use super::pattern_rules::Carry;

/// Splits off contractions: `apostrophes` are the candidates, and `length` gives the length of the contraction at a
/// byte of the SIMD block.
#[inline(always)]
pub(super) fn with_contractions(
    begins: u64,
    mut apostrophes: u64,
    carry: &mut Carry,
    length: impl Fn(usize) -> Option<usize>,
) -> u64 {
    let carried = (carry.contracted, carry.after_contractions);
    (carry.contracted, carry.after_contractions) = (0, 0);
    let (mut contracted, mut after) = carried;
    while apostrophes != 0 {
        let i = apostrophes.trailing_zeros() as usize;
        apostrophes &= apostrophes - 1;
        if let Some(len) = length(i) {
            let first_letter = 2u128 << i;
            let end = 1u128 << (i + len);
            contracted |= first_letter as u64;
            after |= end as u64;
            carry.contracted |= (first_letter >> 64) as u64;
            carry.after_contractions |= (end >> 64) as u64;
        }
    }
    begins & !contracted | after
}

/// Length of `'s|'t|'re|'ve|'m|'ll|'d` at an apostrophe.
#[inline]
pub(super) fn contraction(bytes: &[u8], at: usize, fold: impl Fn(u8) -> u8) -> Option<usize> {
    let letter = |i: usize| bytes.get(at + i).copied().map(&fold);
    match (letter(1)?, letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(2),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(3),
        _ => None,
    }
}

/// Length of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at `at`, if it matches.
#[inline]
pub(super) fn contraction_in_any_case(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\'') {
        return None;
    }
    // `(?i:s)` also matches the long s.
    if bytes[at + 1..].starts_with("ſ".as_bytes()) {
        return Some(1 + "ſ".len());
    }
    contraction(bytes, at, |byte| byte.to_ascii_lowercase())
}
