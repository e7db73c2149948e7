//! Finds bytes one after the other, for words that are mostly short.

/// The first position at or after `at` of a byte that fulfils the condition; the end if there is none.
#[inline(always)]
pub(super) fn find_from(text: &[u8], at: usize, condition: impl Fn(u8) -> bool) -> usize {
    let index = text[at..].iter().position(|&byte| condition(byte));
    index.map_or(text.len(), |index| at + index)
}
